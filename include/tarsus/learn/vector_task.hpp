// Many worlds of one task, stepped together: the interface for reinforcement learning.
//
// Arrays are world-major, [world][index]. A world's numbers do not depend on the other worlds, on their number or on
// the number of threads: episode k of world w starts from EpisodeRandom(seed + w, k). A step takes each pack of worlds
// from its actions to its observations before it proceeds to the next pack.
#pragma once

#include <functional>

#include "tarsus/learn/task.hpp"
#include "tarsus/sim/batch.hpp"

namespace tarsus {

/// What happens to a world after its episode has ended. [Gymnasium's AutoresetMode]
enum class Autoreset {
  next_step,  ///< the next step resets it: reward 0, its action is ignored
  same_step,  ///< reset at once; final_observation() has the last observation of the episode
  disabled,   ///< nothing until reset() with a mask; stepping the world before is an error
};

/// A user-defined drive law: computes the joint forces [nv] of one world at the start of a simulation step from its
/// qpos, its qvel and the drives' targets qpos_target [nq].
template <class R>
using DriveLaw = std::function<void(In<R> qpos, In<R> qvel, In<R> qpos_target, Out<R> tau)>;

struct VectorTaskOptions {
  int worlds = 1;
  int threads = 1;
  std::uint64_t seed = 0;  ///< world w uses seed + w
  Autoreset autoreset = Autoreset::next_step;
};

template <class R>
class VectorTask {
 public:
  /// Keeps a reference to the task. Call reset() before the first step().
  /// @param make_law creates a law for each thread, which replaces the task's drives; null: use the drives
  /// @throws ValueError for options out of range, and for a law if the task has no drives
  VectorTask(const Task& task, const VectorTaskOptions& options, const std::function<DriveLaw<R>()>& make_law = {});
  ~VectorTask();

  /// Starts the next episode of worlds. @param mask [worlds], non-zero: reset; or empty: all
  /// @throws ShapeError; ValueError if the first reset is not of all worlds
  void reset(std::span<const std::uint8_t> mask = {});
  /// Resets the worlds of the mask, or all: world w gets the seed seeds[w], and its episode count restarts at 0.
  /// @param seeds [worlds]
  void reset(std::span<const std::uint64_t> seeds, std::span<const std::uint8_t> mask = {});
  /// Takes one control step of all worlds.
  /// @param action [worlds][action_size]; an action that is not finite ends the world's episode
  /// @throws ShapeError; ValueError before the first reset(), and for an ended world that was not reset (disabled)
  void step(std::span<const R> action);

  const Task& task() const { return task_; }
  int worlds() const { return options_.worlds; }
  const VectorTaskOptions& options() const { return options_; }
  std::span<const R> observation() const { return observation_; }              ///< [worlds][observation_size]
  std::span<const R> final_observation() const { return final_observation_; }  ///< same_step: of ended() worlds
  std::span<const R> reward() const { return reward_; }                        ///< [worlds]
  std::span<const R> terms() const { return terms_; }                          ///< [worlds][terms]
  std::span<const char> terminated() const { return ended_.terminated; }       ///< [worlds]
  std::span<const char> truncated() const { return ended_.truncated; }         ///< [worlds]
  std::span<const char> bad() const { return ended_.bad; }    ///< [worlds] the simulation failed; also truncated
  std::span<const int> steps() const { return steps_; }       ///< [worlds] in the current episode
  std::span<const double> memory() const { return memory_; }  ///< [worlds][memory_size]
  /// Number of episodes so far that ended because the simulation failed: the state or the action was not finite, or the
  /// world was too fast (sim/step.hpp: WorldStatus). This is not a failure of the policy: the episode is truncated,
  /// with the observation of the last valid state.
  std::int64_t bad_worlds() const;
  std::int64_t episode(int world) const { return episode_[world]; }  ///< number of resets of the world

  /// The simulated worlds. Changes to them take effect in the next step. A state that is not finite ends the world's
  /// episode.
  Batch<R>& batch() { return batch_; }

  /// Time that step() has spent in the simulation and in the parts of the task, summed over threads [s].
  struct Seconds {
    double simulation = 0, action = 0, reward = 0, observation = 0, start = 0;
  };
  Seconds seconds() const;

 private:
  struct Thread;  // workspace of a thread
  template <class F>
  void look(Thread& thread, int first, int count, const F& takes_part);
  void begin(int world, Thread& thread);
  void act(int first, int count, std::span<const R> action, Thread& thread);
  void drive(int world, Thread& thread);
  template <class F>
  void each_pack(int first, int count, const F& f) const;
  void feel(int first, int count, bool first_step, Thread& thread, std::span<R> touch);
  void score(int first, int count, Thread& thread, std::span<const R> touch);
  void observe(int first, Thread& thread);
  void restart_ended(int first, int count, Thread& thread);

  struct Ended {  ///< [world] how episodes ended in this step
    std::vector<char> terminated, truncated, bad;
  };

  const Task& task_;
  VectorTaskOptions options_;
  int nobs_, nact_, nterm_, nmem_, ntarget_;
  bool begun_ = false;
  Batch<R> batch_;
  std::vector<std::unique_ptr<Thread>> threads_;
  AlignedVector<R> observation_, final_observation_, reward_, terms_;
  std::vector<double> memory_;  // [worlds][memory_size]
  Ended ended_;
  std::vector<std::uint8_t> starts_;  // resets in this step
  std::vector<int> steps_;
  std::vector<std::uint64_t> seed_;
  std::vector<std::uint32_t> episode_;
};

extern template class VectorTask<double>;
extern template class VectorTask<float>;

}  // namespace tarsus
