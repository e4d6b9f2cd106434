// Applied forces, and the stages terms and integrate of RigidWorld.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>

#include "sim/rigid_workspace.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/dynamics/spin_response.hpp"
#include "tarsus/model/jcalc.inl"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

constexpr double kGyrationError = 1e-3;  ///< fraction of the energy that a step of the rule may add or take

/// x of (I + ½ h ([ω]× I - [I ω]×)) x = f for the inertia I = diag(i), in its axes.
Vec3d solve_gyroscopic(const Vec3d& i, const Vec3d& w, const Vec3d& f, double h) {
  const Vec3d l = {i.x * w.x, i.y * w.y, i.z * w.z};
  const double g = 0.5 * h;
  return inverse(Mat3d{i.x, g * (l.z - w.z * i.y), g * (w.y * i.z - l.y), g * (w.z * i.x - l.z), i.y,
                       g * (l.x - w.x * i.z), g * (l.y - w.y * i.x), g * (w.x * i.y - l.x), i.z}) *
         f;
}

/// Whether a body may respond to what contacts change.
bool spins(const RigidBody& b, double h) {
  const double least = kLeastSpin / h;
  return !b.asleep && !b.isotropic() && dot(b.angular_velocity, b.angular_velocity) > least * least;
}

/// ω after a step of torque-free rotation, with the half implicit velocity products that trees use. The rule is neutral
/// where the step turns the body by little; else ω is scaled to the energy before. [Kahan 1993]
Vec3d gyroscopic(const RigidBody& b, const Mat3d& r, const Vec3d& world, double h) {
  if (b.isotropic()) return world;
  const Vec3d w = transpose_mul(r, world), i = b.inertia, l = {i.x * w.x, i.y * w.y, i.z * w.z};
  const Vec3d next = w - solve_gyroscopic(i, w, cross(w, l) * h, h);
  const double before = dot(w, l), after = i.x * next.x * next.x + i.y * next.y * next.y + i.z * next.z * next.z;
  const double error = dot(w, w) * h * h > kMostTurn * kMostTurn ? 0 : kGyrationError;
  const bool off = after > 0 && std::abs(after - before) > error * before;
  return r * (off ? next * std::sqrt(before / after) : next);
}

/// q ⊞ h ω. For |h ω| < 1/2 by a series of the exponential map, exact to rounding; else by the library's function.
TARSUS_INLINE Quatd turned(const Quatd& q, Vec3d w, double h) {
  const Vec3d v = w * h;
  const double x = dot(v, v);
  Quatd d;
  if (x < 0.25) {
    const double y = 0.25 * x;  // (|v|/2)²
    const double s = 0.5 * (1 + y * (-1. / 6 + y * (1. / 120 + y * (-1. / 5040 + y * (1. / 362880 - y / 39916800)))));
    const double c =
        1 + y * (-1. / 2 + y * (1. / 24 + y * (-1. / 720 + y * (1. / 40320 + y * (-1. / 3628800 + y / 479001600)))));
    d = {c, s * v.x, s * v.y, s * v.z};
  } else {
    d = exp_map(v);
  }
  return normalized(d * q);
}

}  // namespace

/// Velocity changes in a step due to forces alone.
template <class R>
std::pair<Vec3d, Vec3d> RigidWorld<R>::force_step(const RigidBody& b) const {
  const double h = options_.dt;
  if (b.asleep) return {{0, 0, 0}, {0, 0, 0}};
  const Vec3d push = (options_.gravity + b.force * (1 / b.mass)) * h;
  const bool torque = b.torque.x != 0 || b.torque.y != 0 || b.torque.z != 0;
  if (!torque && b.isotropic()) return {push, {0, 0, 0}};
  const Mat3d r = rotation(b.orientation);
  Vec3d spin = b.angular_velocity;
  if (torque) {
    const Vec3d t = transpose_mul(r, b.torque);
    spin += r * Vec3d{t.x / b.inertia.x, t.y / b.inertia.y, t.z / b.inertia.z} * h;
  }
  return {push, gyroscopic(b, r, spin, h) - b.angular_velocity};
}

template <class R>
void RigidWorld<R>::solve(RigidStepReport& report, StageClock& clock) {
  Workspace& w = *work_;
  if (lanes_.bodies() != int(bodies_.size())) lanes_.resize(int(bodies_.size()));
  w.push.resize(8 * bodies_.size());
  team_->each(int(bodies_.size()), [&](int i) { load_body(i); });
  BodyContactOptions o;
  o.dt = options_.dt, o.max_iterations = options_.iterations, o.tolerance = options_.tolerance;
  o.relaxation = options_.relaxation, o.restitution_threshold = options_.restitution_threshold;
  o.deepest_step = kDeepestStep;
  clock.lap(Stage::terms);
  lanes_.prepare(o, *team_);
  clock.lap(Stage::prepare);
  team_->each(int(bodies_.size()), [&](int i) {
    R* v = lanes_.velocity(i);
    const R* push = w.push.data() + 8 * at(i);
    for (int k = 0; k < 8; ++k) v[k] += push[k];
  });
  const bool some_spin = std::any_of(bodies_.begin(), bodies_.end(), [&](auto& b) { return spins(b, o.dt); });
  if (some_spin) o.max_iterations = (options_.iterations + 1) / 2;
  BodyContactReport r = lanes_.solve(o, *team_);
  report.first_change = r.first_change, report.iterations = r.iterations;
  o.max_iterations = options_.iterations - o.max_iterations, o.apply = some_spin && respond();
  if (o.max_iterations > 0 && (o.apply || r.change > o.tolerance)) {
    r = lanes_.solve(o, *team_);
    report.iterations += r.iterations;
  }
  report.residual = r.change;
  report.colours = r.colours;
}

/// Responses of bodies that spin to what contacts change (tarsus/dynamics/spin_response.hpp). @return whether some body
/// responds: then all velocities are those before the contacts, with the responses
template <class R>
bool RigidWorld<R>::respond() {
  Workspace& w = *work_;
  const double h = options_.dt;
  std::atomic<bool> some{false};
  team_->each(int(bodies_.size()), [&](int i) {
    const RigidBody& b = bodies_[at(i)];
    if (!spins(b, h)) return;
    R* const push = w.push.data() + 8 * at(i) + 4;
    const Vec3d d = widen(get3(lanes_.velocity(i) + 4)) - b.angular_velocity - widen(get3(push));
    const Mat3d r = rotation(b.orientation);
    const Vec3d own = transpose_mul(r, b.angular_velocity), by = transpose_mul(r, d), i3 = b.inertia;
    const auto momentum = [&](const Vec3d& x) { return Vec3d{i3.x * x.x, i3.y * x.y, i3.z * x.z}; };
    if (!responds_alone(own, momentum(own), by, h)) return;
    const Vec3d x = r * (solve_gyroscopic(i3, own, momentum(by), h) - by);
    if (!(norm(x) > kLeastRate * h * norm(own))) return;
    some = true;
    for (int k = 0; k < 3; ++k) push[k] += R(x[k]);
  });
  if (!some) return false;
  team_->each(int(bodies_.size()), [&](int i) {
    const RigidBody& b = bodies_[at(i)];
    const R* const push = w.push.data() + 8 * at(i);
    R* const v = lanes_.velocity(i);
    for (int k = 0; k < 3; ++k) v[k] = R(b.velocity[k]) + push[k], v[4 + k] = R(b.angular_velocity[k]) + push[4 + k];
  });
  return true;
}

/// Loads a body's record: velocities at the start of the step; `push` holds the change due to forces. The bodies
/// themselves are not modified until the step has succeeded.
template <class R>
void RigidWorld<R>::load_body(int i) {
  const RigidBody& b = bodies_[at(i)];
  R* v = lanes_.velocity(i);
  for (int k = 0; k < 3; ++k) v[k] = R(b.velocity[k]), v[4 + k] = R(b.angular_velocity[k]);
  v[3] = b.asleep ? R(0) : R(1 / b.mass);
  v[7] = b.asleep ? R(0) : R(1 / b.inertia.x);
  const auto [push, turn] = force_step(b);
  R* add = work_->push.data() + 8 * at(i);
  for (int k = 0; k < 3; ++k) add[k] = R(push[k]), add[4 + k] = R(turn[k]);
  add[3] = add[7] = R(0);
  R* inertia = lanes_.inverse_inertia(i);
  if (b.isotropic()) {
    inertia[0] = inertia[3] = inertia[5] = v[7];
    inertia[1] = inertia[2] = inertia[4] = R(0);
    return;
  }
  const Sym3d s = rotate(rotation(b.orientation), diagonal3(1 / b.inertia.x, 1 / b.inertia.y, 1 / b.inertia.z));
  const double numbers[6] = {s.xx, s.xy, s.xz, s.yy, s.yz, s.zz};
  for (int k = 0; k < 6; ++k) inertia[k] = b.asleep ? R(0) : R(numbers[k]);
}

/// Integrates poses. Returns false, with nothing moved, if a velocity is not finite or exceeds the limit.
template <class R>
bool RigidWorld<R>::move(RigidStepReport& report) {
  const double h = options_.dt, limit2 = options_.speed_limit * options_.speed_limit;
  std::atomic<bool> singular{false}, fast{false};
  const auto velocities = [&](int i) -> std::pair<Vec3d, Vec3d> {
    const R* v = lanes_.velocity(i);
    return {widen(get3(v)), widen(get3(v + 4))};
  };
  team_->each(int(bodies_.size()), [&](int i) {
    const auto [v, spin] = velocities(i);
    const double speed2 = dot(v, v) + dot(spin, spin);
    if (!std::isfinite(speed2))
      singular = true;
    else if (speed2 > limit2)
      fast = true;
  });
  if (fast) report.status = WorldStatus::too_fast;
  if (singular) report.status = WorldStatus::singular;
  if (report.status != WorldStatus::ok) return false;
  team_->each(int(bodies_.size()), [&](int i) {
    RigidBody& b = bodies_[at(i)];
    if (b.asleep) return;
    const auto [v, spin] = velocities(i);
    b.velocity = v, b.angular_velocity = spin;
    b.position = mul_add(v, h, b.position);
    b.orientation = turned(b.orientation, spin, h);
  });
  return true;
}

}  // namespace tarsus
