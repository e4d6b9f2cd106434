// Characters with limited drives over all gains and limits, 100 seeds of 30 s each: no run diverges, and every step's
// force is the clamped one.
#include <gtest/gtest.h>

#include <future>

#include "support/limit_sweep.hpp"

namespace tarsus::test {
namespace {

TEST(ForceLimitSweep, HundredSeedsOfThirtySeconds) {
  std::vector<std::future<SweepIterations>> sweeps;
  for (const char* name : {"humanoid", "dog", "snake36"}) {
    sweeps.push_back(std::async(std::launch::async, [name] {
      SweepIterations iterations;
      expect_sweep_holds(name, {.seconds = 30, .seeds = 100}, iterations);
      return iterations;
    }));
  }
  SweepIterations all;
  for (auto& sweep : sweeps) {
    const SweepIterations iterations = sweep.get();
    all += iterations;
    std::printf("mean iterations of a step: %.3f\n", iterations.mean());
  }
  std::printf("together: %.3f\n", all.mean());
  EXPECT_LT(all.mean(), 4);
}

}  // namespace
}  // namespace tarsus::test
