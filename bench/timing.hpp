// Shared by the benchmarks: processor time of one thread pinned to one core, and calls that alternate, so that their
// ratios refer to the same machine state.
#pragma once

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tarsus/io/model_file.hpp"
#include "tarsus/model/model.hpp"

namespace tarsus::bench {

/// Processor time of this thread [s], unaffected by other programs.
inline double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Pins this thread to the first core that the process may use.
inline void pin_to_one_core() {
  cpu_set_t all, one;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) fmt::print(stderr, "not pinned to a core\n");
    return;
  }
}

inline Model built_in(const std::string& name) {
  Model model = compile(read_model(std::filesystem::path(TARSUS_SOURCE_DIR) / "models" / (name + ".xml")));
  model.name = name;
  return model;
}

/// Time of a call [ns].
struct Timing {
  double best = 1e300, median = 0;
};

struct TimingOptions {
  int rounds = 12;      ///< maximum number; rounds end early when the two best agree within 1 % for every call
  int repeats = 15;     ///< number of repeats in a round
  double block = 5e-4;  ///< minimum time of one repeat [s]
};

/// Times calls, which alternate.
inline std::vector<Timing> time_in_turn(const std::vector<std::function<void()>>& calls,
                                        const TimingOptions& options = {}) {
  const std::size_t n = calls.size();
  std::vector<int> count(n, 1);
  for (std::size_t c = 0; c < n; ++c) {
    for (double spent = 0; spent < options.block; count[c] *= 2) {
      const double start = seconds();
      for (int i = 0; i < count[c]; ++i) calls[c]();
      spent = seconds() - start;
    }
  }
  std::vector<std::vector<double>> all(n), rounds(n);
  for (int round = 0; round < options.rounds; ++round) {
    std::vector<double> best(n, 1e300);
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
      for (std::size_t c = 0; c < n; ++c) {
        const double start = seconds();
        for (int i = 0; i < count[c]; ++i) calls[c]();
        all[c].push_back((seconds() - start) / count[c] * 1e9);
        best[c] = std::min(best[c], all[c].back());
      }
    }
    bool agree = round > 0;
    for (std::size_t c = 0; c < n; ++c) {
      rounds[c].push_back(best[c]);
      std::sort(rounds[c].begin(), rounds[c].end());
      agree = agree && rounds[c][1] < 1.01 * rounds[c][0];
    }
    if (agree) break;
  }
  std::vector<Timing> out;
  for (std::vector<double>& times : all) {
    std::sort(times.begin(), times.end());
    out.push_back({times.front(), times[times.size() / 2]});
  }
  return out;
}

}  // namespace tarsus::bench
