// Semismooth Newton method of a step; step_newton.hpp has the equations and the phases.
#include "tarsus/solver/step_newton.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "solver/friction_path.hpp"
#include "solver/law.hpp"

namespace tarsus {

namespace {

constexpr int kStepLengths = 5;        ///< largest number of step lengths tried
constexpr double kExcess = 2e-10;      ///< tolerance for impulses outside their set, relative to the set's size
constexpr int kEarlyIterations = 12;   ///< iterations in which sweeps may precede the second one
constexpr int kActiveAttempts = 4;     ///< how often the active terms are solved alone,
constexpr int kActiveIterations = 16;  ///< with at most this many iterations each time;
/// Iterations on all terms before the first time; none, but sweeps first, where contacts miss by more than kFarOff.
constexpr int kBeforeActive = 2;
constexpr double kFarOff = 1e-2;                     ///< [m/s]
constexpr int kOwnIterations = 40;                   ///< from the last step's impulses
constexpr int kOtherIterations = 30;                 ///< from another start
constexpr int kRandomStarts = 12;                    ///< near the best iterate,
constexpr int kRandomIterations = 25;                ///< with so many iterations each
constexpr int kFrictionlessIterations = 300;         ///< without friction, until the residual
constexpr double kFrictionlessTolerance = 1e-3;      ///< is within this [m/s]
constexpr int kPathIterations = 2000;                ///< along the friction path, with laws rounded by
constexpr double kRoundings[] = {1e-3, 1e-4, 1e-5};  ///< these, one after another [m/s]
constexpr double kLikely = 0.03;                     ///< see newton_again()
constexpr double kNearAtFirst = 1e-3;                ///< there is no residual before the first iteration's [m/s]
constexpr int kLastSweeps = 60;                      ///< from zero, if the best iterate misses by more than kLost

}  // namespace

StepNewton::StepNewton() = default;
StepNewton::~StepNewton() = default;

/// Solves the linear problem of the present tangents.
/// @param changes solve for x' - x; requires that the iterate's velocities are those of its impulses. Where R is small,
/// g and G J x are large and cancel; their difference is then exact
void StepNewton::linear_solve(StepOperator& mass, bool changes) {
  if (changes) find_change();
  ++iterations_, again_ = false;
  if (!(changes ? mass.solve_change(linear_.tangent, linear_.change, next_.velocity)
                : mass.solve(linear_.tangent, linear_.carried, next_.velocity))) {
    costly_ = true, next_ = now_;
    return;
  }
  take_solution(changes);
}

void StepNewton::find_change() {
  for (std::size_t i = 0; i < linear_.change.size(); ++i) linear_.change[i] = linear_.carried[i] - now_.impulse[i];
}

/// Completes next_, whose velocities are those that the linear problem has returned.
void StepNewton::take_solution(bool changes) {
  const std::span<const double> from = changes ? std::span<const double>(now_.velocity) : problem_.free_velocity;
  laws_.impulses(problem_, linear_.tangent, linear_.carried, next_.velocity, next_.impulse);
  for (std::size_t i = 0; i < from.size(); ++i) next_.velocity[i] += from[i];
}

void StepNewton::point(double t, Iterate& out) const {
  for (std::size_t i = 0; i < now_.velocity.size(); ++i) {
    out.velocity[i] = now_.velocity[i] + t * (next_.velocity[i] - now_.velocity[i]);
    out.impulse[i] = now_.impulse[i] + t * (next_.impulse[i] - now_.impulse[i]);
  }
}

double StepNewton::residual() {
  const TermResidual now = laws_.residual(problem_, now_.velocity, now_.impulse);
  contact_residual_ = now.contacts;
  return now.all;
}

/// Whether the impulses of drives, limits and dry friction are within their sets, to rounding.
bool StepNewton::within_sets() const {
  for (const Term& term : problem_.terms) {
    if (excess(term, &now_.impulse[term.first_row]) > kExcess) return false;
  }
  return true;
}

void StepNewton::move(StepOperator& mass, double t) {
  point(t, now_);
  mass.move(t);
}

/// The first iteration: tangents at the last step's impulses, without a line search.
void StepNewton::begin(StepOperator& mass, std::span<const double> y) {
  history_.clear(), sweeps_.restart(), short_ = false;
  laws_.law(problem_, y, linear_.tangent, linear_.carried);
  linear_solve(mass, false);
  now_ = next_;
  mass.move(1);
}

/// Sweeps, and sets the operator's x to that of the new impulses.
void StepNewton::sweep(StepOperator& mass, int count) {
  sweeps_.run(mass, problem_, count, now_.velocity, now_.impulse);
  apply_impulses(mass, problem_, now_.impulse, now_.velocity);
}

/// One iteration, after sweeps if they are due.
/// @param early sweeps may precede the seventh iteration; steps are then not shortened
void StepNewton::newton(StepOperator& mass, bool early) {
  early = early && int(history_.size()) <= kEarlyIterations;
  if (int(history_.size()) == kEarlyIterations + 1 && sweeps_.early()) sweeps_.restart();
  const double far = !early ? 0 : short_ ? kUnbounded : contact_residual_;
  const int sweeps = restart_.begun ? 0 : sweeps_.due(history_, far, mass.sweeps());
  if (sweeps > 0) sweep(mass, sweeps);
  const bool changes = mass.takes_changes();
  const double start = laws_.tangents(problem_, now_.velocity, now_.impulse, changes, linear_.tangent, linear_.carried);
  linear_solve(mass, changes), short_ = false;
  if (early && sweeps_.early() && !restart_.begun) return move(mass, 1);
  double best = 1, least = kUnbounded, t = 1;
  for (int k = 0; k < kStepLengths; ++k, t *= 0.5) {
    point(t, trial_);
    const double there = laws_.map(problem_, trial_.velocity, trial_.impulse);
    if (there < least) least = there, best = t;
    if (there <= (1 - 1e-4 * t) * start) break;
  }
  short_ = best < 1;
  move(mass, best);
}

/// Whether a term's law is in the same regime at both tangents: open, sticking or slipping, within or at a bound.
static bool same_regime(const Term& term, const Tangent& a, const Tangent& b) {
  for (int r = 0; r < term.nrow; ++r) {
    if ((a.at[r][r] == 0) != (b.at[r][r] == 0) || (a.at[r][0] == 0) != (b.at[r][0] == 0)) return false;
  }
  return true;
}

/// One step with the last iteration's factors, if it probably suffices. @return whether it was made
bool StepNewton::newton_again(StepOperator& mass, double tolerance) {
  if (again_ || short_ || !mass.takes_changes()) return false;
  const double now = history_.back(), last = history_.size() > 1 ? history_[history_.size() - 2] : 0;
  if (history_.size() > 1 ? kLikely * now * now > tolerance * last : now > kNearAtFirst) return false;
  linear_.other.resize(linear_.tangent.size());
  laws_.tangents(problem_, now_.velocity, now_.impulse, true, linear_.other, linear_.carried);
  for (std::size_t i = 0; i < linear_.other.size(); ++i) {
    if (!same_regime(problem_.terms[i], linear_.tangent[i], linear_.other[i])) return false;
  }
  find_change();
  if (!mass.solve_again(linear_.tangent, linear_.change, next_.velocity)) return false;
  take_solution(true), again_ = true;
  move(mass, 1);
  return true;
}

/// Stores this iterate if it is the best so far.
void StepNewton::judge(StepOperator& mass, double residual, bool met) {
  if (!(residual < best_residual_ || met)) return;
  best_residual_ = residual, met_ = met;
  best_ = now_;
  mass.keep();
}

/// Iterates until `tolerance`, for about `most` factorisations. @param judged the terms are the problem's own
bool StepNewton::iterate(StepOperator& mass, double tolerance, int most, bool judged) {
  const int end = iterations_ + most;
  for (;;) {
    if (costly_) return false;
    double now = residual();
    const auto is_met = [&] { return now <= tolerance && (!judged || within_sets()); };
    bool met = is_met();
    if (met && judged && mass.takes_changes() && mass.may_drift()) {
      apply_impulses(mass, problem_, now_.impulse, now_.velocity);
      now = residual(), met = is_met();
      if (!met) mass.has_drifted();
    }
    history_.push_back(now);
    if (judged) judge(mass, now, met);
    if (met || iterations_ >= end || !std::isfinite(now)) return met;
    if (judged && solve_active(mass, tolerance, end - iterations_)) continue;
    if (newton_again(mass, tolerance)) continue;
    newton(mass, judged && mass.sweeps() == SweepKind::at_once);
  }
}

/// Solves the active terms alone, by their rows, then all terms at their impulses. @return whether it did so
bool StepNewton::solve_active(StepOperator& mass, double tolerance, int most) {
  const bool far = short_ || contact_residual_ > kFarOff;
  if (active_.attempts == kActiveAttempts) return false;
  if (active_.attempts == 0 && !far && int(history_.size()) <= kBeforeActive) return false;
  const std::span<const int> terms = sweeps_.active(problem_, now_.velocity, now_.impulse);
  if (terms.empty() || (active_.attempts > 0 && terms.size() == active_.part.terms.size())) return false;
  StepOperator* const rows = mass.reduced(terms);
  if (!rows) return false;
  ++active_.attempts;
  if (!active_.newton) active_.newton = std::make_unique<StepNewton>();
  StepNewton& inner = *active_.newton;
  PartOfTerms& part = active_.part;
  part.clear();
  for (const int t : terms) part.add(problem_.terms[t], problem_.rows);
  part.take(now_.velocity, inner.now_.velocity), part.take(now_.impulse, inner.now_.impulse);
  const bool met = inner.refine(*rows, active_, far, tolerance, std::min(most, kActiveIterations));
  iterations_ += inner.iterations_;
  std::fill(now_.impulse.begin(), now_.impulse.end(), 0.0);
  part.put(inner.best_.impulse, now_.impulse);
  apply_impulses(mass, problem_, now_.impulse, now_.velocity), short_ = false;
  if (!met) active_.attempts = kActiveAttempts;
  return true;
}

/// Iterates from the present iterate. @param far sweep first
bool StepNewton::refine(StepOperator& mass, Active& active, bool far, double tolerance, int most) {
  active.free_velocity.resize(active.part.rows.size());
  own_ = problem_ = {active.part.terms, active.part.rows, active.free_velocity};
  begin_problem();
  best_ = now_, active_.attempts = kActiveAttempts;
  mass.solve({}, now_.impulse, active.free_velocity);
  for (std::size_t i = 0; i < active.free_velocity.size(); ++i)
    active.free_velocity[i] = now_.velocity[i] - active.free_velocity[i];
  sweeps_.begin(problem_, true);
  history_.clear(), short_ = far;
  return iterate(mass, tolerance, most, true);
}

/// Iterates from the present impulses, without sweeps.
bool StepNewton::iterate_from_impulses(StepOperator& mass, double tolerance, int most, bool judged) {
  apply_impulses(mass, problem_, now_.impulse, now_.velocity), history_.clear(), short_ = false;
  restart_.begun = true, active_.attempts = kActiveAttempts;
  return iterate(mass, tolerance, most, judged);
}

/// Multiplies the impulses of each term by a number between 0.5 and 1.5, which is hashed from the two indices.
static void vary(std::span<const Term> terms, int start, std::span<double> impulse) {
  for (std::size_t t = 0; t < terms.size(); ++t) {
    std::uint64_t bits = (std::uint64_t(start + 1) << 32 | t) * 0x9e3779b97f4a7c15;  // splitmix64
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    const double factor = 0.5 + double((bits ^ bits >> 31) >> 11) * 0x1p-53;
    for (int r = 0; r < terms[t].nrow; ++r) impulse[terms[t].first_row + r] *= factor;
  }
}

/// The fallback if friction prevents convergence. Without friction the problem is convex. Solves the problem with
/// friction from that solution, else from near the best iterate so far, else from the end of the friction path that
/// begins at the solution without friction.
void StepNewton::restart(StepOperator& mass, const NewtonOptions& options) {
  const auto most = [&](int wanted) { return std::min(wanted, options.max_iterations - iterations_); };
  restart_.terms.assign(own_.terms.begin(), own_.terms.end());
  for (Term& term : restart_.terms) {
    if (term.law == Law::contact) term.friction = term.torsional = term.rolling = 0;
  }
  problem_.terms = restart_.terms;
  std::fill(now_.impulse.begin(), now_.impulse.end(), 0.0);
  iterate_from_impulses(mass, kFrictionlessTolerance, most(kFrictionlessIterations), false);
  problem_.terms = own_.terms;
  if (!std::isfinite(history_.back())) return;
  if (!restart_.path) restart_.path = std::make_unique<FrictionPath>();
  FrictionPath& path = *restart_.path;
  path.clear(own_.terms.size()), path.join(own_, now_.velocity, now_.impulse);
  sweeps_.forget_mass();
  restart_.impulse = now_.impulse;
  for (bool other = false;; other = true) {  // the other metric
    iterate_from_impulses(mass, options.tolerance, most(kOtherIterations), true);
    for (int start = 0; start < kRandomStarts && !other && !met_ && !costly_ && most(1) > 0; ++start) {
      now_.impulse = best_.impulse, vary(own_.terms, start, now_.impulse);
      iterate_from_impulses(mass, options.tolerance, most(kRandomIterations), true);
    }
    for (std::size_t k = 0; k < std::size(kRoundings) && !met_ && !costly_ && !path.spent() && most(1) > 0;) {
      now_.impulse = restart_.impulse;
      const bool there = path.follow(mass, own_, kRoundings[k], most(kPathIterations), now_.impulse);
      iterations_ += path.factorisations();
      apply_impulses(mass, own_, now_.impulse, now_.velocity);
      if (!there || !path.join(own_, now_.velocity, now_.impulse))
        ++k;  // or repeat the path with the terms that act at its end
      if (there && most(1) > 0) iterate_from_impulses(mass, options.tolerance, most(kOtherIterations), true);
    }
    if (met_ || costly_ || path.spent() || most(1) == 0 || other || own_.sliding_share == 1) return;
    own_.sliding_share = problem_.sliding_share = 1;
    now_.impulse = restart_.impulse;
  }
}

/// The last fallback: sweeps from zero. They do not converge either, but stay bounded.
void StepNewton::end_by_sweeps(StepOperator& mass) {
  problem_ = own_;
  std::fill(now_.impulse.begin(), now_.impulse.end(), 0.0);
  apply_impulses(mass, problem_, now_.impulse, now_.velocity);
  sweep(mass, kLastSweeps);
  const double left = residual();
  if (!std::isfinite(left)) return;
  best_ = now_, best_residual_ = left;
  mass.keep();
}

/// Recomputes the velocities of the best iterate from its impulses. If some impulses are outside their bounds, sets
/// them to their bounds and solves the rest once more.
void StepNewton::bound_impulses(StepOperator& mass) {
  problem_ = own_, now_ = best_;
  if (mass.takes_changes() && mass.may_drift()) {
    apply_impulses(mass, problem_, now_.impulse, now_.velocity);
    best_ = now_, best_residual_ = residual(), mass.keep();
  }
  if (within_sets()) return;
  laws_.tangents(problem_, now_.velocity, now_.impulse, false, linear_.tangent, linear_.carried);
  for (std::size_t i = 0; i < problem_.terms.size(); ++i) {
    const Term& term = problem_.terms[i];
    if (term.law == Law::contact) continue;
    linear_.tangent[i] = {};
    term_law(term, &problem_.rows[term.first_row], &now_.impulse[term.first_row], kOwnNormal,
             &linear_.carried[term.first_row], nullptr);
  }
  linear_solve(mass, false);
  move(mass, 1);
  best_ = now_, best_residual_ = residual();
  mass.keep();
}

void StepNewton::begin_problem() {
  iterations_ = 0, costly_ = restart_.begun = false, active_.attempts = 0;
  best_residual_ = kUnbounded, met_ = false;
  for (Iterate* i : {&now_, &next_, &trial_, &best_})
    i->velocity.resize(problem_.rows.size()), i->impulse.resize(problem_.rows.size());
  for (std::vector<double>* v : {&linear_.carried, &linear_.change}) v->resize(problem_.rows.size());
  linear_.tangent.resize(problem_.terms.size()), laws_.sort(problem_);
}

NewtonReport StepNewton::solve(StepOperator& mass, const StepProblem& problem, const NewtonOptions& options,
                               std::span<double> y, std::span<double> impulse) {
  own_ = problem_ = problem;
  own_.sliding_share = problem_.sliding_share = mass.sliding_share();
  begin_problem();
  sweeps_.begin(problem);
  begin(mass, y);
  iterate(mass, options.tolerance, std::min(kOwnIterations, options.max_iterations) - 1, true);
  if (!met_ && !costly_ && best_residual_ < kUnbounded) {
    restart(mass, options);
    if (!met_ && !costly_ && best_residual_ > options.kLost) end_by_sweeps(mass);
    if (!met_ && !costly_) bound_impulses(mass);
  }
  const std::size_t n = problem.rows.size();
  const NewtonReport report{met_, best_residual_ < kUnbounded, costly_, iterations_, best_residual_};
  for (std::size_t i = 0; report.finite && !costly_ && i < n; ++i) {
    y[i] = before_projection(problem.rows[i], best_.velocity[i]);
    impulse[i] = best_.impulse[i];
  }
  return report;
}

}  // namespace tarsus
