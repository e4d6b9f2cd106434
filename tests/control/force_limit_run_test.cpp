// Moving characters with limited drives: a sample of the long sweep, the drive force in the equations of motion, and
// the effect of spin damping.
#include <gtest/gtest.h>

#include <cmath>

#include "support/limit_sweep.hpp"

namespace tarsus::test {
namespace {

TEST(ForceLimitRuns, SampleOfTheLongSweep) {
  SweepIterations all;
  for (const char* name : {"humanoid", "dog", "snake36"}) expect_sweep_holds(name, {.seconds = 2, .seeds = 2}, all);
  EXPECT_LT(all.mean(), 4);
}

/// An independent RNEA at every step, without spin damping, gives the force that the limiter reports as applied.
TEST(ForceLimitRuns, AppliedForceClosesTheEquationsOfMotion) {
  for (const char* name : {"humanoid", "dog", "snake36"}) {
    const Model model = built_in(name);
    for (const double kp : {1e2, 1e4, 1e6}) {
      LimitRun run{.kp = kp, .kd = kp / 10, .limit = 50, .seconds = 0.5, .spin_damping = 0};
      run.products = VelocityProductMode::off;
      const LimitRunReport report = run_limited(model, run, 1);
      ASSERT_EQ(report.status, WorldStatus::ok);
      EXPECT_GT(report.saturated, 0) << name << ", kp " << kp;
      // 1e-9 of the limit, plus rounding errors of accelerations that large gains amplify.
      EXPECT_LT(report.worst_closure, 1e-8) << name << ", kp " << kp;
    }
  }
}

/// With drives at their limits the joints swing freely. Without spin damping explicit velocity-product forces make the
/// free snake blow up, and implicit ones do not.
TEST(ForceLimitRuns, WithoutSpinDampingVelocityProductsAreImplicit) {
  const Model model = built_in("snake36");
  LimitRun run{.kp = 1e3, .kd = 1e2, .limit = 10, .root_driven = false, .seconds = 30, .spin_damping = 0};
  const LimitRunReport implicit = run_limited(model, run);
  EXPECT_EQ(implicit.status, WorldStatus::ok);
  EXPECT_LT(implicit.top_speed, 100);
  run.products = VelocityProductMode::off;
  const LimitRunReport without = run_limited(model, run);
  EXPECT_TRUE(without.status != WorldStatus::ok || without.top_speed > 1e3);
  run.spin_damping = 0.5;
  const LimitRunReport with = run_limited(model, run);
  EXPECT_EQ(with.status, WorldStatus::ok);
  EXPECT_LT(with.top_speed, 100);
}

/// qacc of a step with limits that are never reached.
std::vector<double> limited_step(const Model& model, const State& state, double dt, double spin_damping) {
  Data data(model);
  DriveLimiter<double> limiter(model, data);
  Drives drives = Drives::none(model);
  drives.force_limit.assign(model.nv, 1e9), drives.spin_damping = spin_damping;
  std::vector<double> qacc(model.nv);
  limiter.solve(data, drives, dt, state.qpos, state.qvel, state.qpos, {}, {}, qacc);
  return qacc;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(SpinDamping, VanishesWithTheStepAndPutsNoForceOnRigidRotation) {
  const Model model = built_in("humanoid");
  Random random(3);
  State state = random_state(random, model);
  const auto effect = [&](double dt) {
    return largest_difference(limited_step(model, state, dt, 0.5), limited_step(model, state, dt, 0));
  };
  const auto slope = [&] { return std::log2(effect(1e-4) / effect(5e-5)); };
  EXPECT_NEAR(slope(), 1, 0.05);  // a force of first order
  // With rigid motion of the whole body only the velocity that the step itself adds remains, which is an order smaller.
  for (int k = 6; k < model.nv; ++k) state.qvel[k] = 0;
  EXPECT_NEAR(slope(), 2, 0.05);
}

TEST(SpinDamping, NeverDoesPositiveWorkAndKeepsLinearMomentum) {
  const Model model = built_in("dog");
  for (unsigned seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const State state = random_state(random, model);
    const double dt = 1.0 / 60;
    Data data(model);
    const std::vector<double> with = limited_step(model, state, dt, 0.5), without = limited_step(model, state, dt, 0);
    // The damping's own force: M (with - without), as RNEA is linear in the acceleration.
    std::vector<double> a(model.nv), b(model.nv);
    rnea<double>(model, data, state.qpos, state.qvel, with, a);
    rnea<double>(model, data, state.qpos, state.qvel, without, b);
    double work = 0, scale = 1;
    for (int k = 0; k < model.nv; ++k) {
      const double power = (a[k] - b[k]) * (state.qvel[k] + dt * with[k]);
      work += power, scale += std::abs(power);
    }
    EXPECT_LE(work, 1e-9 * scale) << "seed " << seed;
    for (int k = 0; k < 3; ++k)
      EXPECT_NEAR(a[k], b[k], 1e-8 * (1 + std::abs(a[k]))) << "seed " << seed;  // no force on the whole
  }
}

}  // namespace
}  // namespace tarsus::test
