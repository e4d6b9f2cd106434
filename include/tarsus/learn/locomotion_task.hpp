// Moving forward with small controls: Gymnasium's locomotion tasks for models with motors.  [Gymnasium 1.x, v5]
//
// Observation: qpos without its first `hidden` numbers; qvel. With `observe_bodies` also, for each moving body, ten
// numbers of its inertia about the total centre of mass, world axes (xx, yy, zz, xy, xz, yz [kg m²]; mass times
// position relative to it [kg m]; mass [kg]); then for each body its angular velocity and its linear velocity at that
// centre, world axes; then the joint forces of the motors, except on the first six DoFs. Action: the controls, which
// the actuators clamp to their ranges.
//
// Reward: forward_weight v + healthy_reward (while healthy) - control_weight sum of action². v [m/s] is the mean
// velocity over the step of the first coordinate, or of the total centre of mass along x. An episode ends when the
// third coordinate leaves [low, high] and is truncated after time_limit. It starts in the model's own pose at rest,
// with noise.
#pragma once

#include <limits>

#include "tarsus/learn/task.hpp"

namespace tarsus {

struct LocomotionTaskOptions {
  int hidden = 1;                ///< number of leading coordinates that are not observed, 0 to nq
  bool observe_bodies = false;   ///< observe the inertias and velocities of bodies too; needs nv >= 6
  bool speed_of_centre = false;  ///< v is that of the total centre of mass; false: of the first coordinate
  double forward_weight = 1, control_weight = 0.1, healthy_reward = 0;
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();  ///< [m]
  double noise = 0.1;           ///< uniform noise of the initial qpos, ± this
  bool normal_velocity = true;  ///< initial qvel: normal, standard deviation `noise`; false: uniform
  double control_dt = 0.05;     ///< [s]
  int substeps = 5;             ///< simulation steps per control step, 1 to 10,000
  double time_limit = 50;       ///< [s]
};

class LocomotionTask : public Task {
 public:
  /// Keeps a reference to the model. @throws ValueError for actuators other than motors with ranges on hinges and
  /// slides, for a height range on fewer than three coordinates, and for options out of range
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
  enum Memory { kSteps, kPlace, kControl };  // control steps taken; position along x; the controls
  struct Space;
  struct Motor {
    int dof;
    double gear, low, high;  // [N m | N] for a control of 1; control range
  };
  void look(const World& world, Space& space) const;  // poses and the centre of mass
  double place(const World& world, Space& space) const;

  const Model& model_;
  LocomotionTaskOptions options_;
  std::vector<Motor> motors_;
  std::vector<int> bodies_;  // moving bodies
};

}  // namespace tarsus
