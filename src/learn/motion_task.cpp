#include "tarsus/learn/motion_task.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "learn/kernel_table.hpp"
#include "learn/numbers.hpp"

namespace tarsus {
/// The task for worlds in SIMD lanes; a single world in double has one lane.
template <class R>
class MotionTask::Lanes : public TaskLanes<R> {
 public:
  using Worlds = typename TaskLanes<R>::Worlds;

  Lanes(const MotionTask& task, int width);
  void act(const Worlds& worlds, In<R> action, Out<R> target) override;
  void score(const Worlds& worlds, In<R> touch, Out<R> terms, std::span<Score> scores) override;
  void observe(const Worlds& worlds, bool scored, Out<R> observation) override;

 private:
  /// Samples the clip's pose of each world `steps` ahead, and its velocity on request.
  void sample(const Worlds& worlds, int steps, bool velocity);
  void place_reference(const Worlds& worlds);
  Score judge(const double* memory, std::size_t lane, In<R> touch) const;

  const MotionTask& task_;
  std::size_t width_;
  const LearnTable<R>& kernels_;
  std::vector<typename MotionView<R>::Body> bodies_;
  std::vector<typename MotionView<R>::Point> points_;
  std::vector<R> joint_weight_, scale_, weight_;
  MotionView<R> view_;
  ClipLanes<R> clip_;
  BasicData<R> ours_, theirs_;    // poses of the characters and of the clip
  std::vector<double> time_;      // [lane] clip time
  AlignedVector<R> qpos_, qvel_;  // of the clip
  AlignedVector<R> scores_;       // [kMotionScores][lane]
};

struct MotionTask::Space : Task::Scratch {
  explicit Space(const MotionTask& task) : lanes(task, 1) {}
  Lanes<double> lanes;
};

MotionTask::MotionTask(const Model& model, ClipBinding clip, Drives drives, MotionTaskOptions options)
    : model_(model), clip_(std::move(clip)), drives_(std::move(drives)), options_(std::move(options)) {
  if (model.joints.empty() || !moves_freely(model.joints[0].type))
    throw ValueError("model", model.name, "a model whose first joint is free");
  const auto free = [](const Joint& joint) { return moves_freely(joint.type); };
  if (std::any_of(model.joints.begin() + 1, model.joints.end(), free))
    throw ValueError("model", model.name + " with several free joints",
                     "a model in which only the first joint is free");
  if (clip_.nq() != model.nq || clip_.nv() != model.nv)
    throw ValueError("clip", "bound to another model", "a clip that is bound to this model");
  if (!(clip_.duration() > 0)) throw ValueError("clip", "a single frame", "a clip with two or more frames");
  drives_.check(model);
  for (int i = 0; i < 6; ++i) {
    if (drives_.kp[i] != 0 || drives_.kd[i] != 0)
      throw ValueError("drives", "given with gains for the root",
                       "gains of 0 there, because only the ground holds the root");
  }
  positive("control_dt", options_.control_dt), positive("time_limit", options_.time_limit);
  if (!(options_.tilt_limit > 0))
    throw ValueError("tilt_limit", number_text(options_.tilt_limit), "a positive angle [rad]");
  if (!std::isfinite(options_.start) || options_.start > 1e9)  // later, steps are lost in the time's rounding
    throw ValueError("start", number_text(options_.start), "a time of at most 1e9 s");
  check_substeps(options_.substeps);
  if (!(options_.distance_limit > 0))
    throw ValueError("distance_limit", number_text(options_.distance_limit), "a positive distance [m]");

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
  for (const auto& point : options_.end_effectors) {
    moving("end_effectors", point.body);
    for (const double x : {point.position.x, point.position.y, point.position.z})
      if (!std::isfinite(x)) throw ValueError("end_effectors", number_text(x), "finite positions [m]");
  }
  may_touch_.assign(model.joints.size(), 0);
  for (int body : options_.feet) moving("feet", body), may_touch_[model.bodies[body].link] = 1;
  for (int i = 1; i < model.nbody(); ++i) {
    if (model.bodies[i].link >= 0 && model.bodies[i].mass > 0) bodies_.push_back(i), mass_ += model.bodies[i].mass;
  }
}

std::unique_ptr<Task::Scratch> MotionTask::scratch() const { return std::make_unique<Space>(*this); }

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
  double* const memory = world.memory.data();
  static_cast<Space&>(scratch).lanes.act({world.qpos, world.qvel, {&memory, 1}}, action, target);
}

Task::Score MotionTask::score(const World& world, std::span<const double> touch, std::span<double> terms,
                              Scratch& scratch) const {
  double* const memory = world.memory.data();
  Score score;
  static_cast<Space&>(scratch).lanes.score({world.qpos, world.qvel, {&memory, 1}}, touch, terms, {&score, 1});
  scratch.current = true;
  return score;
}

void MotionTask::observe(const World& world, std::span<double> observation, Scratch& scratch) const {
  check_size("observation", observation.size(), observation_size());
  double* const memory = world.memory.data();
  static_cast<Space&>(scratch).lanes.observe({world.qpos, world.qvel, {&memory, 1}}, scratch.current, observation);
}

void MotionTask::make_lanes(int width, std::unique_ptr<TaskLanes<double>>& out) const {
  out = std::make_unique<Lanes<double>>(*this, width);
}

void MotionTask::make_lanes(int width, std::unique_ptr<TaskLanes<float>>& out) const {
  out = std::make_unique<Lanes<float>>(*this, width);
}

template <class R>
MotionTask::Lanes<R>::Lanes(const MotionTask& task, int width)
    : task_(task),
      width_(width),
      kernels_(learn_table<R>(width)),
      joint_weight_(task.joint_weight_.begin(), task.joint_weight_.end()),
      clip_(task.clip_, width),
      ours_(task.model_, width),
      theirs_(task.model_, width),
      time_(width),
      qpos_(ours_.size(task.model_.nq)),
      qvel_(ours_.size(task.model_.nv)),
      scores_(ours_.size(kMotionScores)) {
  const auto put = [](R* to, const Vec3d& v) { to[0] = R(v.x), to[1] = R(v.y), to[2] = R(v.z); };
  for (int index : task.bodies_) {
    const Body& body = task.model_.bodies[index];
    auto& b = bodies_.emplace_back();
    b.link = body.link, b.mass = R(body.mass / task.mass_);
    put(b.x_axis, body.X_LB.R.column_x()), put(b.z_axis, body.X_LB.R.column_z());
    put(b.origin, body.X_LB.p), put(b.com, body.X_LB.R * body.com + body.X_LB.p);
  }
  for (const auto& point : task.options_.end_effectors) {
    const Body& body = task.model_.bodies[point.body];
    auto& p = points_.emplace_back();
    p.link = body.link, put(p.position, body.X_LB.R * point.position + body.X_LB.p);
  }
  for (const Term& term : task.terms_) scale_.push_back(R(term.scale)), weight_.push_back(R(term.weight));
  view_ = {
      int(bodies_.size()),  int(points_.size()), bodies_.data(), points_.data(),
      joint_weight_.data(), scale_.data(),       weight_.data(), task.options_.reward == ImitationReward::mimickit};
}

template <class R>
void MotionTask::Lanes<R>::sample(const Worlds& worlds, int steps, bool velocity) {
  for (std::size_t lane = 0; lane < width_; ++lane) {
    const double* memory = worlds.memory[lane];
    time_[lane] = memory ? memory[kStart] + (memory[kSteps] + steps) * task_.control_dt() : 0;
  }
  clip_.sample(time_, qpos_, velocity ? std::span<R>(qvel_) : std::span<R>());
}

template <class R>
void MotionTask::Lanes<R>::act(const Worlds& worlds, In<R> action, Out<R> target) {
  const bool relative = task_.options_.relative_action;
  if (relative) sample(worlds, 1, false);
  kernels_.motion_targets(task_.model_.view<R>(), worlds.qpos.data(), relative ? qpos_.data() : nullptr, action.data(),
                          target.data());
}

/// Advances each world by a step, and moves the clip's pose to where the world follows it.
template <class R>
void MotionTask::Lanes<R>::place_reference(const Worlds& worlds) {
  for (std::size_t lane = 0; lane < width_; ++lane) {
    double* const memory = worlds.memory[lane];
    if (!memory) continue;
    const auto cycle = [&] { return std::floor(task_.clip_time({memory, kMemory}) / task_.clip_.duration()); };
    const double before = cycle();
    memory[kSteps] += 1;
    R *x = &qpos_[lane], *y = &qpos_[width_ + lane];
    *x += R(memory[kShiftX]), *y += R(memory[kShiftY]);
    if (!task_.options_.follow_root || !task_.clip_.loop() || !(cycle() > before)) continue;
    memory[kShiftX] += worlds.qpos[lane] - *x, memory[kShiftY] += worlds.qpos[width_ + lane] - *y;
    *x = worlds.qpos[lane], *y = worlds.qpos[width_ + lane];
  }
}

template <class R>
void MotionTask::Lanes<R>::score(const Worlds& worlds, In<R> touch, Out<R> terms, std::span<Score> scores) {
  sample(worlds, 1, true);
  place_reference(worlds);
  kinematics<R>(task_.model_, ours_, worlds.qpos, worlds.qvel);
  kinematics<R>(task_.model_, theirs_, qpos_, qvel_);
  kernels_.motion_score(task_.model_.view<R>(), view_, ours_.state(0), theirs_.state(0), worlds.qpos.data(),
                        worlds.qvel.data(), qpos_.data(), qvel_.data(), scores_.data());
  std::copy_n(scores_.begin(), terms.size(), terms.begin());
  for (std::size_t lane = 0; lane < width_; ++lane) {
    if (worlds.memory[lane]) scores[lane] = judge(worlds.memory[lane], lane, touch);
  }
}

template <class R>
Task::Score MotionTask::Lanes<R>::judge(const double* memory, std::size_t lane, In<R> touch) const {
  const MotionTaskOptions& o = task_.options_;
  const auto found = [&](int which) { return double(scores_[which * width_ + lane]); };
  Score score;
  for (std::size_t link = 0; link < task_.may_touch_.size(); ++link)
    score.terminated = score.terminated || (!task_.may_touch_[link] && touch[link * width_ + lane] > 0);
  score.terminated = score.terminated || (o.tilt_limit < kPi && found(kMotionTilt) > o.tilt_limit * o.tilt_limit) ||
                     found(kMotionDistance) > o.distance_limit * o.distance_limit;
  if (score.terminated) return score;
  constexpr double kRounding = 1e-9;  // [s]
  const double now = task_.clip_time({memory, kMemory});
  score.reward = found(kMotionReward);
  score.truncated = memory[kSteps] * o.control_dt >= o.time_limit - kRounding ||
                    (!task_.clip_.loop() && now >= task_.clip_.duration() - kRounding);
  return score;
}

template <class R>
void MotionTask::Lanes<R>::observe(const Worlds& worlds, bool scored, Out<R> observation) {
  if (!scored) kinematics<R>(task_.model_, ours_, worlds.qpos, worlds.qvel);
  R* to = observation.data();
  for (std::size_t lane = 0; lane < width_ && task_.options_.phase; ++lane) {
    const double* memory = worlds.memory[lane];
    const double cycles = memory ? task_.clip_time({memory, kMemory}) / task_.clip_.duration() : 0;
    to[lane] = R(task_.clip_.loop() ? cycles - std::floor(cycles) : std::min(cycles, 1.0));
  }
  if (task_.options_.phase) to += width_;
  kernels_.motion_observe(view_, ours_.state(0), worlds.qpos.data(), to);
}

}  // namespace tarsus
