// Drives evaluated at the end of the step move arbitrary trees at 60 Hz: they release no more energy than their springs
// held.
#include <gtest/gtest.h>

#include "support/random_model.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

/// The sum of the kinetic energy and the potential energies of gravity, of the model's springs and of the drives.
double energy_with_drives(const Model& model, const Data& data, const Drives& drives, std::span<const double> target) {
  Data at(model);
  kinematics<double>(model, at, data.qpos, data.qvel);
  double sum = energy<double>(model, at, data.qpos, data.qvel).total();
  std::vector<double> stretch(model.nv);
  difference(model, data.qpos, target, stretch);
  for (int i = 0; i < model.nv; ++i) sum += 0.5 * drives.kp[i] * stretch[i] * stretch[i];
  return sum;
}

/// The largest rise of the energy over its initial value within a second, relative to the initial energy of the drives;
/// infinity: the world failed.
double highest(unsigned seed, double kp, double kd, bool plain) {
  const Model model = random_tree(seed, {.bodies = 2 + int(seed % 10)});
  if (model.nv == 0) return 0;
  Random random(seed);
  Data data(model);
  StepOptions options;
  options.dt = 1.0 / 60;
  Stepper<double> stepper(model, data, options);
  Drives drives = Drives::uniform(model, kp, kd, 0, 0);
  drives.plain = plain;
  AlignedVector<double> target(data.qpos);
  for (const Joint& joint : model.joints) {
    if (joint.nv() == 1) target[joint.qpos] += random.uniform(-0.5, 0.5);
  }
  const double start = energy_with_drives(model, data, drives, target);
  double most = 0, held = 0;
  for (const double x : target) held += 0.5 * kp * x * x;
  for (int i = 0; i < 60; ++i) {
    if (stepper.step(data, drives, target)) return kInfinity;
    most = std::max(most, energy_with_drives(model, data, drives, target) - start);
  }
  return most / std::max(held, 1.0);
}

TEST(Drives, AtTheEndOfTheStepGainNoEnergy) {
  int gained = 0, runs = 0;
  double most = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    for (const auto& [kp, kd] : {std::pair{3000.0, 10.0}, {75000.0, 0.0}, {1e6, 1e3}}) {
      most = std::max(most, highest(seed, kp, kd, false));
    }
    gained += highest(seed, 3000, 10, true) > 1, ++runs;
  }
  std::printf("energy rose by %.2g of what the drives held at most; by the plain law in %d of %d\n", most, gained,
              runs);
  EXPECT_LT(most, 1e-3);
  EXPECT_GT(gained, runs / 2);
}

}  // namespace
}  // namespace tarsus::test
