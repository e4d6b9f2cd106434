// Shapes that joints hold deep inside one another: contacts that can never separate push for ever, and the bodies come
// to rest.
#include <gtest/gtest.h>

#include <filesystem>

#include "tarsus/io/model_file.hpp"
#include "tarsus/sim/batch.hpp"

namespace tarsus::test {
namespace {

/// A humanoid with a fixed pelvis: its thighs are 8 cm deep in the pelvis, and 14 cm deep in each other where they
/// meet.
Model fixed_humanoid() {
  const std::string file = "dm_control_walkers/locomotion/walkers/assets/humanoid_CMU_V2020.xml";
  return compile(read_model(std::string(TARSUS_SOURCE_DIR) + "/../shared/data/" + file));
}

/// The largest kinetic energy in the last of six seconds [J], for one world or for the first of `worlds` worlds.
template <class R>
double last_energy(const Model& model, double h, int worlds) {
  BatchOptions options;
  options.step.dt = h, options.step.rows.contacts = options.step.rows.joints = true;
  Batch<R> batch(model, worlds, options);
  BasicData<R> data(model);
  Stepper<R> stepper(model, data, options.step);
  Data at(model);
  double most = 0;
  for (int step = 0; step < int(6 / h); ++step) {
    EXPECT_EQ(worlds > 1 ? batch.step() : stepper.step(data), 0);
    if (step * h < 5) continue;
    const R *const q = worlds > 1 ? batch.qpos().data() : data.qpos.data(), *const v = worlds > 1 ? batch.qvel().data()
                                                                                                  : data.qvel.data();
    const std::vector<double> qpos(q, q + model.nq), qvel(v, v + model.nv);
    kinematics<double>(model, at, qpos, qvel);
    most = std::max(most, energy<double>(model, at, qpos, qvel).kinetic);
  }
  return most;
}

TEST(DeepContacts, WhatCannotPartComesToRest) {
  const Model model = fixed_humanoid();
  for (const double h : {0.005, 0.01, 1.0 / 60}) {
    const double alone = last_energy<double>(model, h, 1), side_by_side = last_energy<double>(model, h, 8);
    double in_float = 0;
#ifndef TARSUS_DOUBLE_ONLY
    in_float = last_energy<float>(model, h, 16);
#endif
    std::printf("%g s: at most %.2g J in the last second, side by side %.2g, in float %.2g\n", h, alone, side_by_side,
                in_float);
    EXPECT_LT(std::max({alone, side_by_side, in_float}), 5) << h;
  }
}

}  // namespace
}  // namespace tarsus::test
