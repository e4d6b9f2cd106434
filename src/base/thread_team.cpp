#include "tarsus/base/thread_team.hpp"

#include <string>

#include "tarsus/base/error.hpp"

namespace tarsus {

namespace {

/// Waits a little while the answer is expected within a microsecond, then lets others run.
template <class Ready>
bool spin(const Ready& ready, int tries) {
  for (int i = 0; i < tries; ++i) {
    if (ready()) return true;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  return false;
}

constexpr int kSpins = 12000;  // some 200 µs

}  // namespace

ThreadTeam::ThreadTeam(int threads) : size_(threads) {
  if (threads < 1 || threads > 256) throw ValueError("threads", std::to_string(threads), "1 to 256");
  for (int t = 1; t < threads; ++t) others_.emplace_back([this, t] { wait_for_work(t); });
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    ++round_;
  }
  wake_.notify_all();
  for (std::thread& t : others_) t.join();
}

void ThreadTeam::wait_for_work(int thread) {
  unsigned seen = 0;
  while (true) {
    if (!spin([&] { return round_.load(std::memory_order_acquire) != seen; }, kSpins)) {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return round_.load(std::memory_order_acquire) != seen; });
    }
    ++seen;
    if (stop_) return;
    (*work_)(thread);
    barrier();
  }
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  if (size_ == 1) return work(0);
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    round_.fetch_add(1, std::memory_order_release);
  }
  wake_.notify_all();
  work(0);
  barrier();
}

void ThreadTeam::barrier() {
  if (size_ == 1) return;
  const unsigned phase = phase_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    phase_.fetch_add(1, std::memory_order_release);
    phase_.notify_all();
    return;
  }
  // Asleep, not yielding: where others compete for the cores, who is woken soon runs; who yields waits for his turn.
  const auto passed = [&] { return phase_.load(std::memory_order_acquire) != phase; };
  while (!spin(passed, kSpins)) phase_.wait(phase, std::memory_order_acquire);
}

}  // namespace tarsus
