// Joint ranges as terms: g = q - low or high - q of a hinge or slide, range - angle of a ball joint; γ >= 0.
//
// A term for each side that the joint could reach within the step, and a little beyond.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "constraint/term_constants.hpp"
#include "constraint/tree_loads.hpp"
#include "tarsus/constraint/step_terms.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

template <class R>
void StepTerms<R>::add_limits() {
  for (int i = 0; i < model_.njoint(); ++i) {
    if (model_.joints[i].limited && !moves_freely(model_.joints[i].type)) add_limit(i);
  }
}

/// g = gap >= 0 along a joint's row. @param solver MuJoCo's parameters where somebody gave them
template <class R>
void StepTerms<R>::add_bound(Kind kind, std::uint64_t identity, const JointRows& rows, double gap,
                             const std::optional<SolverParameters>& solver) {
  double speed, ahead;
  joint_velocity(model_, step_.data->links(), rows, step_.qvel.data(), &speed);
  joint_velocity(model_, step_.data->links(), rows, step_.free.data(), &ahead);
  if (gap + step_.h * std::min(speed, ahead) > kLimitReach) return;
  const double mass = joint_inverse_mass(rows);
  const SolverRow own_law = solver ? solver_row(*solver, gap, step_.h) : SolverRow{};
  TermRow numbers{0, 0, 0, mass};
  if (own_law.share > 0) {
    if (gap > 0) return;
    numbers.compliance = compliance(own_law.relative_compliance * mass, mass);
    numbers.target = own_law.target(speed, gap);
  } else {
    const Spook& soft = options_.limit_spook;
    if (soft.compliance == 0) gap = recoverable(soft, gap, step_.h, kLimitReturn);
    numbers.compliance = compliance(spook_bilateral(soft, gap, speed, step_.h).compliance, mass);
    numbers.target = spook_unilateral(soft, gap, speed, step_.h).target;
  }
  Term term;
  term.lower = 0, term.upper = kUnbounded;
  add_joint_term(kind, identity, term, rows, numbers);
  ++report_.limits;
}

template <class R>
void StepTerms<R>::add_limit(int joint) {
  const Joint& j = model_.joints[joint];
  const auto add_side = [&](int side, JointRows::Part part, const Vec3d& axis, double gap) {
    add_bound(Kind::limit, 2 * std::uint64_t(joint) + side, {joint, part, 1, axis}, gap, limit_solver_[joint]);
  };
  if (j.nv() == 1) {
    const double q = step_.qpos[j.qpos];
    add_side(0, JointRows::Part::axial, {1, 0, 0}, q - j.lower());
    add_side(1, JointRows::Part::axial, {-1, 0, 0}, j.upper() - q);
    return;
  }
  // An angle is at most π sin(angle / 2), speeds are at most |ω|: most joints are far from their range without a
  // logarithm.
  const auto square = [](const R* v) { return double(v[0]) * v[0] + double(v[1]) * v[1] + double(v[2]) * v[2]; };
  const double fastest = std::sqrt(std::max(square(&step_.qvel[j.qvel]), square(&step_.free[j.qvel])));
  const double free_angle = (j.upper() - kLimitReach - step_.h * fastest) / std::numbers::pi;
  if (free_angle > 0 && square(&step_.qpos[j.qpos + 1]) < free_angle * free_angle) return;
  const Vec3d turn = log_map({double(step_.qpos[j.qpos]), double(step_.qpos[j.qpos + 1]),
                              double(step_.qpos[j.qpos + 2]), double(step_.qpos[j.qpos + 3])});
  const double angle = norm(turn);
  if (angle < 1e-6) return;  // no direction to push in
  const Vec3d axis = widen(step_.data->links()[joint].R) * (turn * (-1 / angle));
  add_side(0, JointRows::Part::angular, axis, j.upper() - angle);
}

#define TARSUS_INSTANTIATE(R)                                                          \
  template void StepTerms<R>::add_limits();                                            \
  template void StepTerms<R>::add_limit(int);                                          \
  template void StepTerms<R>::add_bound(Kind, std::uint64_t, const JointRows&, double, \
                                        const std::optional<SolverParameters>&);
TARSUS_INSTANTIATE(double)
TARSUS_INSTANTIATE(float)
#undef TARSUS_INSTANTIATE

}  // namespace tarsus
