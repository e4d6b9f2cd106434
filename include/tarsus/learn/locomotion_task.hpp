// Going forward on little control: Gymnasium's locomotion tasks, on models with motors.  [Gymnasium 1.x, v5]
//
// Observation: qpos without its first `hidden` numbers; qvel; with `observe_bodies`, of each body that moves: ten
// numbers of its inertia about the whole's centre of mass (xx, yy, zz, xy, xz, yz; mass times position from there;
// mass), then of each its angular velocity and the linear one at that centre, world axes, then the motors' joint forces
// but on the first six. Action: the controls.
//
// Reward: forward_weight v + healthy_reward (while healthy) - control_weight sum of action², v [m/s] the mean over the
// step of the first coordinate's speed, or the whole centre of mass's along x. Ends where the third coordinate leaves
// [low, high]; truncated after time_limit. Starts: the model's own pose and rest, with noise.
#pragma once

#include <limits>

#include "tarsus/learn/task.hpp"

namespace tarsus {

struct LocomotionTaskOptions {
  int hidden = 1;
  bool observe_bodies = false;
  bool speed_of_centre = false;
  double forward_weight = 1, control_weight = 0.1, healthy_reward = 0;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();  ///< [m]
  double noise = 0.1;           ///< uniform within ± this on qpos
  bool normal_velocity = true;  ///< noise of qvel: normal with this deviation, or uniform as well
  double control_dt = 0.05;     ///< [s]
  int substeps = 5;
  double time_limit = 50;  ///< [s]
};

class LocomotionTask : public Task {
 public:
  /// Keeps a reference to the model. @throws ValueError for actuators that are no motors with ranges on hinges and
  /// slides, for a range of heights on fewer than three coordinates, and for options out of range
  LocomotionTask(const Model& model, const LocomotionTaskOptions& options);

  const Model& model() const override { return model_; }
  int observation_size() const override;
  int action_size() const override { return model_.nu; }
  int memory_size() const override { return kControl + model_.nu; }
  std::vector<std::string> terms() const override { return {"forward", "healthy", "control"}; }
  void action_bounds(std::span<double> low, std::span<double> high) const override;
  double control_dt() const override { return options_.control_dt; }
  int substeps() const override { return options_.substeps; }
  const Drives* drives() const override { return nullptr; }
  std::unique_ptr<Scratch> scratch() const override;
  void start(EpisodeRandom& random, const World& world, Scratch& scratch) const override;
  void act(const World& world, std::span<const double> action, std::span<double> target,
           Scratch& scratch) const override;
  Score score(const World& world, std::span<const double> touch, std::span<double> terms,
              Scratch& scratch) const override;
  void observe(const World& world, std::span<double> observation, Scratch& scratch) const override;

  const LocomotionTaskOptions& options() const { return options_; }

 private:
  enum Memory { kSteps, kPlace, kControl };  // control steps done; where along x; the controls
  struct Space;
  struct Motor {
    int dof;
    double gear, low, high;  // [N m | N] of a control of 1; range of controls
  };
  void look(const World& world, Space& space) const;  // poses and the centre of mass
  double place(const World& world, Space& space) const;

  const Model& model_;
  LocomotionTaskOptions options_;
  std::vector<Motor> motors_;
  std::vector<int> bodies_;  // that move
};

}  // namespace tarsus
