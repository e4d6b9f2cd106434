// Initial states that violate their constraints, and repeated or contradicting constraints; the message of a failed
// step.
#include <gtest/gtest.h>

#include <cmath>

#include "md_reference.hpp"

namespace tarsus::md_test {
namespace {

ParticleSystem points(std::initializer_list<Vec3d> at) {
  ParticleSystem system;
  for (const Vec3d& p : at) {
    system.mass.push_back(1);
    system.position.insert(system.position.end(), {p.x, p.y, p.z});
    system.velocity.insert(system.velocity.end(), {0, 0, 0});
  }
  system.constraints = ConstraintSet(system.particles());
  return system;
}

std::string message_of(ParticleSystem system) {
  try {
    prepare(system, 1e-12, 0.001);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Preparation, C60WithAllSecondNeighboursHas96RedundantRows) {
  ParticleSystem system = make_builtin_system("c60-rigid");
  EXPECT_EQ(system.constraints.nrow(), 270);
  const Preparation done = prepare(system, 1e-12, 0.001);
  EXPECT_EQ(done.redundant.size(), 96u);
  EXPECT_EQ(done.rank, 174);  // 3 * 60 - 6
  EXPECT_NE(done.redundant[0].find("particles"), std::string::npos);
  set_temperature(system, 300, 1);
  const std::vector<double> start = system.position;
  VelocityVerlet verlet(system, {.timestep = 0.005});
  run_steps(verlet, 200);
  // The omitted rows hold too: the cage is rigid.
  const ParticleSystem whole = make_builtin_system("c60-rigid");
  EXPECT_LT(largest_violation_at(whole.constraints, system.position).value, 1e-9);
  EXPECT_GT(largest_difference(system.position, start), 1e-3);
}

TEST(Preparation, TheSameConstraintTwiceIsLeftOutOnce) {
  ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}});
  system.constraints.add_distance(0, 1, 1.0), system.constraints.add_distance(1, 0, 1.0);
  const Preparation done = prepare(system, 1e-12, 0.001);
  ASSERT_EQ(done.redundant.size(), 1u);
  EXPECT_EQ(system.constraints.nrow(), 1);
}

// An omitted row has no effect: a set with a duplicated row moves to the bit as one without it.
TEST(Preparation, WhatIsLeftOutActsOnNoVelocity) {
  std::vector<double> ends[2];
  for (const bool twice : {false, true}) {
    ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {2, 1, 0}});
    system.velocity = {0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 1};
    system.constraints.add_distance(2, 3, 1.0);
    if (twice) system.constraints.add_distance(3, 2, 1.0);
    system.constraints.add_distance(0, 1, 1.0), system.constraints.add_distance(1, 2, 1.0);
    prepare(system, 1e-12, 0.01);
    const double energy = kinetic_energy(system);
    VelocityVerlet verlet(system, {.timestep = 0.01});
    run_steps(verlet, 100);
    EXPECT_NEAR(kinetic_energy(system) / energy, 1, 1e-3);
    ends[twice] = system.position;
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(Preparation, ContradictionsAreNamed) {
  ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}});
  system.constraints.add_distance(0, 1, 1.0), system.constraints.add_distance(1, 0, 1.1);
  EXPECT_NE(message_of(system).find("distance 1 (particles 1, 0)"), std::string::npos) << message_of(system);
}

TEST(Preparation, AnImpossibleTriangleIsNamed) {
  ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}, {0.5, 0.1, 0}});
  system.constraints.add_distance(0, 1, 3.0), system.constraints.add_distance(1, 2, 1.0),
      system.constraints.add_distance(0, 2, 1.0);
  EXPECT_NE(message_of(system).find("particles"), std::string::npos) << message_of(system);
}

TEST(Preparation, ThreePointsOnALineAreASingularGeometry) {
  ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}, {2, 0, 0}});
  system.constraints.add_distance(0, 1, 1.0), system.constraints.add_distance(1, 2, 1.0),
      system.constraints.add_distance(0, 2, 2.0);
  EXPECT_NE(message_of(system).find("on a line"), std::string::npos) << message_of(system);
}

TEST(Preparation, APinnedPairWithALengthIsNamed) {
  ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}});
  system.pinned = {1, 1};
  system.constraints.add_distance(0, 1, 1.5);
  EXPECT_NE(message_of(system).find("distance 0"), std::string::npos) << message_of(system);
}

TEST(Preparation, BadNumbersAreNamed) {
  for (const double bad : {std::nan(""), HUGE_VAL}) {
    ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}});
    system.constraints.add_distance(0, 1, 1.0);
    system.position[4] = bad;
    EXPECT_NE(message_of(system).find("position of particle 1"), std::string::npos) << message_of(system);
    system.position[4] = 0, system.velocity[2] = bad;
    EXPECT_NE(message_of(system).find("velocity of particle 0"), std::string::npos) << message_of(system);
    system.velocity[2] = 0, system.mass[1] = bad;
    EXPECT_NE(message_of(system).find("mass of particle 1"), std::string::npos) << message_of(system);
  }
  ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}});
  system.mass[0] = -1;
  EXPECT_NE(message_of(system).find("mass of particle 0"), std::string::npos);
  system.mass[0] = 1, system.force_field.gravity.y = std::nan("");
  EXPECT_NE(message_of(system).find("gravity"), std::string::npos) << message_of(system);
  system.force_field.gravity.y = 0, system.force_field.skin = std::nan("");
  EXPECT_NE(message_of(system).find("skin"), std::string::npos) << message_of(system);
  system.force_field.skin = 0, system.force_field.bonds = {{1, 1, 10, 1}};
  EXPECT_NE(message_of(system).find("bond: is of particle 1 with itself"), std::string::npos) << message_of(system);
}

TEST(Preparation, VelocitiesAlongConstraintsAreTakenOutAndTold) {
  ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}});
  system.constraints.add_distance(0, 1, 1.0);
  system.velocity = {-1, 0, 0, 1, 2, 0};
  const Preparation done = prepare(system, 1e-12, 0.001);
  EXPECT_NEAR(done.velocity_changed_max, 1.0, 1e-12);
  EXPECT_NEAR(system.velocity[0], 0, 1e-14);
  EXPECT_NEAR(system.velocity[4], 2, 1e-14);
  EXPECT_NE(done.text(system.units).find("velocities"), std::string::npos);
}

TEST(FailedStep, TooLargeATimestepIsReportedAndLeavesTheState) {
  for (const char* solver : {"newton", "newton_general", "m_shake", "shake", "shake_matrix"}) {
    for (const char* name : {"chain:20", "water1", "ring:10"}) {
      SCOPED_TRACE(std::string(solver) + " " + name);
      ParticleSystem system = make_builtin_system(name);
      VelocityVerlet verlet(system, {.timestep = 500 * system.units.timestep, .solver = solver, .max_iterations = 200});
      StepReport report;
      std::vector<double> before;
      for (int k = 0; k < 50 && report.ok; ++k) {
        before = system.position;
        report = verlet.step();
        if (report.ok && report.position.wrong_root) break;  // solved, but reported as the wrong solution
      }
      if (report.ok) {
        EXPECT_TRUE(report.position.wrong_root);
        continue;
      }
      EXPECT_EQ(system.position, before);
      EXPECT_NE(report.message.find("dt*omega_max"), std::string::npos) << report.message;
      for (const double x : system.velocity) EXPECT_TRUE(std::isfinite(x));
    }
  }
}

TEST(FailedStep, HugeSpeedsEndInAReport) {
  ParticleSystem system = make_builtin_system("chain:20");
  for (double& v : system.velocity) v *= 1e200;
  VelocityVerlet verlet(system, {.timestep = 0.002});
  const std::vector<double> before = system.position;
  const StepReport report = verlet.step();
  EXPECT_FALSE(report.ok);
  EXPECT_EQ(system.position, before);
}

TEST(FailedStep, ParticlesOnTopOfEachOtherEndInAReport) {
  ParticleSystem system = make_builtin_system("butane125");
  for (int c = 0; c < 3; ++c) system.position[c] = system.position[12 + c];
  system.constraints = ConstraintSet(system.particles());
  VelocityVerlet verlet(system, {.timestep = 0.002});
  const StepReport report = verlet.step();
  EXPECT_FALSE(report.ok);
  EXPECT_NE(report.message.find("not finite at particle 0"), std::string::npos) << report.message;
}

TEST(Pinned, ParticlesStayWhateverVelocityTheyAreGiven) {
  ParticleSystem system = points({{0, 0, 0}, {1, 0, 0}});
  system.constraints.add_distance(0, 1, 1);
  system.pinned = {1, 0};
  system.velocity = {1, 0, 0, 1, 2, 0};
  prepare(system, 1e-12, 0.001);
  EXPECT_EQ(system.velocity, (std::vector<double>{0, 0, 0, 0, 2, 0}));
  VelocityVerlet verlet(system, {.timestep = 0.001});
  ASSERT_TRUE(verlet.step().ok);
  system.velocity[0] = 1;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(verlet.step().ok);
  EXPECT_EQ(system.position[0], 0);
  EXPECT_NEAR(kinetic_energy(system), 2, 1e-9);
}

TEST(Results, TensionsOfAHangingChainCarryTheWeightBelow) {
  ParticleSystem system = points({{0, 0, 0}, {0, 0, -1}, {0, 0, -2}, {0, 0, -3}});
  system.pinned = {1, 0, 0, 0};
  for (int k = 0; k < 3; ++k) system.constraints.add_distance(k, k + 1, 1.0);
  system.force_field.gravity = {0, 0, -10};
  VelocityVerlet verlet(system, {.timestep = 0.001});
  run_steps(verlet, 3);
  const std::vector<double> tension = verlet.tensions(), force = verlet.constraint_forces();
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(tension[k], 10.0 * (3 - k), 1e-6);
  for (int i = 1; i < 4; ++i) EXPECT_NEAR(force[3 * i + 2], 10.0, 1e-6);
  // Σ z F_z: each link pulls with its tension over its length.
  const Mat3d virial = verlet.constraint_virial();
  EXPECT_NEAR(virial(2, 2), -(30.0 + 20 + 10), 1e-5);
  EXPECT_NEAR(virial(0, 2), 0, 1e-5);
}

TEST(Results, PlanesSpheresAndSumsHoldWhileMoving) {
  ParticleSystem system = points({{1, 0, 0}, {0, 2, 0.5}, {3, 1, 0.25}});
  system.velocity = {0, 1, 0.5, 1, 0.5, 0, -0.5, 0.25, 1};
  system.constraints.add_sphere(0, {0, 0, 0}, 1.0);
  system.constraints.add_plane(1, {0, 0, 0.5}, {0, 0, 1}, 1.0);
  system.constraints.add_linear({1, 2}, {{1, 0, 0}, {1, 0, 0}}, 3.0, 1.0);
  prepare(system, 1e-12, 0.01);
  system.force_field.gravity = {0, 0, -1};
  VelocityVerlet verlet(system, {.timestep = 0.01});
  run_steps(verlet, 500);
  EXPECT_LT(largest_violation_at(system.constraints, system.position).value, 1e-12);
  EXPECT_NEAR(system.position[5], 0.5, 1e-12);
}

}  // namespace
}  // namespace tarsus::md_test
