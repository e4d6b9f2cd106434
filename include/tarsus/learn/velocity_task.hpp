// A robot with its own servos follows a velocity command.  [Rudin et al. 2022, legged_gym, and its published code]
//
// Command: forward speed and speed to the left [m/s], and left turn rate [rad/s], in the root's frame. It is uniform
// within [command_low, command_high], redrawn every command_interval, and all zero with probability `standing`.
//
// Action: a number a for each servo. The servo's target is the position of its joint in the stance plus action_scale a
// [rad | m], clamped to its control range. The stance is a keyframe's pose or the model's own.
//
// Observation, in the root's frame: velocity (3), angular velocity (3), direction of gravity (3), command (3); then the
// positions of all servos' joints relative to the stance, their velocities, and the last action.
//
// Reward: max(0, sum of weight times term) over the sum of the first two weights:
//
//   term        weight  what
//   linear      1       exp(-4 |commanded - horizontal velocity|²), s²/m²
//   turn        .5      exp(-4 (commanded - turning)²), s²
//   vertical    -2      squared velocity along the root's z axis
//   roll_pitch  -.05    squared angular velocity about its x and y axes
//   level       -1      squared horizontal part of gravity's direction
//   pose        -.02    sum over servos of squared positions from the stance
//   change      -.01    sum of squared changes of the action
//   air         1       over feet that touch down: sum of the time in the air [s] - 0.5; 0 if the command is to stand
//
// An episode ends when the root touches the ground or leans by more than tilt_limit; it is truncated after time_limit.
// It starts in the stance with random heading, and with noise on joints and velocities.
#pragma once

#include <array>
#include <string>

#include "tarsus/learn/task.hpp"

namespace tarsus {

struct VelocityTaskOptions {
  Vec3d command_low{-0.5, -0.3, -1}, command_high{1, 0.3, 1};  ///< [m/s, m/s, rad/s]
  double command_interval = 5;                                 ///< [s]
  double standing = 0.1;                                       ///< probability of the command to stand still
  std::string keyframe;                                        ///< empty: the first keyframe, or the model's own pose
  std::vector<int> feet;                                       ///< bodies that `air` counts
  double action_scale = 0.25;                                  ///< [rad | m]
  /// Weights of the terms, in their order.
  std::array<double, 8> weights{1, 0.5, -2, -0.05, -1, -0.02, -0.01, 1};
  double noise = 0.1;        ///< of initial joint positions and velocities: uniform, ± this
  double tilt_limit = 1;     ///< lean of the root that ends an episode [rad]
  double control_dt = 0.02;  ///< [s]
  int substeps = 2;          ///< simulation steps per control step, 1 to 10,000
  double time_limit = 20;    ///< [s]
};

class VelocityTask : public Task {
 public:
  /// Keeps a reference to the model. @throws ValueError for a model whose first joint is not free, for actuators other
  /// than position servos on hinges and slides, for a keyframe that does not exist, and for options out of range
  VelocityTask(const Model& model, VelocityTaskOptions options);

  const Model& model() const override { return model_; }
  int observation_size() const override { return 12 + 3 * action_size(); }
  int action_size() const override { return int(servos_.size()); }
  int memory_size() const override { return kAction + action_size() + int(options_.feet.size()); }
  std::vector<std::string> terms() const override;
  void action_bounds(std::span<double> low, std::span<double> high) const override;
  double control_dt() const override { return options_.control_dt; }
  int substeps() const override { return options_.substeps; }
  const Drives* drives() const override { return nullptr; }
  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<Scratch>(); }
  void start(EpisodeRandom& random, const World& world, Scratch& scratch) const override;
  void act(const World& world, std::span<const double> action, std::span<double> target,
           Scratch& scratch) const override;
  Score score(const World& world, std::span<const double> touch, std::span<double> terms,
              Scratch& scratch) const override;
  void observe(const World& world, std::span<double> observation, Scratch& scratch) const override;

  const VelocityTaskOptions& options() const { return options_; }

 private:
  // Control steps taken; seed of the commands; the command; the sum of squared changes of the action; the action; then
  // the time that each foot has been in the air [s].
  enum Memory { kSteps, kSeed, kCommand, kChange = kCommand + 3, kAction };
  struct Servo {
    int qpos, dof;
    double stance, low, high;  // stance of its joint; control range
  };
  struct Motion {  // in the root's frame
    Vec3d velocity, turning, down;
  };
  Motion motion(const World& world) const;
  void command(const World& world) const;

  const Model& model_;
  VelocityTaskOptions options_;
  std::vector<double> stance_;  // [nq]
  std::vector<Servo> servos_;
  std::vector<int> feet_;  // links
};

}  // namespace tarsus
