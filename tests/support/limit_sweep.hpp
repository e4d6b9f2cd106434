// Characters with limited drives over gains of 1e2 to 1e6 N m/rad and limits of 1 to 1e4 N m: the conditions on each
// run and on the mean of all runs.
#pragma once

#include <gtest/gtest.h>

#include "support/limit_run.hpp"

namespace tarsus::test {

struct Sweep {
  double seconds = 1;
  int seeds = 1;
};

struct SweepIterations {
  double iterations = 0, steps = 0;
  double mean() const { return iterations / steps; }
  void operator+=(const SweepIterations& other) { iterations += other.iterations, steps += other.steps; }
};

/// For every other seed the root is driven within the same limits; otherwise the character falls freely.
inline void expect_sweep_holds(const std::string& name, const Sweep& sweep, SweepIterations& sum) {
  const Model model = built_in(name);
  for (double kp = 1e2; kp < 2e6; kp *= 10) {
    for (double limit = 1; limit < 2e4; limit *= 10) {
      for (int seed = 0; seed < sweep.seeds; ++seed) {
        const LimitRun run{.kp = kp,
                           .kd = kp / 10,
                           .limit = limit,
                           .root_driven = seed % 2 == 1,
                           .seconds = sweep.seconds,
                           .seed = unsigned(seed)};
        const LimitRunReport report = run_limited(model, run);
        ASSERT_EQ(report.status, WorldStatus::ok) << name << ", kp " << kp << ", limit " << limit << ", seed " << seed;
        // The drives alone demand 10 rad/s at most (1 rad of error, kd = kp / 10); swinging limbs reach a few times
        // that.
        ASSERT_LT(report.top_speed, 100) << name << ", kp " << kp << ", limit " << limit << ", seed " << seed;
        ASSERT_LT(report.residual, 1e-9) << name << ", kp " << kp << ", limit " << limit << ", seed " << seed;
        sum += {report.iterations, double(report.steps)};
      }
    }
  }
}

}  // namespace tarsus::test
