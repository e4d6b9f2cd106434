// A few threads that run one function together and meet at barriers, many times a millisecond.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tarsus {

/// The calling thread is number 0; the others wait between runs. Not for use by two threads at once.
class ThreadTeam {
 public:
  /// @param threads 1 to 256   @throws ValueError
  explicit ThreadTeam(int threads = 1);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }
  /// Calls work(0) to work(size - 1), one on each thread, and returns when all have returned. `work` must not throw.
  void run(const std::function<void(int)>& work);
  /// Inside work: returns when every thread of the team has come here. Spins, then sleeps.
  void barrier();

  /// This thread's share of [0, count).
  struct Range {
    int begin, end;
  };
  Range share(int count, int thread) const {
    const auto cut = [&](int t) { return int(static_cast<long long>(count) * t / size_); };
    return {cut(thread), cut(thread + 1)};
  }

 private:
  void wait_for_work(int thread);

  int size_;
  std::vector<std::thread> others_;
  const std::function<void(int)>* work_ = nullptr;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<unsigned> round_{0};  // of run()
  std::atomic<bool> stop_{false};
  std::atomic<int> arrived_{0};
  std::atomic<unsigned> phase_{0};
};

}  // namespace tarsus
