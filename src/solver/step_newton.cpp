#include "tarsus/solver/step_newton.hpp"

#include <algorithm>
#include <cmath>

#include "solver/law.hpp"

namespace tarsus {

namespace {

constexpr double kEnough = 0.01;     ///< of the slope at the start, at which the search ends
constexpr double kRounding = 1e-13;  ///< of what the slope is a sum of
constexpr int kMostSearches = 40;    ///< evaluations in one search
constexpr double kLongest = 4;       ///< step of a search
constexpr double kShort = 0.05;      ///< a step below this is a stall
constexpr int kPatience = 4;         ///< iterations before stalls are looked for
constexpr int kDiscs = 3;            ///< iterations with given discs after a stall
constexpr double kExcess = 2e-10;    ///< of a set's size that an impulse may be outside of it

}  // namespace

/// γ and G at J v.
void StepNewton::law(const std::vector<double>& velocity, Bound bound, bool tangents) {
  double y[kTermRows];
  for (std::size_t i = 0; i < problem_.terms.size(); ++i) {
    const Term& term = problem_.terms[i];
    const TermRow* rows = &problem_.rows[term.first_row];
    for (int k = 0; k < term.nrow; ++k)
      y[k] = rows[k].centre + (rows[k].target - velocity[term.first_row + k]) / rows[k].compliance;
    term_law(term, rows, y, bound == Bound::own_normal ? kOwnNormal : normal_[i], &gamma_[term.first_row],
             tangents ? &tangent_[i] : nullptr);
  }
}

/// The linear problem of the tangents at hand: next_velocity_ and next_impulse_. @return dvᵀ F at this iterate
double StepNewton::linear_solve(StepOperator& mass) {
  for (std::size_t i = 0; i < problem_.terms.size(); ++i) {
    const Term& term = problem_.terms[i];
    const int first = term.first_row;
    double moved[kTermRows];
    for (int k = 0; k < term.nrow; ++k) moved[k] = velocity_[first + k] - problem_.free_velocity[first + k];
    for (int r = 0; r < term.nrow; ++r) {
      double sum = gamma_[first + r];
      for (int c = 0; c < term.nrow; ++c) sum += tangent_[i].at[r][c] * moved[c];
      force_[first + r] = sum;
    }
  }
  mass.solve(tangent_, force_, next_velocity_);
  double power = 0;
  for (std::size_t i = 0; i < problem_.terms.size(); ++i) {
    const Term& term = problem_.terms[i];
    const int first = term.first_row;
    for (int r = 0; r < term.nrow; ++r) {
      double sum = force_[first + r];
      for (int c = 0; c < term.nrow; ++c) sum -= tangent_[i].at[r][c] * next_velocity_[first + c];
      next_impulse_[first + r] = sum;
    }
    for (int r = 0; r < term.nrow; ++r) {
      next_velocity_[first + r] += problem_.free_velocity[first + r];
      power += (next_velocity_[first + r] - velocity_[first + r]) * (impulse_[first + r] - gamma_[first + r]);
    }
  }
  return power;
}

void StepNewton::follow_normals() {
  for (std::size_t i = 0; i < problem_.terms.size(); ++i) {
    if (problem_.terms[i].law == Law::contact) normal_[i] = std::max(0.0, impulse_[problem_.terms[i].first_row]);
  }
}

/// dvᵀ F(v + t dv) for the law that bounds friction by this iterate's normals.
double StepNewton::slope(double t, double* derivative, double* size) {
  ++searches_;
  const std::size_t n = velocity_.size();
  for (std::size_t i = 0; i < n; ++i) trial_[i] = velocity_[i] + t * (next_velocity_[i] - velocity_[i]);
  law(trial_, bound_, true);
  double sum = 0, rise = 0, terms = 0;
  for (std::size_t i = 0; i < problem_.terms.size(); ++i) {
    const Term& term = problem_.terms[i];
    for (int r = 0; r < term.nrow; ++r) {
      const int at = term.first_row + r;
      const double dv = next_velocity_[at] - velocity_[at], dy = next_impulse_[at] - impulse_[at];
      sum += dv * (impulse_[at] + t * dy - gamma_[at]);
      terms += std::abs(dv * impulse_[at]) + std::abs(dv * gamma_[at]);
      double g = dy;
      for (int c = 0; c < term.nrow; ++c)
        g += tangent_[i].at[r][c] * (next_velocity_[term.first_row + c] - velocity_[term.first_row + c]);
      rise += dv * g;
    }
  }
  *derivative = rise;
  if (size) *size = terms;
  return sum;
}

/// The root of the slope along the step: Newton from the whole step, false position (Illinois) once it is bracketed.
double StepNewton::search(double start) {
  double low = 0, high = kUnbounded, at_low = start, at_high = 0, t = 1;
  for (int k = 0; k < kMostSearches; ++k) {
    double rise, size;
    const double value = slope(t, &rise, &size);
    // A slope that is rounding says nothing; the whole step makes impulses that obey the law.
    if (std::abs(value) <= std::max(kEnough * std::abs(start), kRounding * size)) break;
    if (value > 0) {
      if (high < kUnbounded) at_low *= 0.5;
      high = t, at_high = value;
    } else {
      if (high < kUnbounded) at_high *= 0.5;
      low = t, at_low = value;
    }
    double next = rise > 0 ? t - value / rise : kUnbounded;
    if (high < kUnbounded && !(next > low && next < high && k % 3 != 2))
      next = k % 2 ? 0.5 * (low + high) : (low * at_high - high * at_low) / (at_high - at_low);
    if (!(next > low)) next = 2 * t;
    if (low >= kLongest) break;
    t = std::min(next, kLongest);
  }
  return t;
}

double StepNewton::residual() const {
  double worst = 0;
  for (const Term& term : problem_.terms) {
    const int first = term.first_row;
    const double miss = natural_residual(term, &problem_.rows[first], &velocity_[first], &impulse_[first]);
    worst = miss <= worst ? worst : miss;
  }
  return worst;
}

/// Impulses of drives, limits and dry friction are within their sets to rounding.
bool StepNewton::within_sets() const {
  for (const Term& term : problem_.terms) {
    if (excess(term, &impulse_[term.first_row]) > kExcess) return false;
  }
  return true;
}

void StepNewton::move(StepOperator& mass, double t) {
  for (std::size_t i = 0; i < velocity_.size(); ++i) {
    velocity_[i] += t * (next_velocity_[i] - velocity_[i]);
    impulse_[i] += t * (next_impulse_[i] - impulse_[i]);
  }
  mass.move(t);
}

/// The first iteration: the tangents where the last step ended, y; no search.
void StepNewton::begin(StepOperator& mass, std::span<const double> y) {
  const std::size_t n = problem_.rows.size();
  for (auto* v : {&velocity_, &force_, &impulse_, &gamma_, &next_velocity_, &next_impulse_, &trial_}) v->resize(n);
  tangent_.resize(problem_.terms.size()), normal_.assign(problem_.terms.size(), 0.0);
  searches_ = 0, discs_ = 0, short_step_ = false;
  history_.clear();
  for (std::size_t i = 0; i < n; ++i) {
    const TermRow& row = problem_.rows[i];
    velocity_[i] = row.target + row.compliance * (row.centre - y[i]);
  }
  std::fill(impulse_.begin(), impulse_.end(), 0.0);
  law(velocity_, Bound::own_normal, true);
  linear_solve(mass);
  move(mass, 1);
}

/// Whether the exact tangents lead nowhere: then kDiscs iterations with the discs as they are, then exact ones again.
bool StepNewton::stalled() {
  if (history_.size() <= kPatience) return false;
  const double before = *std::min_element(history_.begin(), history_.end() - 3);
  if (discs_ == 0 && !short_step_ && history_.back() <= 0.5 * before) return false;
  discs_ = std::int8_t(discs_ > 0 ? discs_ - 1 : kDiscs);
  return discs_ > 0;
}

/// One iteration. @return factorisations
int StepNewton::iterate(StepOperator& mass) {
  int solves = 1;
  bound_ = stalled() ? Bound::given_normal : Bound::own_normal;
  follow_normals();
  law(velocity_, bound_, true);
  double start = linear_solve(mass);
  if (bound_ == Bound::own_normal && !(start < 0)) {  // no descent: the symmetric tangent, for the exact law's search
    law(velocity_, Bound::given_normal, true);
    linear_solve(mass);
    ++solves;
    double rise;
    start = slope(0, &rise, nullptr);
  }
  const double t = search(start);
  short_step_ = t < kShort;
  move(mass, t);
  return solves;
}

NewtonReport StepNewton::solve(StepOperator& mass, const StepProblem& problem, const NewtonOptions& options,
                               std::span<double> y, std::span<double> impulse) {
  problem_ = problem;
  NewtonReport report;
  begin(mass, y);
  report.iterations = 1;
  double best = kUnbounded;
  for (;;) {
    const double now = residual();
    history_.push_back(now);
    if (!std::isfinite(now)) break;
    report.converged = now <= options.tolerance && within_sets();
    if (now < best || report.converged) {
      best = now;
      std::copy(impulse_.begin(), impulse_.end(), impulse.begin());
      for (std::size_t i = 0; i < velocity_.size(); ++i) {
        const TermRow& row = problem.rows[i];
        y[i] = row.centre + (row.target - velocity_[i]) / row.compliance;
      }
      mass.keep();
    }
    if (report.converged || report.iterations >= options.max_iterations) break;
    report.iterations += iterate(mass);
  }
  report.finite = best < kUnbounded;
  report.residual = best, report.searches = searches_;
  return report;
}

}  // namespace tarsus
