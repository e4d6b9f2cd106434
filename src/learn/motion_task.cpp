#include "tarsus/learn/motion_task.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "learn/numbers.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {
namespace {

Quatd quaternion_at(std::span<const double> qpos, int at) {
  return {qpos[at], qpos[at + 1], qpos[at + 2], qpos[at + 3]};
}
Vec3d vector_at(std::span<const double> values, int at) { return {values[at], values[at + 1], values[at + 2]}; }
double square(const Vec3d& v) { return dot(v, v); }

/// Square of the angle between two orientations.
double square_angle(const Quatd& a, const Quatd& b) {
  const Quatd d = conjugate(a) * b;
  const double angle = 2 * elementary::atan2(norm(d.vec()), std::abs(d.w));
  return angle * angle;
}

/// Turn about z that takes world axes into the heading frame: x where the root's x axis points horizontally.
struct Heading {
  double c, s;

  explicit Heading(const Mat3d& root) : c(root.xx), s(root.yx) {
    const double length = elementary::hypot(c, s);
    if (length > 0)
      c /= length, s /= length;
    else
      c = 1, s = 0;  // the x axis is vertical
  }
  Vec3d in(const Vec3d& v) const { return {c * v.x + s * v.y, c * v.y - s * v.x, v.z}; }
};

Vec3d at(const Transformd& X, const Vec3d& point) { return X.R * point + X.p; }

Vec3d centre(const Model& model, const Data& data, int body) {
  return at(body_pose(model, data, body), model.bodies[body].com);
}

Vec3d centre_velocity(const Model& model, const Data& data, int body) {
  return shift(body_velocity(model, data, body), body_pose(model, data, body).R * model.bodies[body].com).v;
}

}  // namespace

struct MotionTask::Space : Task::Scratch {
  explicit Space(const Model& model)
      : ours(model), theirs(model), qpos(std::size_t(model.nq)), qvel(std::size_t(model.nv)) {}
  Data ours, theirs;               // the character's and the clip's poses
  std::vector<double> qpos, qvel;  // the clip's
};

MotionTask::MotionTask(const Model& model, ClipBinding clip, Drives drives, MotionTaskOptions options)
    : model_(model), clip_(std::move(clip)), drives_(std::move(drives)), options_(std::move(options)) {
  if (model.joints.empty() || !moves_freely(model.joints[0].type))
    throw ValueError("model", model.name, "one whose first joint is free");
  if (clip_.nq() != model.nq || clip_.nv() != model.nv)
    throw ValueError("clip", "bound to another model", "bound to this one");
  if (!(clip_.duration() > 0)) throw ValueError("clip", "a single frame", "a motion");
  drives_.check(model);
  for (int i = 0; i < 6; ++i) {
    if (drives_.kp[i] != 0 || drives_.kd[i] != 0)
      throw ValueError("drives", "gains on the root", "none: nothing but the ground holds it");
  }
  positive("control_dt", options_.control_dt), positive("time_limit", options_.time_limit);
  if (!(options_.tilt_limit > 0)) throw ValueError("tilt_limit", number_text(options_.tilt_limit), "positive");
  if (!std::isfinite(options_.start)) throw ValueError("start", number_text(options_.start), "a finite time");
  if (options_.substeps < 1) throw ValueError("substeps", std::to_string(options_.substeps), "at least 1");
  if (!(options_.distance_limit > 0))
    throw ValueError("distance_limit", number_text(options_.distance_limit), "positive");

  const bool kit = options_.reward == ImitationReward::mimickit;
  const double n = double(model.joints.size());
  terms_ = kit ? std::array<Term, kTerms>{{{"pose", 0.5, 0.25},
                                           {"velocity", 0.1, 0.01},
                                           {"root_pose", 0.15, 5},
                                           {"root_velocity", 0.1, 1},
                                           {"key_body", 0.15, 10}}}
               : std::array<Term, kTerms>{{{"pose", 0.5, 2.0 / 15 * n},
                                           {"velocity", 0.05, 0.1 / 15 * n},
                                           {"end_effector", 0.15, 10},
                                           {"root", 0.2, 5},
                                           {"com", 0.1, 10}}};
  if (!options_.weights.empty()) check_size("weights", options_.weights.size(), kTerms);
  for (std::size_t i = 0; i < options_.weights.size(); ++i) terms_[i].weight = options_.weights[i];
  double sum = 0;
  for (const Term& term : terms_) not_negative("weights", term.weight), sum += term.weight;
  positive("sum of weights", sum);
  for (Term& term : terms_) term.weight /= sum;

  joint_weight_ = options_.joint_weight;
  if (joint_weight_.empty()) joint_weight_.assign(model.joints.size(), 1.0);
  check_size("joint_weight", joint_weight_.size(), model.joints.size());
  for (double w : joint_weight_) not_negative("joint_weight", w);
  if (kit) joint_weight_[0] = 0;
  const double whole = kit ? *std::max_element(joint_weight_.begin(), joint_weight_.end())
                           : std::accumulate(joint_weight_.begin(), joint_weight_.end(), 0.0);
  positive("sum of joint_weight", whole);
  for (double& w : joint_weight_) w /= whole;

  const auto moving = [&](const char* argument, int body) {
    if (body < 1 || body >= model.nbody() || model.bodies[body].link < 0)
      throw ValueError(argument, std::to_string(body), "the index of a moving body");
  };
  for (const auto& point : options_.end_effectors) moving("end_effectors", point.body);
  may_touch_.assign(model.joints.size(), 0);
  for (int body : options_.feet) moving("feet", body), may_touch_[model.bodies[body].link] = 1;
  for (int i = 1; i < model.nbody(); ++i) {
    if (model.bodies[i].link >= 0 && model.bodies[i].mass > 0) bodies_.push_back(i), mass_ += model.bodies[i].mass;
  }
}

std::unique_ptr<Task::Scratch> MotionTask::scratch() const { return std::make_unique<Space>(model_); }

std::vector<std::string> MotionTask::terms() const {
  std::vector<std::string> names;
  for (const Term& term : terms_) names.push_back(term.name);
  return names;
}

std::vector<double> MotionTask::weights() const {
  std::vector<double> out;
  for (const Term& term : terms_) out.push_back(term.weight);
  return out;
}

void MotionTask::action_bounds(std::span<double> low, std::span<double> high) const {
  check_size("low", low.size(), action_size()), check_size("high", high.size(), action_size());
  for (std::size_t j = 1; j < model_.joints.size(); ++j) {
    const Joint& joint = model_.joints[j];
    for (int k = 0; k < joint.nv(); ++k) {
      const bool ranged = !turns_freely(joint.type) && joint.limited;
      const int at = joint.qvel + k - 6;
      low[at] = ranged ? joint.range[0] : -kPi, high[at] = ranged ? joint.range[1] : kPi;
      if (ranged && options_.relative_action) low[at] = -(high[at] -= low[at]), high[at] = -low[at];
    }
  }
}

void MotionTask::reference(std::span<const double> memory, std::span<double> qpos, std::span<double> qvel) const {
  clip_.sample(clip_time(memory), qpos, qvel);
  qpos[0] += memory[kShiftX], qpos[1] += memory[kShiftY];
}

void MotionTask::start(EpisodeRandom& random, const World& world, Scratch& scratch) const {
  world.memory[kStart] = options_.start >= 0 ? options_.start : random.uniform() * clip_.duration();
  world.memory[kSteps] = world.memory[kShiftX] = world.memory[kShiftY] = 0;
  reference(world.memory, world.qpos, world.qvel);
  scratch.current = false;
}

void MotionTask::act(const World& world, std::span<const double> action, std::span<double> target,
                     Scratch& scratch) const {
  Space& space = static_cast<Space&>(scratch);
  std::copy_n(world.qpos.begin(), 7, target.begin());
  if (options_.relative_action) clip_.sample(clip_time(world.memory) + control_dt(), space.qpos, {});
  for (std::size_t j = 1; j < model_.joints.size(); ++j) {
    const Joint& joint = model_.joints[j];
    if (turns_freely(joint.type)) {
      Quatd q = exp_map(vector_at(action, joint.qvel - 6));
      if (options_.relative_action) q = normalized(quaternion_at(space.qpos, joint.qpos) * q);
      target[joint.qpos] = q.w, target[joint.qpos + 1] = q.x, target[joint.qpos + 2] = q.y,
      target[joint.qpos + 3] = q.z;
    } else {
      const double base = options_.relative_action ? space.qpos[joint.qpos] : 0;
      target[joint.qpos] = base + action[joint.qvel - 6];
    }
  }
}

void MotionTask::errors(const Space& space, const World& world, std::span<double, kTerms> out) const {
  const bool kit = options_.reward == ImitationReward::mimickit;
  double pose = 0, velocity = 0;
  for (std::size_t j = 0; j < model_.joints.size(); ++j) {
    const Joint& joint = model_.joints[j];
    double angle2 = 0, speed2 = 0;
    if (moves_freely(joint.type)) {
      angle2 = square_angle(quaternion_at(world.qpos, 3), quaternion_at(space.qpos, 3));
      speed2 = square(space.ours.links()[0].v.w - space.theirs.links()[0].v.w);
    } else if (turns_freely(joint.type)) {
      angle2 = square_angle(quaternion_at(world.qpos, joint.qpos), quaternion_at(space.qpos, joint.qpos));
      speed2 = square(vector_at(world.qvel, joint.qvel) - vector_at(space.qvel, joint.qvel));
    } else {
      const double d = world.qpos[joint.qpos] - space.qpos[joint.qpos];
      const double v = world.qvel[joint.qvel] - space.qvel[joint.qvel];
      angle2 = d * d, speed2 = v * v;
    }
    pose += joint_weight_[j] * angle2, velocity += joint_weight_[j] * speed2;
  }
  const Vec3d p = vector_at(world.qpos, 0), p_clip = vector_at(space.qpos, 0);
  const Heading heading(space.ours.links()[0].R), heading_clip(space.theirs.links()[0].R);
  double end_effector = 0;
  for (const auto& point : options_.end_effectors) {
    const Vec3d a = at(body_pose(model_, space.ours, point.body), point.position);
    const Vec3d b = at(body_pose(model_, space.theirs, point.body), point.position);
    if (kit) {
      end_effector += square((a - p) - (b - p_clip));
    } else {
      const Vec3d from_root = heading.in({a.x - p.x, a.y - p.y, a.z});
      end_effector += square(from_root - heading_clip.in({b.x - p_clip.x, b.y - p_clip.y, b.z}));
    }
  }
  const double root_pose =
      square(p - p_clip) + 0.1 * square_angle(quaternion_at(world.qpos, 3), quaternion_at(space.qpos, 3));
  const double root_v2 = square(space.ours.links()[0].v.v - space.theirs.links()[0].v.v);
  const double root_w2 = square(space.ours.links()[0].v.w - space.theirs.links()[0].v.w);
  out[0] = pose, out[1] = velocity;
  if (kit) {
    out[2] = root_pose, out[3] = root_v2 + 0.1 * root_w2, out[4] = end_effector;
    return;
  }
  Vec3d momentum{0, 0, 0};
  for (int body : bodies_) {
    const double m = model_.bodies[body].mass;
    momentum += m * (centre_velocity(model_, space.ours, body) - centre_velocity(model_, space.theirs, body));
  }
  out[2] = options_.end_effectors.empty() ? 0 : end_effector / double(options_.end_effectors.size());
  out[3] = root_pose + 0.01 * root_v2 + 0.001 * root_w2, out[4] = 0.1 * square(momentum * (1 / mass_));
}

bool MotionTask::far_from_clip(const Space& space) const {
  const double limit = options_.distance_limit;
  return std::any_of(bodies_.begin(), bodies_.end(), [&](int body) {
    return square(body_pose(model_, space.ours, body).p - body_pose(model_, space.theirs, body).p) > limit * limit;
  });
}

Task::Score MotionTask::score(const World& world, std::span<const double> touch, std::span<double> terms,
                              Scratch& scratch) const {
  Space& space = static_cast<Space&>(scratch);
  const double before = clip_time(world.memory);
  world.memory[kSteps] += 1;
  const double now = clip_time(world.memory);
  reference(world.memory, space.qpos, space.qvel);
  if (options_.follow_root && clip_.loop() &&
      std::floor(now / clip_.duration()) > std::floor(before / clip_.duration())) {
    for (int k = 0; k < 2; ++k) {
      world.memory[kShiftX + k] += world.qpos[k] - space.qpos[k];
      space.qpos[k] = world.qpos[k];
    }
  }
  kinematics<double>(model_, space.ours, world.qpos, world.qvel);
  kinematics<double>(model_, space.theirs, space.qpos, space.qvel);
  space.current = true;

  double error[kTerms];
  errors(space, world, error);
  Score score;
  for (int i = 0; i < kTerms; ++i) {
    const double term = elementary::exp(-terms_[i].scale * error[i]);
    if (!terms.empty()) terms[i] = term;
    score.reward += terms_[i].weight * term;
  }

  for (std::size_t link = 0; link < may_touch_.size(); ++link)
    score.terminated = score.terminated || (!may_touch_[link] && touch[link] > 0);
  if (options_.tilt_limit < kPi) {
    const double tilt2 = square_angle(quaternion_at(world.qpos, 3), quaternion_at(space.qpos, 3));
    score.terminated = score.terminated || tilt2 > options_.tilt_limit * options_.tilt_limit;
  }
  if (options_.distance_limit < kInfinity) score.terminated = score.terminated || far_from_clip(space);
  if (score.terminated) {
    score.reward = 0;
  } else {
    constexpr double kRounding = 1e-9;  // [s]
    score.truncated = world.memory[kSteps] * control_dt() >= options_.time_limit - kRounding ||
                      (!clip_.loop() && now >= clip_.duration() - kRounding);
  }
  return score;
}

void MotionTask::observe(const World& world, std::span<double> observation, Scratch& scratch) const {
  check_size("observation", observation.size(), observation_size());
  Space& space = static_cast<Space&>(scratch);
  if (!space.current) kinematics<double>(model_, space.ours, world.qpos, world.qvel);
  const Heading heading(space.ours.links()[0].R);
  const Vec3d root = vector_at(world.qpos, 0);
  double* to = observation.data();
  if (options_.phase) {
    const double cycles = clip_time(world.memory) / clip_.duration();
    *to++ = clip_.loop() ? cycles - std::floor(cycles) : std::min(cycles, 1.0);
  }
  *to++ = root.z;
  for (int body : bodies_) {
    const Mat3d R = body_pose(model_, space.ours, body).R;
    put(to, heading.in(centre(model_, space.ours, body) - root));
    put(to, heading.in(R.column_z())), put(to, heading.in(R.column_x()));
    put(to, heading.in(centre_velocity(model_, space.ours, body)));
    put(to, heading.in(body_velocity(model_, space.ours, body).w));
  }
}

}  // namespace tarsus
