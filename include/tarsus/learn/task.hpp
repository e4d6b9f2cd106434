// Reinforcement-learning tasks: how a world starts, what an action does, what is observed and rewarded, and when an
// episode ends.
//
// A Task is immutable and shared by threads. The changing data are a world's state (qpos, qvel) and the task's numbers
// for it (memory), both held by VectorTask, and a thread's Scratch. A Task handles one world, in double. VectorTask
// uses its TaskLanes, which handle worlds in SIMD lanes in the simulation's precision. The default TaskLanes call the
// task for one world after the other.
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
  /// Workspace of a thread.
  struct Scratch {
    virtual ~Scratch() = default;
    bool current = false;  ///< contains score()'s results for the state of the next observe()
  };
  struct World {
    std::span<double> qpos, qvel;  ///< [nq], [nv]
    std::span<double> memory;      ///< [memory_size()]
  };
  struct Score {
    double reward = 0;
    bool terminated = false;  ///< the state ends the episode: no further reward
    bool truncated = false;   ///< a time limit: the state itself could continue
  };

  virtual ~Task() = default;

  virtual const Model& model() const = 0;
  virtual int observation_size() const = 0;
  virtual int action_size() const = 0;
  virtual int memory_size() const = 0;
  /// Names of the reward's terms, whose values score() writes. Whether these include the weights depends on the task.
  virtual std::vector<std::string> terms() const = 0;
  /// Bounds of the actions of act(). @param low, high out: [action_size()]  @throws ShapeError
  virtual void action_bounds(std::span<double> low, std::span<double> high) const = 0;
  /// Duration of one action [s], and number of simulation steps in it.
  virtual double control_dt() const = 0;
  virtual int substeps() const = 0;
  /// Drives of the simulation; null: the model's own actuators under controls.
  virtual const Drives* drives() const = 0;
  /// Constraints of the simulation: contacts and joint ranges by default.
  virtual RowStageOptions rows() const;

  virtual std::unique_ptr<Scratch> scratch() const = 0;
  /// Sets the initial state and memory of an episode.
  virtual void start(EpisodeRandom& random, const World& world, Scratch& scratch) const = 0;
  /// Sets the target of one action for its substeps. @param action [action_size()]
  /// @param target out: the drives' targets [nq], or without drives the controls [nu]
  virtual void act(const World& world, std::span<const double> action, std::span<double> target,
                   Scratch& scratch) const = 0;
  /// Rewards the state after the substeps and advances `memory`.
  /// @param touch [nlink] largest ground force on each link over the substeps [N]
  /// @param terms [terms().size()] or empty
  virtual Score score(const World& world, std::span<const double> touch, std::span<double> terms,
                      Scratch& scratch) const = 0;
  /// Computes the observation of the present state. @param observation out: [observation_size()]
  virtual void observe(const World& world, std::span<double> observation, Scratch& scratch) const = 0;

  /// Creates a thread's lanes for `width` worlds: 1 or lanes<R>(isa_level()).
  virtual void make_lanes(int width, std::unique_ptr<TaskLanes<double>>& out) const;
  virtual void make_lanes(int width, std::unique_ptr<TaskLanes<float>>& out) const;
};

/// A task's act(), score() and observe() for worlds in SIMD lanes. Arrays are [n][lane], aligned like AlignedVector.
/// The results of a lane do not depend, to the bit, on the other lanes or on their number.
template <class R>
class TaskLanes {
 public:
  struct Worlds {
    In<R> qpos, qvel;                      ///< [nq][lane], [nv][lane]
    std::span<double* const> memory = {};  ///< [lane] each world's; null: the lane's results are not used
  };
  virtual ~TaskLanes() = default;
  virtual void act(const Worlds& worlds, In<R> action, Out<R> target) = 0;
  /// @param scores [lane]
  virtual void score(const Worlds& worlds, In<R> touch, Out<R> terms, std::span<Task::Score> scores) = 0;
  /// @param scored the states are those of the last score()
  virtual void observe(const Worlds& worlds, bool scored, Out<R> observation) = 0;
};

}  // namespace tarsus
