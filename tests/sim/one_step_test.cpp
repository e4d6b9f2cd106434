// All constraints active in one step: drives at their force limits, joint ranges, loops, contacts. Force limits are
// checked by inverse dynamics.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "support/random_model.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

/// A pendulum with a range of ±1 rad and a stiff drive at its force limit. Exact: I (v⁺ - v)/h + C = u within the
/// range.
TEST(OneStep, issue_014_AForceLimitAndARangeMeet) {
  const Model model = compile(parse_mjcf(R"(<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
    <body pos="0 0 1"><joint axis="0 1 0" range="-1 1" limited="true"/>
      <geom type="capsule" fromto="0 0 0 0 0 -.5" size=".05" mass="1"/></body></worldbody></mujoco>)",
                                         "pendulum", "."));
  struct {
    double kp, limit, q, v, target;
  } const cases[] = {{1e6, 200, -.9973275, -9.17675252, -1.06278546},
                     {1e6, 200, .94326251, 7.9539687, 1.38199466},
                     {1e4, 50, .99744362, 8.15988282, 1.06370265}};
  const double h = 1.0 / 60;
  for (const auto& c : cases) {
    SCOPED_TRACE(testing::Message() << "from " << c.q << " rad at " << c.v << " rad/s");
    Data data(model);
    data.qpos[0] = c.q, data.qvel[0] = c.v;
    double inertia, bias;
    crba<double>(model, data, data.qpos, {&inertia, 1});
    bias_force<double>(model, data, data.qpos, data.qvel, {&bias, 1});
    Drives drives = Drives::uniform(model, c.kp, c.kp / 10, 0, 0);
    drives.force_limit = {c.limit};
    StepOptions options;
    options.dt = h, options.rows.joints = true;
    Stepper<double> stepper(model, data, options);
    const AlignedVector<double> target(1, c.target);
    ASSERT_EQ(stepper.step(data, drives, target), 0);
    double low = -1e3, high = 1e3;  // the root without the range
    for (int k = 0; k < 200; ++k) {
      const double v = 0.5 * (low + high);
      const double force = std::clamp(-c.kp * (c.q + h * v - c.target) - c.kp / 10 * v, -c.limit, c.limit);
      (inertia * (v - c.v) / h + bias - force > 0 ? high : low) = v;
    }
    const double exact = std::min(std::max(high, (-1 - c.q) / h), (1 - c.q) / h);
    EXPECT_NEAR(data.qvel[0], exact, 0.6);  // a range yields by its compliance: h² 200 N m / I at 1.4 %
    EXPECT_NEAR(data.qpos[0], c.q + h * exact, 0.01);
    EXPECT_LE(std::abs(stepper.drive_force()[0]), c.limit * (1 + 1e-9));
    EXPECT_EQ(stepper.rows()->report().status, StepStatus::converged);
  }
}

/// A loop, and drives at their force limits: the loop's rows hold at the end velocity.
TEST(OneStep, issue_014_LoopsHoldWhereForceLimitsBind) {
  const Model model = compile(read_mjcf(TARSUS_SOURCE_DIR "/models/loops/four_bar.xml", {}));
  Data data(model);
  Drives drives = Drives::uniform(model, 1e4, 1e3, 0, 0);
  drives.force_limit.assign(model.nv, 5.0);
  StepOptions options;
  options.dt = 1.0 / 60;
  Stepper<double> stepper(model, data, options);
  AlignedVector<double> target(data.qpos);
  int at_limit = 0;
  for (int i = 0; i < 300; ++i) {
    for (const Joint& j : model.joints) {
      if (j.nv() == 1) target[j.qpos] = 0.5 * std::sin(0.3 * i + j.qpos);
    }
    ASSERT_EQ(stepper.step(data, drives, target), 0) << i;
    for (int k = 0; k < model.nv; ++k) ASSERT_LE(std::abs(stepper.drive_force()[k]), 5 * (1 + 1e-9)) << i;
    at_limit += stepper.limit_report(0)->saturated;
    ASSERT_TRUE(stepper.limit_report(0)->converged) << i;
    ASSERT_LE(int(stepper.loops()->status(0)), int(KktStatus::redundant)) << i;
    ASSERT_LT(stepper.loops()->error(0).position, 5e-3) << i;
  }
  EXPECT_GT(at_limit, 30);
}

/// The drives' forces equal those that the motion needs, by inverse dynamics, and stay within their limits.
TEST(OneStep, ForceLimitsHoldInTheEquationsOfMotion) {
  const Model model = compile(read_mjcf(TARSUS_SOURCE_DIR "/models/humanoid.xml", {}));
  Data data(model), other(model);
  Drives drives = Drives::uniform(model, 1e6, 1e5, 0, 0);
  drives.force_limit.assign(model.nv, 50.0);
  for (int k = 0; k < 6; ++k) drives.force_limit[k] = kInfinity;
  StepOptions options;
  options.dt = 1.0 / 60, options.rows.joints = true;     // no contacts: only the drives and the ranges act
  options.velocity_products = VelocityProductMode::off;  // inverse dynamics takes them at the start of the step
  Stepper<double> stepper(model, data, options);
  AlignedVector<double> target(data.qpos);
  std::vector<double> needed(model.nv), qacc(model.nv);
  for (int i = 0; i < 120; ++i) {
    for (const Joint& j : model.joints) {
      if (j.nv() == 1) target[j.qpos] = 0.4 * std::sin(0.2 * i + j.qpos);
    }
    const AlignedVector<double> q(data.qpos), v(data.qvel);
    ASSERT_EQ(stepper.step(data, drives, target), 0) << i;
    for (int k = 0; k < model.nv; ++k) qacc[k] = (data.qvel[k] - v[k]) * 60;
    rnea<double>(model, other, q, v, qacc, needed);
    double scale = 1;
    for (const double f : needed) scale = std::max(scale, std::abs(f));
    for (int k = 0; k < 6; ++k) EXPECT_NEAR(needed[k], 0, 1e-9 * scale) << "a root wrench in step " << i;
    for (const Joint& j : model.joints) {
      if (j.type == JointType::free) continue;
      double length = 0;
      for (int k = 0; k < j.nv(); ++k) length = std::hypot(length, stepper.drive_force()[j.qvel + k]);
      EXPECT_LE(length, 50 * (1 + 1e-9)) << j.name << " in step " << i;
    }
  }
}

/// The rows of dry friction are a million times as stiff as the inertia that they act on. Where a step's forces stop a
/// chain of balls that turns fast, an iteration that starts from the initial velocity loses in float the digits that
/// determine the friction. An iteration that continues from the previous one's velocity does not.
TEST(OneStep, DryFrictionIsFoundInFloatHoweverFastWhatItStops) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  std::string bodies = "<body><freejoint/><inertial pos='.02 .1 0' mass='1' diaginertia='.02 .03 .025'/>";
  for (int i = 0; i < 6; ++i)
    bodies +=
        "<body pos='.2 .05 0'><joint type='ball' frictionloss='.3'/>"
        "<inertial pos='.1 .02 .03' mass='1' diaginertia='.02 .03 .025'/>";
  for (int i = 0; i < 7; ++i) bodies += "</body>";
  const Model model = compile(parse_mjcf("<mujoco><worldbody>" + bodies + "</worldbody></mujoco>", "chain", "."));
  StepOptions options;
  options.dt = 0.002, options.rows.joints = true, options.velocity_products = VelocityProductMode::off;
  test::Random random(5);
  int most = 0, sum = 0;
  for (int run = 0; run < 60; ++run) {
    Data exact(model);
    for (double& v : exact.qvel) v = random.uniform(-17, 17);
    std::vector<double> turn(model.nv, 0.0), stop(model.nv), force(model.nv);
    for (double& v : turn) v = random.uniform(-1, 1);
    AlignedVector<double> q(model.nq);
    integrate<double>(model, exact, exact.qpos, turn, 1, q);
    for (int k = 0; k < model.nv; ++k) stop[k] = -exact.qvel[k] / options.dt;
    rnea<double>(model, exact, q, exact.qvel, stop, force);
    BasicData<float> data(model);
    std::copy(q.begin(), q.end(), data.qpos.begin());
    std::copy(exact.qvel.begin(), exact.qvel.end(), data.qvel.begin());
    for (int k = 0; k < model.nv; ++k) data.tau[k] = float(force[k] + (k < 6 ? 0 : random.uniform(-0.1, 0.1)));
    Stepper<float> stepper(model, data, options);
    ASSERT_EQ(stepper.step(data), 0);
    const RowsReport& report = stepper.rows()->report();
    EXPECT_EQ(report.status, StepStatus::converged);
    most = std::max(most, report.iterations), sum += report.iterations;
  }
  EXPECT_LE(most, 12);
  EXPECT_LE(sum, 60 * 6);
}

TEST(OneStep, OptionsThatAreNoNumbersAreNamed) {
  const Model model = compile(read_mjcf(TARSUS_SOURCE_DIR "/models/humanoid.xml", {}));
  const Data data(model);
  using Rows = RowStageOptions;
  using Number = double& (*)(Rows&);
  for (const auto& [name, number] :
       {std::pair<const char*, Number>("tolerance", [](Rows& r) -> double& { return r.solve.tolerance; }),
        {"relative_compliance", [](Rows& r) -> double& { return r.relative_compliance; }},
        {"restitution", [](Rows& r) -> double& { return r.restitution; }},
        {"restitution_threshold", [](Rows& r) -> double& { return r.restitution_threshold; }},
        {"limit_spook.compliance", [](Rows& r) -> double& { return r.limit_spook.compliance; }},
        {"limit_spook.damping_time", [](Rows& r) -> double& { return r.limit_spook.damping_time; }}}) {
    for (const double bad : {std::nan(""), -1.0}) {
      StepOptions options;
      options.rows.contacts = true, number(options.rows) = bad;
      try {
        const Stepper<double> stepper(model, data, options);
        ADD_FAILURE() << name;
      } catch (const ValueError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with(std::string(name) + ": is ")) << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace tarsus
