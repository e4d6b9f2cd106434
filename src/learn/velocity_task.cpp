#include "tarsus/learn/velocity_task.hpp"

#include <algorithm>
#include <cmath>

#include "learn/numbers.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

constexpr double kTracking = 4;     // [s²/m² | s²]
constexpr double kStride = 0.5;     // time in the air that earns no reward [s]
constexpr double kRounding = 1e-9;  // tolerance of times [s]

Quatd root_orientation(std::span<const double> qpos) { return {qpos[3], qpos[4], qpos[5], qpos[6]}; }

bool position_servo(const ActuatorSpec& a, int joint, const Model& model) {
  return joint >= 0 && model.joints[joint].nv() == 1 && !a.motor && a.dynamics.empty() && a.gear[0] == 1 &&
         a.gain_law == ActuatorLaw::fixed && a.bias_law == ActuatorLaw::affine && a.gain[0] > 0 &&
         a.bias[1] == -a.gain[0];
}

}  // namespace

VelocityTask::VelocityTask(const Model& model, VelocityTaskOptions options)
    : model_(model), options_(std::move(options)), stance_(model.qpos0.begin(), model.qpos0.end()) {
  positive("control_dt", options_.control_dt), positive("time_limit", options_.time_limit);
  positive("command_interval", options_.command_interval), positive("action_scale", options_.action_scale);
  positive("tilt_limit", options_.tilt_limit), not_negative("noise", options_.noise);
  check_substeps(options_.substeps);
  if (!(options_.standing >= 0 && options_.standing <= 1))
    throw ValueError("standing", number_text(options_.standing), "a probability from 0 to 1");
  for (int k = 0; k < 3; ++k) {
    if (!(options_.command_low[k] <= options_.command_high[k]) || !std::isfinite(options_.command_low[k]) ||
        !std::isfinite(options_.command_high[k]))
      throw ValueError("command_low", number_text(options_.command_low[k]),
                       "a finite number of at most command_high, " + number_text(options_.command_high[k]));
  }
  for (double weight : options_.weights)
    if (!std::isfinite(weight)) throw ValueError("weights", number_text(weight), "finite numbers");
  if (!(options_.weights[0] >= 0 && options_.weights[1] >= 0 && options_.weights[0] + options_.weights[1] > 0))
    throw ValueError("weights", number_text(options_.weights[0]) + ", " + number_text(options_.weights[1]),
                     "weights of at least 0 for linear and turn, not both 0");
  if (model.joints.empty() || model.joints[0].type != JointType::free)
    throw ValueError("model", model.name, "a model whose first joint is free");
  const auto& keys = model.spec.keyframes;
  const auto key = options_.keyframe.empty() ? keys.begin()
                                             : std::find_if(keys.begin(), keys.end(),
                                                            [&](const auto& k) { return k.name == options_.keyframe; });
  if (key == keys.end() && !options_.keyframe.empty())
    throw ValueError("keyframe", options_.keyframe, "the name of a keyframe of the model");
  if (key != keys.end() && !key->qpos.empty()) stance_ = key->qpos;
  for (const ActuatorSpec& a : model.spec.actuators) {
    const int joint = a.transmission == TransmissionType::joint ? model.find_joint(a.target) : -1;
    if (!position_servo(a, joint, model)) throw ValueError("actuator", a.name, "a position servo on a hinge or slide");
    const Joint& j = model.joints[joint];
    servos_.push_back({j.qpos, j.qvel, stance_[j.qpos], a.control_limited ? a.control_range[0] : -kInfinity,
                       a.control_limited ? a.control_range[1] : kInfinity});
  }
  if (servos_.empty()) throw ValueError("model", model.name, "a model with position servos");
  for (int body : options_.feet) {
    if (body < 0 || body >= model.nbody() || model.bodies[body].link < 0)
      throw ValueError("feet", std::to_string(body), "the index of a moving body");
    const int link = model.bodies[body].link;
    if (std::find(feet_.begin(), feet_.end(), link) != feet_.end())  // it would count twice
      throw ValueError("feet", "\"" + model.bodies[body].name + "\", whose link is among them already",
                       "bodies of different links");
    feet_.push_back(link);
  }
}

std::vector<std::string> VelocityTask::terms() const {
  return {"linear", "turn", "vertical", "roll_pitch", "level", "pose", "change", "air"};
}

void VelocityTask::action_bounds(std::span<double> low, std::span<double> high) const {
  check_size("low", low.size(), servos_.size()), check_size("high", high.size(), servos_.size());
  for (std::size_t i = 0; i < servos_.size(); ++i) {
    low[i] = (servos_[i].low - servos_[i].stance) / options_.action_scale;
    high[i] = (servos_[i].high - servos_[i].stance) / options_.action_scale;
  }
}

/// The current command: a function of the episode's seed and of the number of past intervals.
void VelocityTask::command(const World& world) const {
  const double passed = world.memory[kSteps] * control_dt() / options_.command_interval;
  EpisodeRandom random(std::uint64_t(world.memory[kSeed]), std::uint32_t(passed + kRounding));
  const bool stands = random.uniform() < options_.standing;
  for (int k = 0; k < 3; ++k) {
    const double low = options_.command_low[k], high = options_.command_high[k];
    world.memory[kCommand + k] = stands ? 0 : low + (high - low) * random.uniform();
  }
}

void VelocityTask::start(EpisodeRandom& random, const World& world, Scratch&) const {
  const auto noise = [&] { return options_.noise * (2 * random.uniform() - 1); };
  std::copy(stance_.begin(), stance_.end(), world.qpos.begin());
  for (const Servo& s : servos_) world.qpos[s.qpos] += noise();
  const double heading = kPi * (2 * random.uniform() - 1);
  const Quatd turned = normalized(axis_angle({0, 0, 1}, heading) * root_orientation(stance_));
  world.qpos[3] = turned.w, world.qpos[4] = turned.x, world.qpos[5] = turned.y, world.qpos[6] = turned.z;
  for (double& v : world.qvel) v = noise();
  std::fill(world.memory.begin(), world.memory.end(), 0.0);
  world.memory[kSeed] = std::floor(random.uniform() * 0x1p53);
  command(world);
}

void VelocityTask::act(const World& world, std::span<const double> action, std::span<double> target, Scratch&) const {
  double change = 0;
  for (std::size_t i = 0; i < servos_.size(); ++i) {
    const Servo& s = servos_[i];
    double& last = world.memory[kAction + i];
    change += (action[i] - last) * (action[i] - last);
    last = action[i];
    target[i] = std::clamp(s.stance + options_.action_scale * action[i], s.low, s.high);
  }
  world.memory[kChange] = change;
}

VelocityTask::Motion VelocityTask::motion(const World& world) const {
  const Mat3d R = rotation(root_orientation(world.qpos));
  const auto& v = world.qvel;
  return {transpose_mul(R, Vec3d{v[0], v[1], v[2]}), {v[3], v[4], v[5]}, -R.row_z()};
}

Task::Score VelocityTask::score(const World& world, std::span<const double> touch, std::span<double> terms,
                                Scratch&) const {
  const auto square = [](double x) { return x * x; };
  const Motion m = motion(world);
  const double* c = &world.memory[kCommand];
  double pose = 0, air = 0;
  for (const Servo& s : servos_) pose += square(world.qpos[s.qpos] - s.stance);
  const bool stands = c[0] == 0 && c[1] == 0 && c[2] == 0;
  for (std::size_t i = 0; i < feet_.size(); ++i) {
    double& time = world.memory[kAction + servos_.size() + i];
    if (touch[feet_[i]] > 0) {
      if (time > 0 && !stands) air += time - kStride;
      time = 0;
    } else {
      time += control_dt();
    }
  }
  const double values[] = {elementary::exp(-kTracking * (square(c[0] - m.velocity.x) + square(c[1] - m.velocity.y))),
                           elementary::exp(-kTracking * square(c[2] - m.turning.z)),
                           square(m.velocity.z),
                           square(m.turning.x) + square(m.turning.y),
                           square(m.down.x) + square(m.down.y),
                           pose,
                           world.memory[kChange],
                           air};
  const double most = options_.weights[0] + options_.weights[1];
  Score score;
  for (std::size_t i = 0; i < options_.weights.size(); ++i) {
    const double part = options_.weights[i] * values[i] / most;
    score.reward += part;
    if (!terms.empty()) terms[i] = part;
  }
  score.reward = std::max(0.0, score.reward);
  world.memory[kSteps] += 1;
  score.terminated = touch[0] > 0 || (options_.tilt_limit < kPi && -m.down.z < elementary::cos(options_.tilt_limit));
  score.truncated = !score.terminated && world.memory[kSteps] * control_dt() >= options_.time_limit - kRounding;
  command(world);  // for the next observation and reward
  return score;
}

void VelocityTask::observe(const World& world, std::span<double> observation, Scratch&) const {
  check_size("observation", observation.size(), observation_size());
  const Motion m = motion(world);
  double* to = observation.data();
  put(to, m.velocity), put(to, m.turning), put(to, m.down);
  to = std::copy_n(&world.memory[kCommand], 3, to);
  for (const Servo& s : servos_) *to++ = world.qpos[s.qpos] - s.stance;
  for (const Servo& s : servos_) *to++ = world.qvel[s.dof];
  std::copy_n(world.memory.begin() + kAction, servos_.size(), to);
}

}  // namespace tarsus
