// Limited characters over all gains and limits, 100 seeds of 30 s each: nothing blows up, every step's force is the
// clamped one.
#include <gtest/gtest.h>

#include <future>

#include "support/limit_sweep.hpp"

namespace tarsus::test {
namespace {

TEST(ForceLimitSweep, HundredSeedsOfThirtySeconds) {
  std::vector<std::future<SweepRounds>> sweeps;
  for (const char* name : {"humanoid", "dog", "snake36"}) {
    sweeps.push_back(std::async(std::launch::async, [name] {
      SweepRounds rounds;
      expect_sweep_holds(name, {.seconds = 30, .seeds = 100}, rounds);
      return rounds;
    }));
  }
  SweepRounds all;
  for (auto& sweep : sweeps) {
    const SweepRounds rounds = sweep.get();
    all += rounds;
    std::printf("mean rounds of a step: %.3f\n", rounds.mean());
  }
  std::printf("together: %.3f\n", all.mean());
  EXPECT_LT(all.mean(), 4);
}

}  // namespace
}  // namespace tarsus::test
