// Motion tracking: a character follows a clip under stable PD.  [Peng et al. 2018, DeepMimic, and its published code]
//
// Observation: phase of the clip in [0, 1); height of the root's origin; for each moving body, in the root's heading
// frame (z up, x where the root's x axis points horizontally) at the root's origin: its centre of mass's position (3),
// its z and x axes (6), its centre of mass's velocity (3), its angular velocity (3).
//
// Reward: sum of weight exp(-scale error) over the sum of weights. DeepMimic's, with n the number of joints, the root
// among them:
//
//   term          weight  scale     error
//   pose          .5      2 n/15    mean over joints, by joint_weight, of the squared angle (or distance) to the clip
//   velocity      .05     0.1 n/15  the same of joint velocities' difference; the root's is its angular velocity
//   end_effector  .15     10        mean squared distance of points, relative to the root horizontally, heading frames
//   root          .2      5         |Δp|² + .1 θ² + .01 |Δv|² + .001 |Δω|², world axes
//   com           .1      10        .1 |Δv|² of the whole centre of mass
//
// MimicKit's, which has sums where that has means:  [Peng 2025, MimicKit, and its published code]
//
//   pose           .5     .25       sum over joints but the root, by joint_weight with its largest 1, of squared angles
//   velocity       .1     .01       the same of joint velocities' difference
//   root_pose      .15    5         |Δp|² + .1 θ²
//   root_velocity  .1     1         |Δv|² + .1 |Δω|², world axes
//   key_body       .15    10        sum of squared distances of points, relative to the root, world axes
//
// Ends: touching the ground with a body that is no foot, a root turned further than tilt_limit from the clip's, a body
// further than distance_limit from its place in the clip (failure: reward 0); time_limit, or the end of a clip that
// does not loop (truncated). Starts: a random phase.
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
  std::vector<double> joint_weight;  ///< [njoint], the root's first; empty: all the same. Only ratios count
  std::vector<Point> end_effectors;  ///< empty: that term's error is 0
  std::vector<int> feet;             ///< bodies that may touch the ground
  ImitationReward reward = ImitationReward::deepmimic;
  std::vector<double> weights;   ///< of the reward's terms, in their order; empty: the published ones
  double control_dt = 1.0 / 30;  ///< [s]
  int substeps = 2;
  double time_limit = 20;             ///< [s]
  double tilt_limit = kInfinity;      ///< angle between the root and the clip's that ends an episode [rad]
  double distance_limit = kInfinity;  ///< between a body and its place that ends an episode [m]
  double start = -1;                  ///< clip's time at which episodes start [s]; negative: a random phase
  bool phase = true;                  ///< observed
  /// At the start of each cycle of a looping clip the reference moves to where the root is, horizontally.
  bool follow_root = true;
  /// Actions add to the clip's pose at the end of the step (q_clip Exp(a), a in the joint's frame), instead of being
  /// the target (Exp(a)).
  bool relative_action = false;
};

class MotionTask : public Task {
 public:
  /// Keeps a reference to the model. @param drives targets' gains and force limits; none on the root
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
  std::vector<double> weights() const;  ///< of terms(); their sum is 1
  const ClipBinding& clip() const { return clip_; }
  /// Clip's time of a world [s].
  double clip_time(std::span<const double> memory) const { return memory[kStart] + memory[kSteps] * control_dt(); }
  /// The clip's pose and velocity that a world is compared with now.
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
  std::vector<int> bodies_;           // that move and have mass
  std::vector<char> may_touch_;       // [link]
  std::vector<double> joint_weight_;  // [njoint], as the reward's errors want them
  std::array<Term, kTerms> terms_;    // weights' sum is 1
  double mass_ = 0;
};

}  // namespace tarsus
