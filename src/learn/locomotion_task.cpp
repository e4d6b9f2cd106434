#include "tarsus/learn/locomotion_task.hpp"

#include <algorithm>
#include <cmath>

#include "learn/numbers.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

constexpr int kInertiaNumbers = 10, kVelocityNumbers = 6;

double normal_number(EpisodeRandom& random) {  // Box and Muller
  const double radius = std::sqrt(-2 * elementary::log(1 - random.uniform()));
  return radius * elementary::cos(2 * kPi * random.uniform());
}

}  // namespace

struct LocomotionTask::Space : Task::Scratch {
  explicit Space(const Model& model) : data(model), centres(std::size_t(model.nbody())) {}
  Data data;
  std::vector<Vec3d> centres;  // [nbody] centres of mass
  Vec3d centre{0, 0, 0};       // the total centre of mass
};

LocomotionTask::LocomotionTask(const Model& model, const LocomotionTaskOptions& options)
    : model_(model), options_(options) {
  positive("control_dt", options_.control_dt), positive("time_limit", options_.time_limit);
  check_substeps(options_.substeps);
  if (options_.hidden < 0 || options_.hidden > model.nq)
    throw ValueError("hidden", std::to_string(options_.hidden), "0 to the model's nq");
  for (const auto& [name, x] : {std::pair("forward_weight", options_.forward_weight),
                                {"control_weight", options_.control_weight},
                                {"healthy_reward", options_.healthy_reward}})
    if (!std::isfinite(x)) throw ValueError(name, number_text(x), "a finite number");
  not_negative("noise", options_.noise);
  if (!(options_.low < options_.high))
    throw ValueError("low", number_text(options_.low), "a height below high, " + number_text(options_.high));
  if ((std::isfinite(options_.low) || std::isfinite(options_.high)) && model.nq < 3)
    throw ValueError("low, high", "a range of heights", "no range, because the model has fewer than three coordinates");
  if (options_.observe_bodies && model.nv < 6)
    throw ValueError("observe_bodies", "true", "false, because the model has fewer than six degrees of freedom");
  for (const ActuatorSpec& a : model.spec.actuators) {
    const int joint = a.transmission == TransmissionType::joint ? model.find_joint(a.target) : -1;
    if (joint < 0 || model.joints[joint].nv() != 1 || a.motor || !a.dynamics.empty() || !a.control_limited ||
        a.gain_law != ActuatorLaw::fixed || a.bias_law != ActuatorLaw::none || a.force_limited)
      throw ValueError("actuator", a.name, "a motor with a control range on a hinge or slide");
    motors_.push_back({model.joints[joint].qvel, a.gear[0] * a.gain[0], a.control_range[0], a.control_range[1]});
  }
  for (int i = 1; i < model.nbody(); ++i) {
    if (model.bodies[i].link >= 0) bodies_.push_back(i);
  }
  if (motors_.empty() || bodies_.empty())
    throw ValueError("model", model.name, "a model with motors and moving bodies");
}

int LocomotionTask::observation_size() const {
  const int bodies = int(bodies_.size()) * (kInertiaNumbers + kVelocityNumbers) + model_.nv - 6;
  return model_.nq - options_.hidden + model_.nv + (options_.observe_bodies ? bodies : 0);
}

std::unique_ptr<Task::Scratch> LocomotionTask::scratch() const { return std::make_unique<Space>(model_); }

void LocomotionTask::action_bounds(std::span<double> low, std::span<double> high) const {
  check_size("low", low.size(), motors_.size()), check_size("high", high.size(), motors_.size());
  for (std::size_t i = 0; i < motors_.size(); ++i) low[i] = motors_[i].low, high[i] = motors_[i].high;
}

void LocomotionTask::look(const World& world, Space& space) const {
  kinematics<double>(model_, space.data, world.qpos, world.qvel);
  double mass = 0;
  space.centre = {0, 0, 0};
  for (int body : bodies_) {
    const Transformd X = body_pose(model_, space.data, body);
    space.centres[body] = X.R * model_.bodies[body].com + X.p;
    space.centre += model_.bodies[body].mass * space.centres[body];
    mass += model_.bodies[body].mass;
  }
  space.centre = space.centre * (1 / mass);
  space.current = true;
}

double LocomotionTask::place(const World& world, Space& space) const {
  if (!options_.speed_of_centre) return world.qpos[0];
  look(world, space);
  return space.centre.x;
}

void LocomotionTask::start(EpisodeRandom& random, const World& world, Scratch& scratch) const {
  const auto uniform = [&] { return options_.noise * (2 * random.uniform() - 1); };
  for (int i = 0; i < model_.nq; ++i) world.qpos[i] = model_.qpos0[i] + uniform();
  for (const Joint& joint : model_.joints) {
    if (!turns_freely(joint.type) && !moves_freely(joint.type)) continue;
    double* q = &world.qpos[joint.qpos + (moves_freely(joint.type) ? 3 : 0)];
    const Quatd unit = normalized(Quatd{q[0], q[1], q[2], q[3]});
    q[0] = unit.w, q[1] = unit.x, q[2] = unit.y, q[3] = unit.z;
  }
  for (double& v : world.qvel) v = options_.normal_velocity ? options_.noise * normal_number(random) : uniform();
  std::fill(world.memory.begin(), world.memory.end(), 0.0);
  world.memory[kPlace] = place(world, static_cast<Space&>(scratch));
  scratch.current = false;
}

void LocomotionTask::act(const World& world, std::span<const double> action, std::span<double> target, Scratch&) const {
  std::copy(action.begin(), action.end(), target.begin());
  std::copy(action.begin(), action.end(), world.memory.begin() + kControl);
}

Task::Score LocomotionTask::score(const World& world, std::span<const double>, std::span<double> terms,
                                  Scratch& scratch) const {
  const double before = world.memory[kPlace], now = place(world, static_cast<Space&>(scratch));
  world.memory[kSteps] += 1, world.memory[kPlace] = now;
  double control = 0;
  for (double u : world.memory.subspan(kControl)) control += u * u;
  const bool bounded = std::isfinite(options_.low) || std::isfinite(options_.high);
  const bool healthy = !bounded || (world.qpos[2] >= options_.low && world.qpos[2] <= options_.high);
  const double parts[] = {options_.forward_weight * (now - before) / control_dt(),
                          healthy ? options_.healthy_reward : 0, -options_.control_weight * control};
  Score score;
  for (int i = 0; i < 3; ++i) {
    score.reward += parts[i];
    if (!terms.empty()) terms[i] = parts[i];
  }
  score.terminated = !healthy;
  constexpr double kRounding = 1e-9;  // [s]
  score.truncated = healthy && world.memory[kSteps] * control_dt() >= options_.time_limit - kRounding;
  return score;
}

void LocomotionTask::observe(const World& world, std::span<double> observation, Scratch& scratch) const {
  check_size("observation", observation.size(), observation_size());
  double* to = std::copy(world.qpos.begin() + options_.hidden, world.qpos.end(), observation.data());
  to = std::copy(world.qvel.begin(), world.qvel.end(), to);
  if (!options_.observe_bodies) return;
  Space& space = static_cast<Space&>(scratch);
  if (!space.current) look(world, space);
  for (int i : bodies_) {
    const Body& body = model_.bodies[i];
    const Vec3d c = space.centres[i] - space.centre;
    const Sym3d I = rotate(body_pose(model_, space.data, i).R, body.inertia);
    const double m = body.mass;
    put(to,
        {I.xx + m * (c.y * c.y + c.z * c.z), I.yy + m * (c.x * c.x + c.z * c.z), I.zz + m * (c.x * c.x + c.y * c.y)});
    put(to, {I.xy - m * c.x * c.y, I.xz - m * c.x * c.z, I.yz - m * c.y * c.z});
    put(to, m * c);
    *to++ = m;
  }
  for (int i : bodies_) {
    const Motion<double> v = body_velocity(model_, space.data, i);
    put(to, v.w), put(to, shift(v, space.centre - body_pose(model_, space.data, i).p).v);
  }
  std::fill_n(to, model_.nv - 6, 0.0);
  for (std::size_t i = 0; i < motors_.size(); ++i) {
    const double control = std::clamp(world.memory[kControl + i], motors_[i].low, motors_[i].high);
    if (motors_[i].dof >= 6) to[motors_[i].dof - 6] += motors_[i].gear * control;
  }
}

}  // namespace tarsus
