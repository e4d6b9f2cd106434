// Applied forces, and the stages terms and integrate of RigidWorld.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>

#include "sim/rigid_workspace.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/model/jcalc.inl"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

namespace {

constexpr double kGyrationGain = 1e-3;  ///< fraction of the energy that a step of the rule may add

/// ω after a step of torque-free rotation, with the half implicit velocity products that trees use. The rule is neutral
/// if the step turns the body by little, and never increases the energy if it turns by much. [Kahan 1993]
Vec3d gyroscopic(const RigidBody& b, const Mat3d& r, const Vec3d& world, double h) {
  if (b.isotropic()) return world;
  const Vec3d w = transpose_mul(r, world), i = b.inertia, l = {i.x * w.x, i.y * w.y, i.z * w.z};
  const Vec3d f = cross(w, l) * h;
  // J = I + g ([ω]× I - [I ω]×)
  const double g = 0.5 * h;
  const Mat3d jacobian = {i.x, g * (l.z - w.z * i.y), g * (w.y * i.z - l.y), g * (w.z * i.x - l.z),
                          i.y, g * (l.x - w.x * i.z), g * (l.y - w.y * i.x), g * (w.x * i.y - l.x),
                          i.z};
  const Vec3d c0 = jacobian.column_x(), c1 = jacobian.column_y(), c2 = jacobian.column_z();
  const double det = dot(c0, cross(c1, c2));
  const Vec3d step = Vec3d{dot(f, cross(c1, c2)), dot(c0, cross(f, c2)), dot(c0, cross(c1, f))} * (1 / det);
  const Vec3d next = w - step;
  const double before = dot(w, l), after = i.x * next.x * next.x + i.y * next.y * next.y + i.z * next.z * next.z;
  return r * (after > (1 + kGyrationGain) * before ? next * std::sqrt(before / after) : next);
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
void RigidWorld<R>::solve_lanes(RigidStepReport& report, StageClock& clock) {
  Workspace& w = *work_;
  w.solved_by_rows = false;
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
  const BodyContactReport r = lanes_.solve(o, *team_);
  report.iterations = r.iterations, report.residual = r.change, report.first_change = r.first_change;
  report.colours = r.colours;
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

/// The rows of one step in the coordinates (m v, I ω in principal axes), in which the inverse masses are diagonal.
class RigidRows {
 public:
  RigidRows(RowProblem& rows, const std::vector<RigidBody>& bodies) : rows_(rows), bodies_(bodies) {
    std::vector<double> inverse(6 * bodies.size(), 0.0);
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      const RigidBody& b = bodies[i];
      turn_.push_back(rotation(b.orientation));
      if (b.asleep) continue;
      const double numbers[6] = {1 / b.mass, 1 / b.mass, 1 / b.mass, 1 / b.inertia.x, 1 / b.inertia.y, 1 / b.inertia.z};
      std::copy_n(numbers, 6, inverse.begin() + long(6 * i));
    }
    rows.clear(inverse);
  }
  const Mat3d& turn(int body) const { return turn_[at(body)]; }

  /// Sets the effect of the next row: along `n` at the arms (linear), or about `n` (angular), with the opposite sign on
  /// body b.
  void aim(int a, int b, const Vec3d& n, const Vec3d& arm_a, const Vec3d& arm_b, bool angular = false) {
    column_.clear(), value_.clear();
    const auto put = [&](int body, const Vec3d& linear, const Vec3d& moment) {
      if (body < 0) return;
      const Vec3d m = transpose_mul(turn_[at(body)], moment);
      const double numbers[6] = {linear.x, linear.y, linear.z, m.x, m.y, m.z};
      for (int k = angular ? 3 : 0; k < 6; ++k) column_.push_back(6 * body + k), value_.push_back(numbers[k]);
    };
    put(a, n, angular ? n : cross(arm_a, n));
    put(b, -n, angular ? -n : -cross(arm_b, n));
  }
  int add(const RowNumbers& numbers) { return rows_.add_row(column_, value_, numbers); }
  /// Velocity and inverse effective mass of the row that aim() set.
  double speed() const {
    double sum = 0;
    for (std::size_t k = 0; k < column_.size(); ++k) {
      const int body = column_[k] / 6, axis = column_[k] % 6;
      const RigidBody& b = bodies_[at(body)];
      sum += value_[k] * (axis < 3 ? b.velocity[axis] : transpose_mul(turn_[at(body)], b.angular_velocity)[axis - 3]);
    }
    return sum;
  }
  double diagonal() const {
    double sum = 0;
    for (std::size_t k = 0; k < column_.size(); ++k)
      sum += value_[k] * value_[k] * rows_.inverse_mass()[at(column_[k])];
    return sum;
  }

 private:
  RowProblem& rows_;
  const std::vector<RigidBody>& bodies_;
  std::vector<Mat3d> turn_;
  std::vector<int> column_;
  std::vector<double> value_;
};

namespace {

struct PlacedContact {
  int normal, tangent, torsional, rolling;  // row numbers, -1: none
  Vec3d t1, t2;
};

template <class R>
PlacedContact add_contact_rows(RigidRows& rows, RowProblem& problem, const BodyContact<R>& c,
                               const ContactImpulse<R>& from, const ContactMoment<R>& moment, const PairSurface& s,
                               const RigidWorldOptions& options, std::vector<double>& start) {
  const Vec3d n = widen(get3(c.normal));
  Vec3d ra = widen(get3(c.arm_a)), rb = widen(get3(c.arm_b));
  if (c.round) ra = n * -double(c.arm_a[0]), rb = n * double(c.arm_b[0]);
  const auto [t1, t2] = contact_tangents(n);
  const int a = c.body_a, b = c.body_b;
  problem.add_block(RowCone::interval);
  rows.aim(a, b, n, ra, rb);
  const Spook spook{s.material.compliance + double(c.relative_compliance) * rows.diagonal(), s.material.damping_time};
  const double speed = rows.speed(), e = s.material.restitution;
  const SpookRow row = spook_unilateral(spook, double(c.distance), speed, options.dt, e, options.restitution_threshold);
  // A bouncing pair that is still apart has no contact force yet (see body_contact_kernels.inl).
  const bool bounces = e > 0 && -speed > options.restitution_threshold, active = !(c.distance > 0 && bounces);
  PlacedContact out{rows.add({bounces ? 0 : row.compliance, row.target, 0, active ? kInfinity : 0}), 0, -1, -1, t1, t2};
  start.push_back(double(from.normal));
  const Vec3d push = widen(get3(from.tangent));
  problem.add_block(RowCone::ball, out.normal, s.material.friction);
  rows.aim(a, b, t1, ra, rb);
  out.tangent = rows.add({});
  rows.aim(a, b, t2, ra, rb);
  rows.add({});
  start.push_back(dot(t1, push)), start.push_back(dot(t2, push));
  const Vec3d turn = widen(get3(moment.moment));
  if (s.material.torsional > 0) {
    problem.add_block(RowCone::ball, out.normal, s.material.torsional);
    rows.aim(a, b, n, ra, rb, true);
    out.torsional = rows.add({});
    start.push_back(dot(n, turn));
  }
  if (s.material.rolling > 0) {
    problem.add_block(RowCone::ball, out.normal, s.material.rolling);
    rows.aim(a, b, t1, ra, rb, true);
    out.rolling = rows.add({});
    rows.aim(a, b, t2, ra, rb, true);
    rows.add({});
    start.push_back(dot(t1, turn)), start.push_back(dot(t2, turn));
  }
  return out;
}

}  // namespace

template <class R>
void RigidWorld<R>::solve_rows(RigidStepReport& report) {
  Workspace& w = *work_;
  w.solved_by_rows = true;
  const std::string name = options_.solver == "lanes" ? "gauss_seidel" : options_.solver;
  if (!w.solver_is_given && (!w.row_solver || w.row_solver_name != name))
    w.row_solver = make_row_solver(name), w.row_solver_name = name;
  RigidRows rows(w.rows, bodies_);
  w.multiplier.clear();
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const PointJoint& joint = joints_[j];
    const RigidBody& a = bodies_[at(joint.body_a)];
    Vec3d ra = rows.turn(joint.body_a) * joint.anchor_a;
    Vec3d rb = joint.body_b < 0 ? Vec3d{0, 0, 0} : rows.turn(joint.body_b) * joint.anchor_b;
    const Vec3d end = joint.body_b < 0 ? joint.anchor_b : bodies_[at(joint.body_b)].position + rb;
    const Vec3d gap = a.position + ra - end;
    // With arms to the midpoint of the two anchors, J v is the gap's rate in axes that rotate with both bodies, and Jᵀ
    // has no net torque.
    if (joint.body_b >= 0) ra += gap * -0.5, rb += gap * 0.5;
    w.rows.add_block(RowCone::interval);
    for (int axis = 0; axis < 3; ++axis) {
      const Vec3d n = {double(axis == 0), double(axis == 1), double(axis == 2)};
      rows.aim(joint.body_a, joint.body_b, n, ra, rb);
      const SpookRow row = spook_bilateral(joint.spook, gap[axis], rows.speed(), options_.dt);
      rows.add({row.compliance, row.target, -kInfinity, kInfinity});
      const bool warm = options_.warm_start && w.last_joint.size() == 3 * joints_.size();
      w.multiplier.push_back(warm ? w.last_joint[3 * j + std::size_t(axis)] : 0);
    }
  }
  const std::size_t used = lanes_.active < 0 ? lanes_.contacts.size() : at(lanes_.active);
  std::vector<PlacedContact> placed;
  for (std::size_t i = 0; i < used; ++i) {
    const BodyContact<R>& c = lanes_.contacts[i];
    placed.push_back(add_contact_rows(rows, w.rows, c, lanes_.impulses[i],
                                      w.turns ? lanes_.moments[i] : ContactMoment<R>{}, w.surfaces[at(c.material)],
                                      options_, w.multiplier));
  }
  w.velocity.resize(bodies_.size()), w.spin.resize(bodies_.size()), w.u.resize(6 * bodies_.size());
  team_->each(int(bodies_.size()), [&](int i) {
    const RigidBody& b = bodies_[at(i)];
    const auto [push, turn] = force_step(b);
    const Vec3d velocity = b.velocity + push, spin = transpose_mul(rows.turn(i), b.angular_velocity + turn);
    for (int k = 0; k < 3; ++k)
      w.u[at(6 * i + k)] = b.mass * velocity[k], w.u[at(6 * i + 3 + k)] = b.inertia[k] * spin[k];
  });
  RowSolveOptions o;
  o.max_iterations = options_.iterations, o.tolerance = options_.tolerance, o.relaxation = options_.relaxation;
  const RowSolveReport r = w.row_solver->solve(w.rows, w.u, w.multiplier, o);
  report.iterations = r.iterations, report.residual = r.residual;
  if (r.status == RowSolveStatus::not_finite) report.status = WorldStatus::bad_input;
  for (std::size_t i = 0; i < bodies_.size(); ++i) {
    const RigidBody& b = bodies_[i];
    Vec3d spin;
    w.velocity[i] = w.spin[i] = {0, 0, 0};
    if (b.asleep) continue;
    for (int k = 0; k < 3; ++k)
      w.velocity[i][k] = w.u[6 * i + at(k)] / b.mass, spin[k] = w.u[6 * i + 3 + at(k)] / b.inertia[k];
    w.spin[i] = rows.turn(int(i)) * spin;
  }
  w.last_joint.assign(w.multiplier.begin(), w.multiplier.begin() + long(3 * joints_.size()));
  for (std::size_t i = 0; i < used; ++i) {
    ContactImpulse<R>& c = lanes_.impulses[i];
    const PlacedContact& p = placed[i];
    c.normal = R(w.multiplier[at(p.normal)]);
    const Vec3d t = p.t1 * w.multiplier[at(p.tangent)] + p.t2 * w.multiplier[at(p.tangent + 1)];
    for (int k = 0; k < 3; ++k) c.tangent[k] = R(t[k]);
    if (!w.turns) continue;
    Vec3d moment = {0, 0, 0};
    if (p.torsional >= 0) moment = widen(get3(lanes_.contacts[i].normal)) * w.multiplier[at(p.torsional)];
    if (p.rolling >= 0) moment += p.t1 * w.multiplier[at(p.rolling)] + p.t2 * w.multiplier[at(p.rolling + 1)];
    for (int k = 0; k < 3; ++k) lanes_.moments[i].moment[k] = R(moment[k]);
  }
}

/// Integrates poses. Returns false, with nothing moved, if a velocity is not finite or exceeds the limit.
template <class R>
bool RigidWorld<R>::move(RigidStepReport& report) {
  const Workspace& w = *work_;
  const double h = options_.dt, limit2 = options_.speed_limit * options_.speed_limit;
  std::atomic<int> worst{0};
  const auto velocities = [&](int i) -> std::pair<Vec3d, Vec3d> {
    if (w.solved_by_rows) return {w.velocity[at(i)], w.spin[at(i)]};
    const R* v = lanes_.velocity(i);
    return {widen(get3(v)), widen(get3(v + 4))};
  };
  team_->each(int(bodies_.size()), [&](int i) {
    const auto [v, spin] = velocities(i);
    const double speed2 = dot(v, v) + dot(spin, spin);
    if (!std::isfinite(speed2)) worst = 2;
    if (speed2 > limit2 && worst == 0) worst = 1;
  });
  if (worst == 2) report.status = WorldStatus::singular;
  if (worst == 1) report.status = WorldStatus::too_fast;
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
