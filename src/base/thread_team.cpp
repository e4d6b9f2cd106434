#include "tarsus/base/thread_team.hpp"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tarsus/base/error.hpp"

namespace tarsus {

namespace {

/// Polls `ready` at most `tries` times. @return whether it became true
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

/// Number of forks from the first process to this one, counted from the first team on.
std::atomic<unsigned> forks_so_far{0};

unsigned count_forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks_so_far.fetch_add(1, std::memory_order_relaxed); });
  return registered == 0 ? forks_so_far.load(std::memory_order_relaxed) : 0;
}

void check_threads(int threads) {
  if (threads < 1 || threads > 256) throw ValueError("threads", std::to_string(threads), "1 to 256");
}

}  // namespace

/// The other threads, and the atomics that they wait on.
struct ThreadTeam::Crew {
  std::vector<std::thread> threads;
  const std::function<void(int)>* work = nullptr;
  std::mutex mutex;
  std::condition_variable wake;
  std::atomic<unsigned> round{0};  // of run()
  std::atomic<bool> stop{false};
  std::atomic<int> arrived{0};
  std::atomic<unsigned> phase{0};

  explicit Crew(int size) {
    threads.reserve(std::size_t(size));
    try {
      for (int t = 1; t < size; ++t) threads.emplace_back([this, t] { wait_for_work(t); });
    } catch (const std::exception&) {
      end();
      throw ValueError("threads", std::to_string(size), "fewer threads: the system could not start as many");
    }
  }
  ~Crew() { end(); }

  void end() {
    begin_round([this] { stop = true; });
    for (std::thread& t : threads) t.join();
  }

  template <class Set>
  void begin_round(const Set& set) {
    {
      const std::lock_guard lock(mutex);
      set();
      round.fetch_add(1, std::memory_order_release);
    }
    wake.notify_all();
  }
  void wait_for_work(int thread) {
    unsigned seen = 0;
    while (true) {
      if (!spin([&] { return round.load(std::memory_order_acquire) != seen; }, kSpins)) {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return round.load(std::memory_order_acquire) != seen; });
      }
      ++seen;
      if (stop) return;
      (*work)(thread);
      barrier();
    }
  }
  void barrier() {
    const unsigned before = phase.load(std::memory_order_acquire);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) == int(threads.size())) {
      arrived.store(0, std::memory_order_relaxed);
      phase.fetch_add(1, std::memory_order_release);
      phase.notify_all();
      return;
    }
    // Sleeps instead of yielding: on busy cores a woken thread runs soon, while a yielding thread waits for its turn.
    const auto passed = [&] { return phase.load(std::memory_order_acquire) != before; };
    while (!spin(passed, kSpins)) phase.wait(before, std::memory_order_acquire);
  }
};

ThreadTeam::ThreadTeam(int threads) : size_(threads) {
  check_threads(threads);
  if (size_ > 1) start();
}

/// Starts a crew in this process. A crew of the parent process is leaked: its threads do not exist here, and the
/// objects that they waited on cannot be destroyed.
void ThreadTeam::start() {
  (void)crew_.release();
  forks_ = count_forks();
  crew_ = std::make_unique<Crew>(size_);
}

int ThreadTeam::useful(int threads) {
  check_threads(threads);
  cpu_set_t cores;
  const bool known = sched_getaffinity(0, sizeof cores, &cores) == 0;
  return std::min(threads, std::max(1, known ? CPU_COUNT(&cores) : int(std::thread::hardware_concurrency())));
}

ThreadTeam::~ThreadTeam() {
  if (crew_ && forks_ != count_forks()) (void)crew_.release();
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  if (size_ == 1) return work(0);
  if (forks_ != count_forks()) start();
  crew_->begin_round([&] { crew_->work = &work; });
  work(0);
  crew_->barrier();
}

void ThreadTeam::barrier() {
  if (size_ > 1) crew_->barrier();
}

}  // namespace tarsus
