// Shapes that joints hold deep inside one another: contacts that can never separate push for ever, and the bodies come
// to rest.
#include <gtest/gtest.h>

#include <filesystem>

#include "tarsus/io/mjcf.hpp"
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

/// Two limp humanoids without gravity, side by side at a distance at which they overlap.
Model two_humanoids(double apart) {
  std::string text = "<mujoco><option gravity='0 0 0'/><asset><model name='m' file='humanoid.xml'/></asset><worldbody>";
  for (int k = 0; k < 2; ++k) {
    text += "<frame pos='" + std::to_string(k * apart) + " 0 3'><attach model='m' prefix='" + std::to_string(k) +
            "_'/></frame>";
  }
  return compile(parse_mjcf(text + "</worldbody></mujoco>", "two.xml", std::string(TARSUS_SOURCE_DIR) + "/models"));
}

/// The largest kinetic energy from one time to another [J], for one world or for the first of `worlds` worlds.
template <class R>
double most_energy(const Model& model, double h, int worlds, double from, double to) {
  BatchOptions options;
  options.step.dt = h, options.step.rows.contacts = options.step.rows.joints = true;
  Batch<R> batch(model, worlds, options);
  BasicData<R> data(model);
  Stepper<R> stepper(model, data, options.step);
  Data at(model);
  double most = 0;
  for (int step = 0; step < int(to / h); ++step) {
    EXPECT_EQ(worlds > 1 ? batch.step() : stepper.step(data), 0);
    if (step * h < from) continue;
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
    const double alone = most_energy<double>(model, h, 1, 5, 6), side_by_side = most_energy<double>(model, h, 8, 5, 6);
    double in_float = 0;
#ifndef TARSUS_DOUBLE_ONLY
    in_float = most_energy<float>(model, h, 16, 5, 6);
#endif
    std::printf("%g s: at most %.2g J in the last second, side by side %.2g, in float %.2g\n", h, alone, side_by_side,
                in_float);
    EXPECT_LT(std::max({alone, side_by_side, in_float}), 5) << h;
  }
}

/// Recovery speeds in proportion to 1/h gave them 53 J and 520 J at 1 ms.
TEST(DeepContacts, CharactersThatOverlapAtTheStartGainNoMoreInShortSteps) {
  for (const double apart : {0.2, 0.1}) {
    const Model model = two_humanoids(apart);
    const double at_60 = most_energy<double>(model, 1.0 / 60, 1, 0, 0.6);
    EXPECT_LT(at_60, apart > 0.15 ? 1 : 40);
    for (const double h : {1.0 / 240, 0.001}) {
      double most = std::max(most_energy<double>(model, h, 1, 0, 0.6), most_energy<double>(model, h, 8, 0, 0.6));
#ifndef TARSUS_DOUBLE_ONLY
      most = std::max(most, most_energy<float>(model, h, 16, 0, 0.6));
#endif
      std::printf("%g m apart: %.2f J at 1/60 s, %.2f at %g s\n", apart, at_60, most, h);
      EXPECT_LT(most, 1.5 * at_60) << h;
    }
  }
}

}  // namespace
}  // namespace tarsus::test
