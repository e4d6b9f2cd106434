// Balancing a pole on a cart: Gymnasium's CartPole-v1 with a force as action instead of a direction.
//
// Observation: position of the cart [m], angle of the pole [rad], and their velocities. Action: the control of the
// actuator, within its range: for a motor of gear 1 the force [N] on the cart. Each position and velocity starts
// uniformly in ±0.05. The reward is 1 per step of 0.02 s. An episode ends beyond 2.4 m or 12° and is truncated after
// 10 s.
#pragma once

#include "tarsus/learn/task.hpp"

namespace tarsus {

class CartPoleTask : public Task {
 public:
  static constexpr double kControlDt = 0.02, kTimeLimit = 10;  ///< [s]

  /// Keeps a reference to the model. @throws ValueError unless the model has a slide, then a hinge, and one limited
  /// control
  explicit CartPoleTask(const Model& model);

  const Model& model() const override { return model_; }
  int observation_size() const override { return 4; }
  int action_size() const override { return 1; }
  int memory_size() const override { return 1; }  // number of control steps taken
  std::vector<std::string> terms() const override { return {"upright"}; }
  void action_bounds(std::span<double> low, std::span<double> high) const override;
  double control_dt() const override { return kControlDt; }
  int substeps() const override { return 1; }
  const Drives* drives() const override { return nullptr; }
  RowStageOptions rows() const override { return {}; }
  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<Scratch>(); }
  void start(EpisodeRandom& random, const World& world, Scratch& scratch) const override;
  void act(const World& world, std::span<const double> action, std::span<double> target,
           Scratch& scratch) const override;
  Score score(const World& world, std::span<const double> touch, std::span<double> terms,
              Scratch& scratch) const override;
  void observe(const World& world, std::span<double> observation, Scratch& scratch) const override;

 private:
  const Model& model_;
};

}  // namespace tarsus
