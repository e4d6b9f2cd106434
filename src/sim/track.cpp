#include "tarsus/sim/track.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "sim/within.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/dynamics/frame.hpp"

namespace tarsus {

namespace {

void check(const Model& model, const Drives& drives, const TrackOptions& options) {
  const auto positive = [](const char* name, double x) {
    if (!(x > 0) || !std::isfinite(x)) throw ValueError(name, number_text(x), "a positive, finite number of seconds");
  };
  positive("dt", options.dt);
  positive("duration", options.duration);
  if (options.duration / options.dt > 1e9)
    throw ValueError("duration", number_text(options.duration), "at most 1e9 steps");
  if (!std::isfinite(options.start))
    throw ValueError("start", number_text(options.start), "a finite number of seconds");
  drives.check(model);
  for (const Push& push : options.pushes) {
    if (push.body <= 0 || push.body >= model.nbody() || model.bodies[push.body].link < 0)
      throw ValueError("pushes", "body " + std::to_string(push.body), "a body that moves");
    positive("a push's duration", push.duration);
    if (!(push.start >= 0) || !std::isfinite(push.start))
      throw ValueError("a push's start", number_text(push.start), "a finite time that is not negative");
    if (!std::isfinite(norm(push.force)))
      throw ValueError("a push's force", number_text(norm(push.force)), "a finite force");
  }
}

/// The forces of the pushes in a step, as joint forces.
class Pusher {
 public:
  Pusher(const Model& model, const std::vector<Push>& pushes)
      : model_(model), pushes_(pushes), data_(model), tau_(model.nv) {}

  /// Writes tau, unless there are no pushes.
  /// @return the sum of the forces, mean over the step
  template <class R>
  Vec3d apply(double begin, double end, BasicData<R>& data) {
    if (pushes_.empty()) return {0, 0, 0};
    Vec3d sum{0, 0, 0};
    std::fill(tau_.begin(), tau_.end(), 0.0);
    bool posed = false;
    for (const Push& push : pushes_) {
      const double both = std::min(end, push.start + push.duration) - std::max(begin, push.start);
      if (both <= 0) continue;
      if (!posed) {
        std::copy(data.qpos.begin(), data.qpos.end(), data_.qpos.begin());
        kinematics<double>(model_, data_, data_.qpos);
        posed = true;
      }
      const Vec3d force = push.force * (both / (end - begin));
      const LinkFrame com = inertial_frame(model_, push.body);
      add_generalized_force(model_, data_.links(), com.link, world_point(data_.links(), com), force, {0, 0, 0}, 1,
                            tau_.data());
      sum = sum + force;
    }
    std::copy(tau_.begin(), tau_.end(), data.tau.begin());
    return sum;
  }

 private:
  const Model& model_;
  const std::vector<Push>& pushes_;
  Data data_;
  std::vector<double> tau_;
};

template <class R>
void convert(std::span<const double> from, AlignedVector<R>& to) {
  std::copy(from.begin(), from.end(), to.begin());
}

void add(const RowsReport& rows, int step, TrackReport& report) {
  report.contacts_max = std::max(report.contacts_max, rows.touching);
  report.penetration_max = std::max(report.penetration_max, rows.penetration);
  report.row_residual_max = std::max(report.row_residual_max, rows.residual);
  report.row_iterations += (rows.iterations - report.row_iterations) / step;
}

template <class R>
void add(const ConstrainedDynamics<R>& loops, TrackReport& report) {
  const auto error = loops.error(0);
  if (error.row < 0 || error.position <= report.loop_error_max) return;
  report.loop_error_max = error.position;
  report.loop_error_row = loops.equalities().row_name(error.row);
}

}  // namespace

ErrorMeter::ErrorMeter(const Model& model, const Drives& drives) : model_(model), ours_(model), theirs_(model) {
  std::vector<int> root(model.njoint());
  std::vector<char> driven(model.njoint(), 0);
  for (int i = 0; i < model.njoint(); ++i) {
    const Joint& joint = model.joints[i];
    root[i] = joint.parent < 0 ? i : root[joint.parent];
    for (int v = joint.qvel; v < joint.qvel + joint.nv(); ++v)
      driven[root[i]] |= drives.kp[v] != 0 || drives.kd[v] != 0;
  }
  const bool all = std::count(driven.begin(), driven.end(), 1) == 0;
  for (int i = 1; i < model.nbody(); ++i) {
    const int link = model.bodies[i].link;
    if (link >= 0 && (all || driven[root[link]])) bodies_.push_back(i);
  }
}

double ErrorMeter::measure(std::span<const double> qpos, std::span<const double> target, double& max) {
  kinematics<double>(model_, ours_, qpos);
  kinematics<double>(model_, theirs_, target);
  double sum = 0;
  for (const int i : bodies_) {
    const Transformd a = body_pose(model_, ours_, i), b = body_pose(model_, theirs_, i);
    const double error = norm(a.R * model_.bodies[i].com + a.p - b.R * model_.bodies[i].com - b.p);
    max = std::max(max, error);
    sum += error;
  }
  return bodies_.empty() ? 0 : sum / double(bodies_.size());
}

PoseSource follow(const Model& model, const ClipBinding& clip) {
  if (clip.nq() != model.nq || clip.nv() != model.nv)
    throw ValueError("clip", "bound to another model", "a clip that is bound to this model");
  return [&clip](double t, std::span<double> qpos, std::span<double> qvel) { clip.sample(t, qpos, qvel); };
}

PoseSource hold(std::vector<double> pose) {
  return [pose = std::move(pose)](double, std::span<double> qpos, std::span<double> qvel) {
    std::copy(pose.begin(), pose.end(), qpos.begin());
    std::fill(qvel.begin(), qvel.end(), 0.0);
  };
}

template <class R>
TrackReport track(const Model& model, const PoseSource& source, const Drives& drives, const TrackOptions& options,
                  const std::function<void(const TrackFrame&)>& on_frame) {
  check(model, drives, options);
  using Clock = std::chrono::steady_clock;
  BasicData<R> data(model);
  Stepper<R> stepper(model, data, options);
  const auto take = [&](const char* name, const std::vector<double>& from, AlignedVector<R>& to) {
    if (!from.empty()) check_size(name, from.size(), to.size()), convert<R>(from, to);
  };
  take("ctrl", options.ctrl, data.ctrl), take("act", options.act, data.act);
  take("mocap_pos", options.mocap_pos, data.mocap_pos), take("mocap_quat", options.mocap_quat, data.mocap_quat);
  ErrorMeter meter(model, options.actuators ? Drives::none(model) : drives);
  Pusher pusher(model, options.pushes);
  std::vector<double> qpos(model.nq), qvel(model.nv), target(model.nq), target_velocity(model.nv);
  AlignedVector<R> goal(model.nq), goal_velocity(model.nv);
  source(options.start, qpos, qvel);
  if (!options.qvel.empty()) check_size("qvel", options.qvel.size(), qvel.size()), qvel = options.qvel;
  convert<R>(qpos, data.qpos), convert<R>(qvel, data.qvel);

  TrackReport report;
  std::vector<Vec3d> contact_force;
  const int steps = std::max(1, int(std::lround(options.duration / options.dt)));
  if (on_frame) on_frame({0, steps, 0, qpos, qvel, qpos});
  Clock::duration busy{0};
  for (int i = 1; i <= steps; ++i) {
    if (options.stop && options.stop()) {
      report.stopped = true;
      break;
    }
    const double time = i * options.dt;
    const Vec3d push = pusher.apply(time - options.dt, time, data);
    report.push_impulse = report.push_impulse + push * options.dt;
    const auto began = Clock::now();
    source(options.start + time, target, target_velocity);
    convert<R>(target, goal), convert<R>(target_velocity, goal_velocity);
    stepper.step(data, options.actuators ? nullptr : &drives, goal,
                 options.target_velocity ? In<R>(goal_velocity) : In<R>());
    busy += Clock::now() - began;
    report.status = stepper.status(0);
    if (stepper.loops()) add(*stepper.loops(), report);
    if (report.status != WorldStatus::ok) break;
    report.steps = i;
    if (stepper.rows()) add(stepper.rows()->report(), i, report);
    qpos.assign(data.qpos.begin(), data.qpos.end()), qvel.assign(data.qvel.begin(), data.qvel.end());
    const double error = meter.measure(qpos, target, report.error_max);
    report.error_mean += (error - report.error_mean) / i;
    if (!on_frame) continue;
    TrackFrame frame{i, steps, time, qpos, qvel, target, error};
    if (const RowStage<R>* rows = stepper.rows()) {
      frame.contacts = rows->contacts(), frame.rows = &rows->report();
      contact_force.clear();
      for (std::size_t k = 0; k < frame.contacts.size(); ++k) contact_force.push_back(rows->terms().force(int(k)));
      frame.contact_force = contact_force;
    }
    on_frame(frame);
  }
  report.seconds = std::chrono::duration<double>(busy).count();
  report.stage_seconds = stepper.stage_seconds();
  Data end(model);
  kinematics<double>(model, end, qpos, qvel);
  report.energy = energy<double>(model, end, qpos, qvel);
  report.nan = !finite<double>(qpos) || !finite<double>(qvel) || report.status == WorldStatus::bad_input ||
               report.status == WorldStatus::singular;
  return report;
}

template TrackReport track<double>(const Model&, const PoseSource&, const Drives&, const TrackOptions&,
                                   const std::function<void(const TrackFrame&)>&);
template TrackReport track<float>(const Model&, const PoseSource&, const Drives&, const TrackOptions&,
                                  const std::function<void(const TrackFrame&)>&);

}  // namespace tarsus
