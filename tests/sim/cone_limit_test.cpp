// A cone limit on a ball joint (constraint/cone_limit.cpp): where a pendulum comes to rest on it, that it adds no
// energy, and its law at the end velocity, alone and together with force limits and contacts.
#include <gtest/gtest.h>

#include <cmath>

#include "support/random_model.hpp"
#include "tarsus/constraint/spook.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

constexpr double kMass = 2, kLength = 0.5, kAngle = 0.6;

/// A rod along x on a ball joint at the origin, with gravity downwards; its mass is near the far end.
Model rod(double damping, const std::string& rest = "") {
  return compile(
      parse_mjcf(R"(<mujoco><option gravity="0 0 -9.81"/><worldbody>)" + rest +
                     R"(<body><joint name="shoulder" type="ball" damping=")" + std::to_string(damping) +
                     R"("/><inertial pos=".5 0 0" mass="2" diaginertia=".01 .02 .03"/></body></worldbody></mujoco>)",
                 "rod", "."));
}
/// The rod's angle from its initial pose.
double angle_of(const Data& data) {
  const Quatd q{data.qpos[0], data.qpos[1], data.qpos[2], data.qpos[3]};
  return std::acos(std::clamp(rotate(q, Vec3d{1, 0, 0}).x, -1.0, 1.0));
}

TEST(ConeLimit, APendulumRestsOnTheCone) {
  const Model model = rod(0.5);
  for (const double rate : {60.0, 240.0, 1000.0}) {
    Data data(model);
    StepOptions options;
    options.dt = 1 / rate;
    options.rows.user_limits = {cone_limit(model, "cone", 0, {1, 0, 0}, kAngle)};
    Stepper<double> stepper(model, data, options);
    for (int i = 0; i < int(20 * rate); ++i) ASSERT_EQ(stepper.step(data), 0);
    // The limit yields by R γ over the step's share of the gap: 0.0144 h² times the angular acceleration that it
    // prevents.
    const double torque = kMass * 9.81 * kLength * std::cos(kAngle), inertia = 0.03 + kMass * kLength * kLength;
    EXPECT_NEAR(angle_of(data), kAngle, 0.1 * options.dt * options.dt * torque / inertia);
    EXPECT_NEAR(stepper.rows()->terms().user_limit_force(0), torque, 1e-3 * torque);
    EXPECT_LT(std::hypot(data.qvel[0], data.qvel[1], data.qvel[2]), 1e-9);
  }
}

/// A limit that is far at the start of a step holds in that step if the step's own force would pass it, and its
/// function is evaluated once.
TEST(UserLimit, HoldsAgainstWhatAStepPushesThroughIt) {
  const Model model = compile(parse_mjcf(R"(<mujoco><option gravity="0 0 0"/><worldbody><body>
      <joint type="slide" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia=".6 .6 1"/></body></worldbody></mujoco>)",
                                         "slide", "."));
  for (const auto mode : {VelocityProductMode::off, VelocityProductMode::automatic, VelocityProductMode::on}) {
    Data data(model);
    StepOptions options;
    options.dt = 1.0 / 60, options.velocity_products = mode;
    int asked = 0;
    const auto evaluate = [&](std::span<const double> q) {
      ++asked;
      return std::optional(UserLimit::Value{0.03 - q[0], {-1, 0, 0}});
    };
    options.rows.user_limits = {{"ceiling", 0, evaluate}};
    Stepper<double> stepper(model, data, options);
    data.tau[0] = 3600;
    ASSERT_EQ(stepper.step(data), 0);
    EXPECT_EQ(asked, 1);
    EXPECT_NEAR(data.qpos[0], 0.03, 0.005);
    EXPECT_GT(stepper.rows()->terms().user_limit_force(0), 3000);
    EXPECT_EQ(stepper.rows()->report().limits, 1);
  }
}

TEST(ConeLimit, HittingItMakesNoEnergy) {
  const Model model = rod(0);
  test::Random random(11);
  int hits = 0;
  for (int run = 0; run < 40; ++run) {
    Data data(model);
    StepOptions options;
    options.dt = 1.0 / 240;
    options.rows.user_limits = {cone_limit(model, "cone", 0, {1, 0, 0}, kAngle)};
    Stepper<double> stepper(model, data, options);
    for (int k = 0; k < 3; ++k) data.qvel[k] = random.uniform(-6, 6);
    data.qvel[0] *= 0.2;
    double before = 1e300;
    bool touched = false;
    for (int i = 0; i < 480; ++i) {
      ASSERT_EQ(stepper.step(data), 0);
      const bool now = stepper.rows()->terms().user_limit_force(0) > 0;
      const double height =
          rotate(Quatd{data.qpos[0], data.qpos[1], data.qpos[2], data.qpos[3]}, Vec3d{kLength, 0, 0}).z;
      const double y = data.qvel[1], z = data.qvel[2], x = data.qvel[0];
      const double I = kMass * kLength * kLength;
      const double energy = 0.5 * (0.01 * x * x + (0.02 + I) * y * y + (0.03 + I) * z * z) + kMass * 9.81 * height;
      // Explicit positions: a step of free fall changes the energy by ½ m g² h², a fast spin by terms in h³.
      if (now && touched) {
        EXPECT_LE(energy, before + 0.02) << "run " << run << " step " << i;
      }
      hits += now && !touched;
      touched = now, before = energy;
      ASSERT_LT(angle_of(data), kAngle + 0.02);
    }
  }
  EXPECT_GT(hits, 40);
}

/// γ = max(0, (b - e·v⁺)/R) with b, R and e from the start of the step, by formulas written here.
TEST(ConeLimit, ItsLawHoldsAtTheEndVelocity) {
  const Model model = rod(0);
  test::Random random(5);
  int pushing = 0, open = 0;
  for (int run = 0; run < 400; ++run) {
    Data data(model);
    StepOptions options;
    options.dt = 1.0 / 60, options.rows.solve.tolerance = 1e-11;
    options.rows.user_limits = {cone_limit(model, "cone", 0, {1, 0, 0}, kAngle)};
    Stepper<double> stepper(model, data, options);
    const Vec3d about{0, std::sin(run), std::cos(run)};
    const double twist = random.uniform(-3, 3);
    const Quatd q = exp_map(about * (kAngle + random.uniform(-0.1, 0.02))) * axis_angle({1, 0, 0}, twist);
    data.qpos[0] = q.w, data.qpos[1] = q.x, data.qpos[2] = q.y, data.qpos[3] = q.z;
    for (int k = 0; k < 3; ++k) data.qvel[k] = random.uniform(-5, 5);
    const Vec3d rest = rotate(conjugate(q), Vec3d{1, 0, 0}), across = cross(rest, Vec3d{1, 0, 0});
    const Vec3d e = across * (-1 / norm(across));
    const double gap = kAngle - std::asin(norm(across));
    const double speed = e.x * data.qvel[0] + e.y * data.qvel[1] + e.z * data.qvel[2];
    ASSERT_EQ(stepper.step(data), 0);
    const double inertia = (0.06 + 2 * kMass * kLength * kLength) / 3;  // mean about the three axes
    const double share = 4 / (1 + 4 * kDampingSteps), R = share * TermOptions().relative_compliance / inertia;
    const double b = spook_unilateral({}, gap, speed, options.dt).target;
    const double after = e.x * data.qvel[0] + e.y * data.qvel[1] + e.z * data.qvel[2];
    const double impulse = options.dt * stepper.rows()->terms().user_limit_force(0);
    EXPECT_NEAR(impulse, std::max(0.0, (b - after) / R), 1e-9 / R) << run;
    (impulse > 0 ? pushing : open) += 1;
  }
  EXPECT_GT(pushing, 50);
  EXPECT_GT(open, 50);
}

/// Beside an elbow whose drive is at its force limit and a hand that touches the floor. The reported forces are those
/// of the motion, by inverse dynamics.
TEST(ConeLimit, HoldsBesideForceLimitsAndContacts) {
  const Model model = compile(parse_mjcf(R"(<mujoco><option gravity="0 0 -9.81"/><worldbody>
    <geom type="plane" size="5 5 .1" pos="0 0 -.45"/>
    <body><joint name="shoulder" type="ball"/><geom type="capsule" fromto="0 0 0 .5 0 0" size=".04" contype="0" conaffinity="0"/>
      <body pos=".5 0 0"><joint name="elbow" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" contype="0" conaffinity="0"/>
        <geom type="sphere" pos=".3 0 0" size=".05"/></body></body></worldbody></mujoco>)",
                                         "arm", "."));
  Data data(model), other(model);
  Drives drives = Drives::uniform(model, 0, 0, 0, 0);
  drives.kp[3] = 500, drives.kd[3] = 20;
  drives.force_limit.assign(4, kInfinity), drives.force_limit[3] = 3, drives.spin_damping = 0;
  StepOptions options;
  options.dt = 1.0 / 120, options.rows.contacts = true, options.rows.solve.tolerance = 1e-11;
  options.velocity_products = VelocityProductMode::off;  // inverse dynamics takes them at the start of the step
  options.rows.user_limits = {cone_limit(model, "cone", 0, {1, 0, 0}, kAngle)};
  Stepper<double> stepper(model, data, options);
  AlignedVector<double> target(data.qpos);
  int all = 0;
  for (int i = 0; i < 1200; ++i) {
    target[4] = 1.5 * std::sin(0.02 * i);
    const AlignedVector<double> q(data.qpos), v(data.qvel);
    const Vec3d rest = rotate(conjugate(Quatd{q[0], q[1], q[2], q[3]}), Vec3d{1, 0, 0}),
                across = cross(rest, Vec3d{1, 0, 0});
    ASSERT_EQ(stepper.step(data, drives, target), 0) << i;
    ASSERT_EQ(stepper.rows()->report().status, StepStatus::converged) << i;
    ASSERT_LE(stepper.rows()->report().residual, 1e-9) << i;
    const double elbow = stepper.drive_force()[3], cone = stepper.rows()->terms().user_limit_force(0);
    ASSERT_LE(std::abs(elbow), 3 * (1 + 1e-9)) << i;
    ASSERT_GE(cone, 0) << i;
    std::vector<double> qacc(4), tau(4), expected(4);
    for (int k = 0; k < 4; ++k) qacc[k] = (data.qvel[k] - v[k]) / options.dt;
    rnea<double>(model, other, q, v, qacc, tau);
    kinematics<double>(model, other, q, v);
    expected[3] = elbow;
    if (cone > 0) {
      for (int k = 0; k < 3; ++k) expected[k] -= cone * across[k] / norm(across);
    }
    bool touches = false;
    for (std::size_t c = 0; c < stepper.rows()->contacts().size(); ++c) {
      const LinkContact& contact = stepper.rows()->contacts()[c];
      const Vec3d f = stepper.rows()->terms().force(int(c)) * (contact.a >= 0 ? 1 : -1);
      std::vector<double> J(24);
      const Vec3d& p = contact.point.position;
      jacobian<double>(model, other, 2, std::vector<double>{p.x, p.y, p.z}, J);
      for (int k = 0; k < 4; ++k) expected[k] += J[12 + k] * f.x + J[16 + k] * f.y + J[20 + k] * f.z;
      touches = touches || norm(f) > 0;
    }
    for (int k = 0; k < 4; ++k) ASSERT_NEAR(tau[k], expected[k], 1e-8 * (1 + norm(Vec3d{tau[0], tau[1], tau[2]}))) << i;
    all += cone > 0 && touches && std::abs(elbow) > 3 * (1 - 1e-9);
  }
  EXPECT_GT(all, 20);
}

TEST(ConeLimit, WhatItCannotBeIsSaidByName) {
  const Model model = compile(parse_mjcf(R"(<mujoco><worldbody><body><joint name="hinge"/><geom size=".1"/>
    <body><joint name="ball" type="ball"/><geom size=".1"/></body></body></worldbody></mujoco>)",
                                         "m", "."));
  EXPECT_THROW(cone_limit(model, "c", 0, {1, 0, 0}, 1), ValueError);
  EXPECT_THROW(cone_limit(model, "c", 1, {1, 1, 0}, 1), ValueError);
  EXPECT_THROW(cone_limit(model, "c", 1, {1, 0, 0}, 4), ValueError);
  StepOptions options;
  options.rows.user_limits = {cone_limit(model, "c", 1, {1, 0, 0}, 1)};
  EXPECT_NE(lanes_refusal<double>(model, options, nullptr).find("user-defined limits"), std::string::npos);
  options.rows.user_limits[0].evaluate = nullptr;
  Data data(model);
  EXPECT_THROW(Stepper<double>(model, data, options), ValueError);
}

}  // namespace
}  // namespace tarsus
