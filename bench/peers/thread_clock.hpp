// Passed to the prototype with -include. It makes steady_clock return this thread's processor time, as in tarsus'
// benchmarks, so that other programs on the machine do not affect the result.
#pragma once

#include <chrono>
#include <ctime>

namespace std::chrono {

struct thread_clock {
  using duration = nanoseconds;
  using time_point = chrono::time_point<thread_clock, duration>;
  static time_point now() {
    timespec t{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return time_point(seconds(t.tv_sec) + nanoseconds(t.tv_nsec));
  }
};

}  // namespace std::chrono

#define steady_clock thread_clock
