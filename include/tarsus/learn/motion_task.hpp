// Motion tracking: a character follows a clip under stable PD.  [Peng et al. 2018, DeepMimic, and its published code]
//
// Observation: phase of the clip in [0, 1]; height of the root's origin [m]; for each moving body with mass the
// position of its centre of mass (3) [m], its z and x axes (6), the velocity of its centre of mass (3) [m/s] and its
// angular velocity (3) [rad/s]. These are given in the root's heading frame at the root's origin: z up, x along the
// horizontal direction of the root's x axis.
//
// Reward: sum of weight exp(-scale error) over the sum of weights. DeepMimic's terms, where n is the number of joints
// including the root:
//
//   term          weight  scale     error
//   pose          .5      2 n/15    mean over joints, by joint_weight, of the squared angle (or distance) to the clip
//   velocity      .05     0.1 n/15  the same of joint velocities' difference; the root's is its angular velocity
//   end_effector  .15     10        mean squared distance of points, horizontally relative to the root, heading frames
//   root          .2      5         |Δp|² + .1 θ² + .01 |Δv|² + .001 |Δω|², world axes
//   com           .1      10        .1 |Δv|² of the whole centre of mass
//
// MimicKit's terms, which use sums instead of means:  [Peng 2025, MimicKit, and its published code]
//
//   pose           .5     .25       sum over joints but the root of squared angles, by joint_weight scaled to at most 1
//   velocity       .1     .01       the same of joint velocities' difference
//   root_pose      .15    5         |Δp|² + .1 θ²
//   root_velocity  .1     1         |Δv|² + .1 |Δω|², world axes
//   key_body       .15    10        sum of squared distances of points, relative to the root, world axes
//
// An episode ends with reward 0 (failure) when a body other than the feet touches the ground, when the root's
// orientation differs from the clip's by more than tilt_limit, or when a body is further than distance_limit from its
// place in the clip. It is truncated at time_limit, or at the end of a clip that does not loop. It starts at a random
// phase.
#pragma once

#include <array>
#include <limits>

#include "tarsus/control/clip.hpp"
#include "tarsus/learn/task.hpp"

namespace tarsus {

enum class ImitationReward { deepmimic, mimickit };

struct MotionTaskOptions {
  struct Point {
    int body = 0;
    Vec3d position{0, 0, 0};  ///< body frame [m]
  };
  std::vector<double> joint_weight;  ///< [njoint], the root's first; empty: uniform. Only ratios matter
  std::vector<Point> end_effectors;  ///< empty: that term's error is 0
  std::vector<int> feet;             ///< bodies that may touch the ground
  ImitationReward reward = ImitationReward::deepmimic;
  std::vector<double> weights;        ///< weights of the reward's terms, in their order; empty: the published ones
  double control_dt = 1.0 / 30;       ///< [s]
  int substeps = 2;                   ///< simulation steps per control step, 1 to 10,000
  double time_limit = 20;             ///< of an episode [s]
  double tilt_limit = kInfinity;      ///< root's angle to the clip's that ends an episode [rad]
  double distance_limit = kInfinity;  ///< distance of a body from its place that ends an episode [m]
  double start = -1;                  ///< clip time at which episodes start [s]; negative: a random phase
  bool phase = true;                  ///< observe the phase
  /// At the start of each cycle of a looping clip, move the reference horizontally to the root's position.
  bool follow_root = true;
  /// Actions are added to the clip's pose at the end of the step (q_clip Exp(a), a in the joint's frame). If false,
  /// they are the target (Exp(a)).
  bool relative_action = false;
};

class MotionTask : public Task {
 public:
  /// Keeps a reference to the model. @param drives gains and force limits of the targets; the root must have none
  /// @throws ValueError for a model whose first joint is not free, a clip bound to another model, options out of range
  MotionTask(const Model& model, ClipBinding clip, Drives drives, MotionTaskOptions options);

  const Model& model() const override { return model_; }
  int observation_size() const override { return (options_.phase ? 2 : 1) + 15 * int(bodies_.size()); }
  int action_size() const override { return model_.nv - 6; }
  int memory_size() const override { return kMemory; }
  std::vector<std::string> terms() const override;
  void action_bounds(std::span<double> low, std::span<double> high) const override;
  double control_dt() const override { return options_.control_dt; }
  int substeps() const override { return options_.substeps; }
  const Drives* drives() const override { return &drives_; }
  std::unique_ptr<Scratch> scratch() const override;
  void start(EpisodeRandom& random, const World& world, Scratch& scratch) const override;
  void act(const World& world, std::span<const double> action, std::span<double> target,
           Scratch& scratch) const override;
  Score score(const World& world, std::span<const double> touch, std::span<double> terms,
              Scratch& scratch) const override;
  void observe(const World& world, std::span<double> observation, Scratch& scratch) const override;
  void make_lanes(int width, std::unique_ptr<TaskLanes<double>>& out) const override;
  void make_lanes(int width, std::unique_ptr<TaskLanes<float>>& out) const override;

  const MotionTaskOptions& options() const { return options_; }
  std::vector<double> weights() const;  ///< weights of terms(); they add up to 1
  const ClipBinding& clip() const { return clip_; }
  /// A world's time in the clip [s].
  double clip_time(std::span<const double> memory) const { return memory[kStart] + memory[kSteps] * control_dt(); }
  /// The pose [nq] and velocity [nv] of the clip with which a world is compared now.
  void reference(std::span<const double> memory, std::span<double> qpos, std::span<double> qvel) const;

 private:
  static constexpr int kTerms = 5;
  struct Term {
    const char* name;
    double weight, scale;
  };
  enum Memory { kStart, kSteps, kShiftX, kShiftY, kMemory };
  template <class R>
  class Lanes;
  struct Space;

  const Model& model_;
  ClipBinding clip_;
  Drives drives_;
  MotionTaskOptions options_;
  std::vector<int> bodies_;           // moving bodies that have mass
  std::vector<char> may_touch_;       // [link]
  std::vector<double> joint_weight_;  // [njoint] normalised for the reward's errors
  std::array<Term, kTerms> terms_;    // the weights add up to 1
  double mass_ = 0;
};

}  // namespace tarsus
