// Characters on the ground for a simulated minute.
#include <gtest/gtest.h>

#include <cmath>

#include "tarsus/io/model_file.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

TEST(GroundLong, HumanoidStandsAMinuteWithoutCreeping) {
  const Model model = compile(read_model(std::string(TARSUS_SOURCE_DIR) + "/models/humanoid.xml", {}));
  Data data(model);
  StepOptions options;
  options.dt = 1.0 / 60, options.rows.contacts = options.rows.joints = true;
  Stepper<double> stepper(model, data, options);
  Drives drives = Drives::uniform(model, 1000, 100, 0, 0);  // the root has no drive
  const std::vector<double> target = model.qpos0;
  const auto positions = [&] {
    kinematics<double>(model, data, data.qpos, data.qvel);
    std::vector<Vec3d> p;
    for (int i = 1; i < model.nbody(); ++i) p.push_back(body_pose(model, data, i).p);
    return p;
  };
  std::vector<Vec3d> settled;
  double creep = 0, penetration = 0;
  for (int i = 0; i < 3600; ++i) {
    ASSERT_EQ(stepper.step(data, drives, target), 0);
    if (i == 600) settled = positions();
    if (i < 600 || i % 60) continue;
    const std::vector<Vec3d> now = positions();
    for (std::size_t k = 0; k < now.size(); ++k) creep = std::max(creep, norm(now[k] - settled[k]));
    penetration = std::max(penetration, stepper.rows()->report().penetration);
  }
  printf("creep from 10 s to 60 s: %.3g m, penetration at most %.3g m\n", creep, penetration);
  EXPECT_LT(creep, 1e-3);
}

}  // namespace
}  // namespace tarsus
