// What there is to learn: how a world starts, what an action does, what is observed, rewarded, and when it ends.
//
// A Task never changes and is shared by threads. What changes is a world's state (qpos, qvel), the task's own numbers
// about it (memory), both held by VectorTask, and a thread's Scratch. A Task speaks of one world, in double. VectorTask
// asks its TaskLanes, worlds side by side in the simulation's precision; unless the task has some of its own, these ask
// the task about one world after the other.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tarsus/learn/random.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {

template <class R>
class TaskLanes;

class Task {
 public:
  /// A thread's workspace.
  struct Scratch {
    virtual ~Scratch() = default;
    bool current = false;  ///< holds what score() found for the state that observe() is asked about next
  };
  struct World {
    std::span<double> qpos, qvel;  ///< [nq], [nv]
    std::span<double> memory;      ///< [memory_size()]
  };
  struct Score {
    double reward = 0;
    bool terminated = false;  ///< the state is the end of all reward
    bool truncated = false;   ///< a limit of time: the state itself could go on
  };

  virtual ~Task() = default;

  virtual const Model& model() const = 0;
  virtual int observation_size() const = 0;
  virtual int action_size() const = 0;
  virtual int memory_size() const = 0;
  /// Names of the reward's parts, each in [0, 1] or [N m], …; score() gives them.
  virtual std::vector<std::string> terms() const = 0;
  /// Bounds of what act() takes [action_size()].
  virtual void action_bounds(std::span<double> low, std::span<double> high) const = 0;
  /// Seconds of one action, and simulation steps in it.
  virtual double control_dt() const = 0;
  virtual int substeps() const = 0;
  /// Drives with which the simulation runs; null: the model's own actuators, under controls.
  virtual const Drives* drives() const = 0;
  /// Contacts and joints' ranges, unless the task says otherwise.
  virtual RowStageOptions rows() const;

  virtual std::unique_ptr<Scratch> scratch() const = 0;
  /// A first state and memory.
  virtual void start(EpisodeRandom& random, const World& world, Scratch& scratch) const = 0;
  /// What one action sets for its substeps: the drives' targets [nq], or controls [nu].
  virtual void act(const World& world, std::span<const double> action, std::span<double> target,
                   Scratch& scratch) const = 0;
  /// After the substeps. @param touch [nlink] largest force of the ground on each link over the substeps [N]
  /// @param terms [terms().size()] or empty
  virtual Score score(const World& world, std::span<const double> touch, std::span<double> terms,
                      Scratch& scratch) const = 0;
  /// @param observation [observation_size()]
  virtual void observe(const World& world, std::span<double> observation, Scratch& scratch) const = 0;

  /// A thread's, for `width` worlds side by side: 1 or lanes<R>(isa_level()).
  virtual void make_lanes(int width, std::unique_ptr<TaskLanes<double>>& out) const;
  virtual void make_lanes(int width, std::unique_ptr<TaskLanes<float>>& out) const;
};

/// A task's act(), score() and observe() for worlds side by side. Arrays are [n][lane], aligned as AlignedVector is. A
/// lane's results do not depend, to the bit, on the other lanes nor on their number.
template <class R>
class TaskLanes {
 public:
  struct Worlds {
    In<R> qpos, qvel;                      ///< [nq][lane], [nv][lane]
    std::span<double* const> memory = {};  ///< [lane] each world's; null: what the lane gives is not used
  };
  virtual ~TaskLanes() = default;
  virtual void act(const Worlds& worlds, In<R> action, Out<R> target) = 0;
  /// @param scores [lane]
  virtual void score(const Worlds& worlds, In<R> touch, Out<R> terms, std::span<Task::Score> scores) = 0;
  /// @param scored these are the states that score() was last asked about
  virtual void observe(const Worlds& worlds, bool scored, Out<R> observation) = 0;
};

}  // namespace tarsus
