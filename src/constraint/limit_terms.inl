// Joint ranges as terms: g = q - low or high - q of a hinge or slide, g = range - angle of a ball joint, with γ >= 0.
//
//     J v⁺ + R γ = b of SPOOK for g (spook.hpp), or of the range's solref and solimp (surface.hpp)
//
// Each end of a range that the joint may reach within the step, or nearly, is a term. An end that v⁺ passes without
// being a term joins, and the step is solved again (join_limits()). The force of a ball joint's range turns with the
// joint; where a step does not resolve that, a spring replaces it (range_spring.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "constraint/range_spring.hpp"
#include "constraint/term_constants.hpp"
#include "constraint/tree_stiffness.hpp"
#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/jcalc.inl"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

/// Calls f(side, row, gap) for the ends of a joint's range; of a ball joint only if turning by `way` more may reach
/// them. If a ball joint leaves its range within the step by the velocity `ahead`, the row is that of the place where
/// it ends. v⁰ does not enter, since lanes do not know it and the row must be the same there.
template <class R>
template <class F>
void StepTerms<R>::each_end(const Range& range, double way, In<R> ahead, const F& f) {
  const int joint = range.joint;
  const R* const q = &step_.qpos[range.qpos];
  if (range.axial) {
    f(0, JointRows{joint, JointRows::Part::axial, 1, {1, 0, 0}}, q[0] - range.lower);
    f(1, JointRows{joint, JointRows::Part::axial, 1, {-1, 0, 0}}, range.upper - q[0]);
    return;
  }
  if (ends_before(std::abs(double(q[0])), way, range.half.cosine, range.half.sine)) return;  // the usual case
  const Quatd at{double(q[0]), double(q[1]), double(q[2]), double(q[3])};
  const Vec3d turn = log_map(at), w = widen(get3(&ahead[range.qvel]));
  const double angle = norm(turn);
  const Mat3d A = widen(step_.data->links()[joint].R);
  const auto row = [&](const Vec3d& axis) { return JointRows{joint, JointRows::Part::angular, 1, A * -axis}; };
  if (angle < range.upper) {
    Vec3d end = log_map(at * exp_map(w * step_.h));
    double there = norm(end);
    if (dot(end, turn + w * step_.h) < 0) {  // the rotation passes half a turn
      end = end * (1 - 2 * std::numbers::pi / there);
      there = 2 * std::numbers::pi - there;
    }
    if (there > range.upper) return f(0, row(end * (1 / there)), range.upper - there + step_.h * dot(end, w) / there);
  }
  if (angle >= 1e-6) f(0, row(turn * (1 / angle)), range.upper - angle);  // else there is no direction
}

template <class R>
void StepTerms<R>::add_limits() {
  limits_.near.assign(2 * std::size_t(model_.njoint()), 0);
  for (const auto& range : limits_.ranges) {
    if (range.axial) {
      const double q = step_.qpos[range.qpos], u = step_.qvel[range.qvel], v = step_.free[range.qvel];
      if (range.holds(q + step_.h * std::min(u, v), kLimitReach) &&
          range.holds(q + step_.h * std::max(u, v), kLimitReach))
        continue;
    }
    const int i = range.joint;
    const double way = range.axial ? 0 : kLimitReach + step_.h * norm(widen(get3(&step_.qvel[range.qvel])));
    each_end(range, way, step_.qvel, [&](int side, const JointRows& rows, double gap) {
      const Name name{Kind::limit, 2 * std::uint64_t(i) + std::uint64_t(side)};
      if (!joined(name)) limits_.near[name.identity] = add_bound(name, rows, gap, limits_.solver[i], false);
    });
  }
  for (const auto& end : limits_.joined) {
    if (end.name.kind == Kind::limit) add_bound(end.name, end.rows, end.gap, limits_.solver[end.rows.joint], true);
  }
}

/// Adds the row g = gap >= 0 along a joint, if the joint comes near. @param anyway add it in any case
/// @param solver MuJoCo's parameters if the model has them  @return whether there is a row
template <class R>
bool StepTerms<R>::add_bound(const Name& name, const JointRows& rows, double gap,
                             const std::optional<SolverParameters>& solver, bool anyway) {
  const double speed = along_joint(model_, step_.data->links(), rows, step_.qvel.data());
  const double ahead =
      rows.part == JointRows::Part::axial ? along_joint(model_, step_.data->links(), rows, step_.free.data()) : speed;
  if (!anyway && gap + step_.h * std::min(speed, ahead) > kLimitReach) return false;
  TermRow numbers;
  if (!bound_row(rows, gap, speed, solver, numbers)) return false;
  add_joint_term(name, 0, kUnbounded, rows, numbers.compliance, numbers.target, numbers.scale);
  return true;
}

/// Parameters of a bound's row at that speed.
/// @return false: MuJoCo's law, where the steps resolve it, acts only beyond the range
template <class R>
bool StepTerms<R>::bound_row(const JointRows& rows, double gap, double speed,
                             const std::optional<SolverParameters>& solver, TermRow& numbers) const {
  const double mass = joint_inverse_mass(rows);
  const SolverRow own_law = solver ? solver_row(*solver, gap, step_.h) : SolverRow{};
  numbers = {0, 0, 0, mass};
  if (own_law.share > 0) {
    if (gap > 0) return false;
    numbers.compliance = compliance(own_law.relative_compliance * masses_.now()[rows.joint].joint_weight, mass);
    numbers.target = own_law.target(speed, gap);
    return true;
  }
  const Spook& soft = options_.limit_spook;
  if (soft.compliance == 0) gap = recoverable(soft, gap, step_.h, kLimitReturn);
  numbers.compliance = compliance(spook_bilateral(soft, gap, speed, step_.h).compliance, mass);
  numbers.target = spook_unilateral(soft, gap, speed, step_.h).target;
  return true;
}

/// User-defined limits; see tarsus/constraint/user_limit.hpp.
template <class R>
void StepTerms<R>::add_user_limits() {
  for (std::size_t k = 0; !limits_.joined.empty() && k < limits_.users.size();
       ++k) {  // when the step is laid out again
    const auto& user = limits_.users[k];
    if (user.near || joined(user.name)) add_bound(user.name, user.rows, user.gap, {}, true);
  }
  if (!limits_.joined.empty()) return;
  limits_.users.clear();
  for (std::size_t i = 0; i < options_.user_limits.size(); ++i) {
    const UserLimit& limit = options_.user_limits[i];
    const Joint& joint = model_.joints[limit.joint];
    std::array<double, 4> q{};
    for (int k = 0; k < joint.nq(); ++k) q[std::size_t(k)] = double(step_.qpos[joint.qpos + k]);
    const std::optional<UserLimit::Value> value = limit.evaluate(std::span(q).first(std::size_t(joint.nq())));
    if (!value) continue;
    const bool axial = has_axis(joint.type);
    const JointRows rows{limit.joint, axial ? JointRows::Part::axial : JointRows::Part::angular, 1,
                         axial ? Vec3d{value->e.x, 0, 0} : widen(step_.data->links()[limit.joint].R) * value->e};
    const Name name{Kind::user_limit, i};
    limits_.users.push_back({.name = name, .rows = rows, .gap = value->gap});
    limits_.users.back().near = add_bound(name, rows, value->gap, {}, false);
  }
}

template <class R>
bool StepTerms<R>::joined(const Name& name) const {
  return std::any_of(limits_.joined.begin(), limits_.joined.end(), [&](const auto& end) { return end.name == name; });
}

/// Makes an end of a range, or a user-defined limit, a row if v⁺ violates it.
template <class R>
void StepTerms<R>::join(const Name& name, const JointRows& rows, double gap,
                        const std::optional<SolverParameters>& solver, In<R> velocity) {
  const LinkState<R>* const links = step_.data->links();
  const double start = along_joint(model_, links, rows, step_.qvel.data());
  const double end = along_joint(model_, links, rows, velocity.data());
  TermRow numbers;
  if (!bound_row(rows, gap, start, solver, numbers) || end >= numbers.target) return;
  limits_.joined.push_back({name, rows, gap, numbers.target - end});
}

template <class R>
bool StepTerms<R>::join_limits(In<R> velocity) {
  const std::size_t before = limits_.joined.size();
  const auto end_of = [&](const JointRows& rows, double gap) {
    return gap + step_.h * along_joint(model_, step_.data->links(), rows, velocity.data());
  };
  for (const auto& range : limits_.ranges) {
    if (!options_.joints) break;
    if (range.axial) {
      const double q = step_.qpos[range.qpos];
      if (range.holds(q, 0) && range.holds(q + step_.h * velocity[range.qvel], 0)) continue;  // the usual case
    }
    const int i = range.joint;
    const double turn = range.axial ? 0 : step_.h * norm(widen(get3(&velocity[range.qvel])));
    each_end(range, turn, velocity, [&](int side, const JointRows& rows, double gap) {
      const double end = end_of(rows, gap);
      if (gap > 0 && end >= 0) return;
      Name name{Kind::limit, 2 * std::uint64_t(i) + std::uint64_t(side)};
      const auto is_there = [&] { return limits_.near[name.identity] || joined(name); };
      // A second row, if the rotation has another end that it passes despite the first row.
      if (!range.axial && end < std::min(gap, 0.0) - kLimitReach && is_there()) ++name.identity;
      if (!is_there()) join(name, rows, gap, limits_.solver[i], velocity);
    });
  }
  for (const auto& user : limits_.users) {
    const bool holds = user.gap > 0 && end_of(user.rows, user.gap) >= 0;
    if (!user.near && !holds && !joined(user.name)) join(user.name, user.rows, user.gap, {}, velocity);
  }
  join_force_rows(velocity);
  if (limits_.joined.size() == before) return false;
  if (report_.iterations > options_.solve.max_iterations) {  // one more layout was allowed
    report_.status = std::max(report_.status, StepStatus::too_many_iterations);
    for (std::size_t i = before; i < limits_.joined.size(); ++i)
      report_.residual = std::max(report_.residual, limits_.joined[i].miss);
    return false;
  }
  return true;
}

template <class R>
void StepTerms<R>::turning_ranges(const BasicData<R>& data, double h, AlignedVector<R>& turning) const {
  turning.clear();
  for (const Range& range : limits_.ranges) {
    if (range.axial || !options_.joints || !holds_light_link(data, 0, range.joint, range.light)) continue;
    const R *const q = &data.qpos[range.qpos], *const v = &data.qvel[range.qvel];
    if (!goes_round<R>({q[0], q[1], q[2], q[3]}, {v[0], v[1], v[2]}, h, range.half)) continue;
    if (turning.empty()) turning.assign(model_.nv, R(0));
    turning[range.qvel] = R(1);
  }
}

template <class R>
bool StepTerms<R>::stiffen_ranges(In<R> velocity) {
  if (report_.limits == 0 || limits_.springs == kRangeSprings) return false;
  const double h = step_.h;
  const auto at = [](In<R> all, int first) { return widen(get3(&all[first])); };
  bool more = false;
  for (const Range& range : limits_.ranges) {
    const double force = range.axial ? 0 : limit_force(range.joint);
    if (!(force > 0)) continue;
    const Vec3d turn = at(step_.qpos, range.qpos + 1);
    const RangeSpring spring({double(step_.qpos[range.qpos]), turn.x, turn.y, turn.z}, force);
    const double found = h * h * spring.stiffness, has = limits_.inertia.empty() ? 0 : limits_.inertia[range.qvel];
    if (found <= has) continue;
    const double K = step_.data->joint_inertia[range.qvel];
    if (has == 0 && !spring.is_needed(model_, *step_.data, 0, range.joint, K, at(velocity, range.qvel), h)) continue;
    if (limits_.inertia.empty()) limits_.inertia.assign(model_.nv, R(0)), limits_.force = limits_.inertia;
    const double inertia = kRangeSpringFactor * found;
    const Vec3d push = spring.across(at(step_.qvel, range.qvel)) * (-inertia / h);
    for (int k = 0; k < 3; ++k)
      limits_.inertia[range.qvel + k] = R(inertia), limits_.force[range.qvel + k] = R(push[k]);
    more = true;
  }
  limits_.springs += more;
  return more;
}

template <class R>
void StepTerms<R>::add_range_springs(Out<R> joint_inertia, Out<R> joint_force) const {
  for (std::size_t i = 0; i < limits_.inertia.size(); ++i)
    joint_inertia[i] += limits_.inertia[i], joint_force[i] += limits_.force[i];
}

}  // namespace tarsus
