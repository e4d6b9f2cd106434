// A few threads that run one function together and synchronise at barriers, many times a millisecond.
#pragma once

#include <functional>
#include <memory>

namespace tarsus {

/// The calling thread is number 0; the others wait between runs. Two threads must not use a team at once. A forked
/// child has none of its parent's other threads; its next run() starts new ones.
class ThreadTeam {
 public:
  /// Starts threads - 1 threads. @param threads 1 to 256  @throws ValueError, also if the system cannot start as many
  explicit ThreadTeam(int threads = 1);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }
  /// This many threads, but no more than the cores that the calling thread may use: waiting at barriers for threads
  /// that have no core takes a hundred times as long as the work.  @throws ValueError for fewer than 1 or more than 256
  static int useful(int threads);
  /// Calls work(0) to work(size - 1), one on each thread, and returns when all have returned. `work` must not throw.
  void run(const std::function<void(int)>& work);
  /// Calls work(i) for all i < count; each thread takes its share.
  template <class Work>
  void each(int count, const Work& work) {
    run([&](int thread) {
      const Range range = share(count, thread);
      for (int i = range.begin; i < range.end; ++i) work(i);
    });
  }
  /// To be called in work: returns when every thread of the team has called it. Spins, then sleeps.
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
  struct Crew;
  void start();

  int size_;
  std::unique_ptr<Crew> crew_;  // size_ - 1 threads; null for a size of 1
  unsigned forks_ = 0;          // the process' fork count when the crew was started
};

}  // namespace tarsus
