// A simulated minute of standing: stacks and a house of cards must not creep.
#include <gtest/gtest.h>

#include <cmath>

#include "tarsus/sim/rigid_scene.hpp"

namespace tarsus {
namespace {

/// Largest distance that a body moves between `settle` and 60 s.
double creep(RigidScene scene, double settle) {
  RigidWorld<double> world = make_world<double>(scene);
  std::vector<Vec3d> from;
  double worst = 0;
  for (int i = 0; i < 3600; ++i) {
    EXPECT_EQ(world.step().status, WorldStatus::ok);
    if (i == int(settle * 60)) {
      for (const RigidBody& b : world.bodies()) from.push_back(b.position);
    }
  }
  for (std::size_t i = 0; i < from.size(); ++i) worst = std::max(worst, norm(world.bodies()[i].position - from[i]));
  return worst;
}

TEST(RigidWorldLong, TenBoxesStandForAMinute) {
  RigidScene scene = box_stack(10);
  scene.options.iterations = 50;
  EXPECT_LT(creep(scene, 10), 1e-3);
}

TEST(RigidWorldLong, AHouseOfCardsStandsForAMinute) {
  for (int storeys : {1, 2, 3}) {
    RigidScene scene = card_house(storeys);
    scene.options.iterations = 50;
    RigidWorld<double> start = make_world<double>(scene);
    const double high = start.bodies().back().position.z;
    RigidWorld<double> world = make_world<double>(scene);
    for (int i = 0; i < 600; ++i) world.step();
    EXPECT_NEAR(world.bodies().back().position.z, high, 0.02) << "it fell";
    EXPECT_LT(creep(scene, 10), 1e-3) << storeys;
  }
}

TEST(RigidWorldLong, APileOfBallsComesToRest) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  RigidScene scene = ball_drop(10, 10);
  RigidWorld<float> world = make_world<float>(scene);
  RigidStepReport r;
  for (int i = 0; i < 1800; ++i) r = world.step();
  EXPECT_LT(r.penetration_max, 0.033);
  EXPECT_LT(r.penetration_mean, 0.020);
  EXPECT_LT(world.kinetic_energy() / 1000, 1e-3);
}

}  // namespace
}  // namespace tarsus
