// One articulated world's step (step_terms.hpp): lays out the terms at the step's start, chooses Newton's method or
// sweeps for each island, and applies the solution
//
//     v⁺ = v⁰ + M̂⁻¹ (Jᵀ γ + J_eᵀ λ_e).
//
// If a number is not finite, no term acts and the status is not_finite; a Stepper then freezes the world. If Newton's
// method reaches max_iterations, the best iterate is applied with its residual.
#include "tarsus/constraint/step_terms.hpp"

#include "constraint/contact_terms.inl"
#include "constraint/friction_terms.inl"
#include "constraint/limit_terms.inl"
#include "constraint/path_terms.inl"
#include "constraint/warm_start.inl"

namespace tarsus {

constexpr int kSweepSteps = 30;  ///< steps by sweeps after one in which Newton's method took too many operations

const char* name(StepStatus status) {
  static constexpr const char* kNames[] = {"converged",           "swept",   "cut_short",
                                           "too_many_iterations", "crowded", "not_finite"};
  return kNames[int(status)];
}

template <class R>
StepTerms<R>::StepTerms(const Model& model, const TermOptions& options)
    : model_(model),
      options_(options),
      mass_(model, kDenseDofs, options.piles.least_trees),
      islands_(model, kDenseDofs + 1, options.piles.least_trees),
      swept_{Piles(model), {}},
      paths_(model) {
  masses_.take(reference_numbers<R>(reference_masses(model)), masses_.model);
  const std::vector<RigidInertia<double>> inertia = link_inertias(model);
  limits_.solver.resize(std::size_t(model.njoint())), geometry_.bias.resize(6 * std::size_t(model.njoint()));
  for (int i = 0; i < model.njoint(); ++i) {
    const Joint& joint = model.joints[i];
    if (!joint.limited) continue;
    limits_.solver[i] = limit_parameters(model, i);
    if (moves_freely(joint.type)) continue;
    limits_.ranges.push_back({i, joint.qpos, joint.qvel, joint.nv() == 1, joint.lower(), joint.upper(),
                              HalfTurn(joint.upper()),
                              turns_freely(joint.type) && holds_light_link(model, inertia, i)});
  }
}

template <class R>
void StepTerms<R>::begin(BasicData<R>& data, double h, In<R> qpos, In<R> qvel, In<R> free_velocity,
                         std::vector<LinkContact>& contacts, In<R> joint_force) {
  if (data.width() != 1) {
    throw ValueError("data", std::to_string(data.width()) + " lanes", "one world: LaneTerms takes packs");
  }
  step_.data = &data, step_.h = h, step_.qpos = qpos, step_.qvel = qvel, step_.free = free_velocity,
  step_.force = joint_force;
  geometry_.joints.clear(), geometry_.paths.clear(), paths_.given = {};
  masses_.take(data.own ? In<R>(data.own->row_mass) : In<R>(), masses_.own);
  report_ = {};
  if (warm_.tried.any) warm_.tried.names.swap(names_), warm_.tried.terms.swap(terms_), warm_.tried.y.swap(y_);
  if (model_.nmocap() > 0) find_jumps();
  take_contacts(contacts);
}

/// Initial y without a warm start: from the present velocity, since v⁰ penetrates what other terms would stop.
/// @param speed J v at the start of the step
static double start(double compliance, double target, double speed) { return (target - speed) / compliance; }

/// Sets a row. @param speed J v at the start of the step @param free J v at x = 0
template <class R>
void StepTerms<R>::set_row(int row, const TermRow& numbers, double speed, double free) {
  rows_[row] = numbers, free_rows_[row] = free, y_[row] = start(numbers.compliance, numbers.target, speed);
}

/// Adds a term without rows.
template <class R>
Term& StepTerms<R>::add_term(const Name& name, double lower, double upper) {
  Term& term = terms_.emplace_back();  // filled in place: a copy of a new term would wait for the stores
  term.first_row = int(rows_.size()), term.nrow = 0, term.lower = lower, term.upper = upper;
  names_.push_back(name);
  return term;
}

/// Adds a row to the last term, with c = 0. @param speed, free as for set_row()
template <class R>
void StepTerms<R>::add_row(double compliance, double target, double scale, double speed, double free) {
  ++terms_.back().nrow;
  TermRow& row = rows_.emplace_back();
  row.compliance = compliance, row.target = target, row.scale = scale;
  free_rows_.push_back(free);
  y_.push_back(start(compliance, target, speed));
}

/// Adds a term on one joint with equal rows. The caller sets a ball's target.
template <class R>
Term& StepTerms<R>::add_joint_term(const Name& name, double lower, double upper, const JointRows& joint,
                                   double compliance, double target, double scale) {
  double speed[3], free[3];
  joint_velocity(model_, step_.data->links(), joint, step_.qvel.data(), speed);
  joint_velocity(model_, step_.data->links(), joint, step_.free.data(), free);
  geometry_.joints.push_back(joint);
  Term& term = add_term(name, lower, upper);
  for (int k = 0; k < joint.nrow; ++k) add_row(compliance, target, scale, speed[k], free[k]);
  return term;
}

template <class R>
double StepTerms<R>::force_of(Kind kind, std::uint64_t identity) const {
  double sum = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (names_[i] == Name{kind, identity}) sum += impulse(int(i))[0] / step_.h;
  }
  return sum;
}

template <class R>
double StepTerms<R>::limit_force(int joint) const {
  const bool one = !turns_freely(model_.joints[joint].type);
  double sum = 0;
  for (std::size_t i = 0; i < terms_.size() && !(one && sum > 0); ++i) {
    if (names_[i].kind == Kind::limit && names_[i].identity / 2 == std::uint64_t(joint))
      sum += impulse(int(i))[0] / step_.h;
  }
  return sum;
}

template <class R>
double StepTerms<R>::compliance(double own, double inverse_mass) const {
  const double relative = kRelative * options_.relative_compliance * inverse_mass;
  return std::max(own > 0 ? own : relative, kLeastCompliance<R> * inverse_mass);
}

/// Inverse mass that the rows of a joint feel.
template <class R>
double StepTerms<R>::joint_inverse_mass(const JointRows& rows) const {
  const ReferenceMass& mass = masses_.now()[rows.joint];
  if (rows.part == JointRows::Part::linear) return mass.linear;
  const Joint& joint = model_.joints[rows.joint];
  if (moves_freely(joint.type)) return mass.angular;
  return 1 / std::max(mass.joint + double(step_.data->joint_inertia[joint.qvel]), 1e-30);
}

template <class R>
void StepTerms<R>::add_drive(const JointRows& joint, const Vec3d& push, double stiffness, double lower, double upper) {
  const int axis = joint.part != JointRows::Part::linear ? 0 : joint.e.y != 0 ? 2 : joint.e.z != 0 ? 3 : 1;
  const double inverse_mass = joint_inverse_mass(joint);
  stiffness = std::max(stiffness, kLeastStiffness / inverse_mass);
  Term& term = add_joint_term({Kind::drive, 8 * std::uint64_t(joint.joint) + std::uint64_t(axis)}, lower, upper, joint,
                              1 / stiffness, 0, inverse_mass);
  term.law = joint.nrow == 3 ? Law::ball : Law::interval;
  double speed[3] = {};
  joint_velocity(model_, step_.data->links(), joint, step_.qvel.data(), speed);
  for (int k = 0; k < joint.nrow; ++k) {
    const int row = term.first_row + k;
    const double along = joint.nrow == 3 ? push[k] : joint.part == JointRows::Part::axial ? push.x : dot(joint.e, push);
    rows_[row].target = speed[k] + along / stiffness;
    y_[row] = along;
  }
  ++report_.drives;
}

template <class R>
void StepTerms<R>::solve(In<R> joint_inertia, const BilateralRows<R>& bilateral, Out<R> velocity) {
  impulse_.resize(std::size_t(rows()), 0.0);
  report_.rows = rows(), report_.contacts = int(contacts_.size());
  if (terms_.empty() && bilateral.rows() == 0) return settle(all(), joint_inertia, velocity);
  find_warm_start();
  carry_bodies();
  if (warm_.tried.any) start_from_try();
  solve_all(joint_inertia, bilateral, velocity);
}

template <class R>
void StepTerms<R>::solve_again(In<R> joint_inertia, const BilateralRows<R>& bilateral, Out<R> velocity) {
  if (terms_.empty() && bilateral.rows() == 0) return;
  const RowsReport last = report_;
  report_ = {.rows = last.rows,
             .contacts = last.contacts,
             .between = last.between,
             .drives = last.drives,
             .penetration = last.penetration};
  mass_.begin(*step_.data, step_.h, joint_inertia, terms_, geometry(), {});
  mass_.rates(velocity, free_rows_);
  if (bilateral.rows() > 0) {  // they take their inverse masses from the factors of M̂, and J q̈ from the links
    factor<R>(model_, *step_.data, {}, joint_inertia);
    spread_acceleration<R>(model_, *step_.data, step_.data->qacc);
  }
  solve_all(joint_inertia, bilateral, velocity);
}

/// Solves the terms from y_: islands of characters one by one, then the rest.
template <class R>
void StepTerms<R>::solve_all(In<R> joint_inertia, const BilateralRows<R>& bilateral, Out<R> velocity) {
  const TermSet all = this->all();
  if (bilateral.rows() > 0 || step_.data->own || !islands_.find(all)) {
    solve_jointly(all, joint_inertia, bilateral, velocity);
  } else {
    for (int i = 0; i < islands_.count(); ++i) {
      report(islands_.solve(i, all, *step_.data, joint_inertia, step_.force, warm_.tried.any, velocity,
                            [&](const Problem& island, int spent) { return solve_problem(island, false, spent, {}); }));
    }
    if (!islands_.is_all()) {
      const TermSet rest = islands_.rest(all);
      solve_jointly(rest, joint_inertia, {}, islands_.velocity());
      islands_.put_rest(all, velocity);
    }
  }
  warm_.tried.any = true;
  count_carried();
}

template <class R>
void StepTerms<R>::report(const Solution& solved) {
  report_.status = std::max(report_.status, solved.status);
  report_.residual = std::max(report_.residual, solved.residual);
  report_.iterations = std::max(report_.iterations, solved.iterations);
}

/// Solves a set of terms, and adds the change to `velocity`.
template <class R>
void StepTerms<R>::solve_jointly(const TermSet& set, In<R> joint_inertia, const BilateralRows<R>& bilateral,
                                 Out<R> velocity) {
  if (set.terms.empty() && bilateral.rows() == 0) return settle(set, joint_inertia, velocity);
  const PileOptions& piles = options_.piles;
  const bool costly = warm_.last.sweep_steps > 0;
  if (costly) --warm_.last.sweep_steps;
  bool swept = costly && model_.njoint() >= piles.least_trees;
  if (!swept && model_.njoint() >= piles.least_trees) {
    swept = !mass_.eliminates(set.terms, set.geometry, bilateral, set.y, piles.most_operations);
    if (swept) warm_.last.sweep_steps = kSweepSteps;
  }
  if (swept) report_.piled = swept_.piles.find(set, piles.least_trees, bilateral.rows() > 0);
  if (report_.piled > 0) settle(set, joint_inertia, velocity);  // sets solved one after the other start from v⁰
  const int spent = warm_.tried.iterations;
  const auto solve = [&](const TermSet& one, bool pile) {
    Solution solved = solve_problem(problem(one, joint_inertia, velocity), pile, spent, bilateral);
    solved.iterations += spent, warm_.tried.iterations = std::max(warm_.tried.iterations, solved.iterations);
    report(solved);
  };
  if (report_.piled == 0 || report_.piled == int(set.terms.size())) return solve(set, report_.piled > 0);
  for (const bool pile : {false, true}) solve(swept_.piles.part(set, pile), pile), swept_.piles.put_back(set);
}

/// Moves x = 0 to v⁰.
template <class R>
void StepTerms<R>::settle(const TermSet& set, In<R> joint_inertia, Out<R> velocity) {
  if (step_.force.empty()) return;
  mass_.begin(*step_.data, step_.h, joint_inertia, set.terms, set.geometry, {}, step_.force);
  std::vector<double> change(set.rows.size());
  const In<R> x = mass_.settle(change);
  for (std::size_t i = 0; i < change.size(); ++i) set.free[i] += change[i];
  for (int k = 0; k < model_.nv; ++k) velocity[k] += x[k];
  step_.force = {};
}

template <class R>
void StepTerms<R>::end() {
  store_warm_start();
  follow_mocap(std::min(1.0, step_.h / kPushTime));
  warm_.tried.any = false, warm_.tried.iterations = 0;
  limits_.joined.clear();
  limits_.inertia.clear(), limits_.springs = 0;
}

/// Solves a problem. If a number is not finite, the terms do not act.
/// @param spent iterations of this step's earlier solves
template <class R>
typename StepTerms<R>::Solution StepTerms<R>::solve_problem(const Problem& problem, bool pile, int spent,
                                                            const BilateralRows<R>& bilateral) {
  const TermSet& set = problem.set;
  TreeOperator<R>& mass = problem.mass;
  NewtonOptions options = options_.solve;
  if (sizeof(R) != sizeof(double)) options.tolerance = std::max(options.tolerance, 1e-4);
  options.max_iterations = std::max(1, options.max_iterations - spent);
  mass.begin(problem.data, step_.h, problem.joint_inertia, set.terms, set.geometry, bilateral, problem.joint_force);
  bool finite = true;
  Solution out;
  if (!pile) {
    const NewtonReport solved = newton_.solve(mass, set, options, set.y, set.impulse);
    out.iterations = solved.iterations, finite = solved.finite, out.residual = solved.residual;
    if (!solved.converged) out.status = StepStatus::too_many_iterations;
    if (solved.costly) {  // more contacts act than expected
      pile = true, report_.piled += int(set.terms.size()), warm_.last.sweep_steps = kSweepSteps;
      mass.restart();
    }
  }
  if (pile) {
    const SweepReport solved = swept_.sweeps.solve(mass, set, options_.piles.sweeps, set.y, set.impulse);
    report_.sweeps = std::max(report_.sweeps, solved.sweeps);
    finite = solved.finite, out.residual = solved.residual;
    out.status = out.residual > options.tolerance ? StepStatus::swept : StepStatus::converged;
  }
  if (!finite) out.status = StepStatus::not_finite;
  const In<R> change = finite ? mass.change() : mass.settle({});
  for (std::size_t k = 0; k < change.size(); ++k) problem.velocity[k] += change[k];
  if (!finite) {
    std::fill(set.impulse.begin(), set.impulse.end(), 0.0), std::fill(set.y.begin(), set.y.end(), 0.0);
  }
  return out;
}

template <class R>
void StepTerms<R>::count_carried() {
  const std::size_t contacts = contacts_.size();
  for (std::size_t i = 0; i < contacts; ++i) report_.touching += impulse_[terms_[i].first_row] > 0;
  for (std::size_t i = contacts; i < terms_.size(); ++i) {
    const double* at = &impulse_[terms_[i].first_row];
    if (names_[i].kind == Kind::limit || names_[i].kind == Kind::user_limit)
      report_.limits += at[0] * rows_[terms_[i].first_row].scale > kActiveChange<double>;
    if (names_[i].kind != Kind::drive) continue;
    const double size = terms_[i].nrow == 3 ? std::sqrt(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]) : at[0];
    report_.saturated +=
        size >= terms_[i].upper * (1 - 1e-9) || (terms_[i].nrow == 1 && size <= terms_[i].lower * (1 - 1e-9));
  }
}

template <class R>
Vec3d StepTerms<R>::force(int contact) const {
  return contact_sum(geometry_.contacts.at(contact), &impulse_[terms_[contact].first_row]).f * (1 / step_.h);
}

template <class R>
Vec3d StepTerms<R>::torque(int contact) const {
  return contact_sum(geometry_.contacts.at(contact), &impulse_[terms_[contact].first_row]).n * (1 / step_.h);
}

template class StepTerms<double>;
template class StepTerms<float>;

}  // namespace tarsus
