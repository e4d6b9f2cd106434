#include "tarsus/learn/cart_pole_task.hpp"

#include <algorithm>
#include <cmath>

#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

constexpr double kSpread = 0.05, kRail = 2.4, kTilt = 12 * kPi / 180;
constexpr int kSteps = int(CartPoleTask::kTimeLimit / CartPoleTask::kControlDt + 0.5);

}  // namespace

CartPoleTask::CartPoleTask(const Model& model) : model_(model) {
  if (model.joints.size() != 2 || !slides_on_axis(model.joints[0].type) || !turns_on_axis(model.joints[1].type) ||
      model.nu != 1 || !model.spec.actuators[0].control_limited)
    throw ValueError("model", model.name, "a model of a slide, a hinge on it and one actuator with a control range");
}

void CartPoleTask::action_bounds(std::span<double> low, std::span<double> high) const {
  low[0] = model_.spec.actuators[0].control_range[0], high[0] = model_.spec.actuators[0].control_range[1];
}

void CartPoleTask::start(EpisodeRandom& random, const World& world, Scratch&) const {
  for (std::span<double> numbers : {world.qpos, world.qvel}) {
    for (double& x : numbers) x = kSpread * (2 * random.uniform() - 1);
  }
  world.memory[0] = 0;
}

void CartPoleTask::act(const World&, std::span<const double> action, std::span<double> target, Scratch&) const {
  target[0] = action[0];
}

Task::Score CartPoleTask::score(const World& world, std::span<const double>, std::span<double> terms, Scratch&) const {
  world.memory[0] += 1;
  Score score;
  score.terminated = !(std::abs(world.qpos[0]) <= kRail && std::abs(world.qpos[1]) <= kTilt);
  score.truncated = !score.terminated && world.memory[0] >= kSteps;
  score.reward = 1;
  if (!terms.empty()) terms[0] = 1;
  return score;
}

void CartPoleTask::observe(const World& world, std::span<double> observation, Scratch&) const {
  observation[0] = world.qpos[0], observation[1] = world.qpos[1];
  observation[2] = world.qvel[0], observation[3] = world.qvel[1];
}

}  // namespace tarsus
