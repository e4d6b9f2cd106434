#include "tarsus/solver/step_newton.hpp"

#include <algorithm>
#include <cmath>

#include "solver/law.hpp"

namespace tarsus {

namespace {

constexpr double kEnough = 0.01;   ///< of the slope at the start, at which the search ends
constexpr int kMostSearches = 12;  ///< evaluations in one search
constexpr double kLongest = 4;     ///< step of a search
constexpr double kShort = 0.05;    ///< a step below this is a stall
constexpr int kPatience = 4;       ///< iterations before stalls are looked for
constexpr int kDiscs = 3;          ///< iterations with given discs after a stall
constexpr double kExcess = 2e-10;  ///< of a set's size that an impulse may be outside of it

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
double StepNewton::slope(double t, double* derivative) {
  ++searches_;
  const std::size_t n = velocity_.size();
  for (std::size_t i = 0; i < n; ++i) trial_[i] = velocity_[i] + t * (next_velocity_[i] - velocity_[i]);
  law(trial_, bound_, true);
  double sum = 0, rise = 0;
  for (std::size_t i = 0; i < problem_.terms.size(); ++i) {
    const Term& term = problem_.terms[i];
    for (int r = 0; r < term.nrow; ++r) {
      const int at = term.first_row + r;
      const double dv = next_velocity_[at] - velocity_[at], dy = next_impulse_[at] - impulse_[at];
      sum += dv * (impulse_[at] + t * dy - gamma_[at]);
      double g = dy;
      for (int c = 0; c < term.nrow; ++c)
        g += tangent_[i].at[r][c] * (next_velocity_[term.first_row + c] - velocity_[term.first_row + c]);
      rise += dv * g;
    }
  }
  *derivative = rise;
  return sum;
}

/// The root of the slope along the step: safeguarded Newton from the whole step.
double StepNewton::search(double start) {
  double low = 0, high = kUnbounded, t = 1;
  for (int k = 0; k < kMostSearches; ++k) {
    double rise;
    const double value = slope(t, &rise);
    if (std::abs(value) <= kEnough * std::abs(start)) break;
    (value > 0 ? high : low) = t;
    double next = rise > 0 ? t - value / rise : low;
    if (!(next > low && next < high)) next = high < kUnbounded ? 0.5 * (low + high) : 2 * low;
    t = std::min(next, kLongest);
  }
  return t;
}

double StepNewton::residual() const {
  double worst = 0;
  for (const Term& term : problem_.terms) {
    const int first = term.first_row;
    const double miss =
        natural_residual(term, &problem_.rows[first], &velocity_[first], &impulse_[first]);
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

NewtonReport StepNewton::solve(StepOperator& mass, const StepProblem& problem, const NewtonOptions& options,
                               std::span<double> y, std::span<double> impulse) {
  problem_ = problem;
  const std::size_t n = problem.rows.size();
  for (auto* v : {&velocity_, &force_, &impulse_, &gamma_, &next_velocity_, &next_impulse_, &trial_}) v->resize(n);
  tangent_.resize(problem.terms.size()), normal_.assign(problem.terms.size(), 0.0);
  searches_ = 0;
  NewtonReport report;
  // The first: where the last step ended.
  for (std::size_t i = 0; i < n; ++i) {
    const TermRow& row = problem.rows[i];
    velocity_[i] = row.target + row.compliance * (row.centre - y[i]);
  }
  std::fill(impulse_.begin(), impulse_.end(), 0.0);
  law(velocity_, Bound::own_normal, true);
  linear_solve(mass);
  move(mass, 1);
  report.iterations = 1;
  double best = kUnbounded, last_step = 1;
  int discs = 0;
  history_.clear();
  for (;;) {
    const double now = residual();
    if (!std::isfinite(now)) {
      report.finite = best < kUnbounded;
      if (!report.finite) return report;
      break;
    }
    history_.push_back(now);
    const bool done = now <= options.tolerance && within_sets();
    if (now < best || done) {
      best = now;
      std::copy(impulse_.begin(), impulse_.end(), impulse.begin());
      for (std::size_t i = 0; i < n; ++i) {
        const TermRow& row = problem.rows[i];
        y[i] = row.centre + (row.target - velocity_[i]) / row.compliance;
      }
      mass.keep();
    }
    report.converged = done;
    if (done || report.iterations >= options.max_iterations) break;
    bool given = false;
    const std::size_t count = history_.size();
    if (count > kPatience) {
      const double before = *std::min_element(history_.begin(), history_.end() - 3);
      if (discs > 0 || last_step < kShort || now > 0.5 * before) {
        discs = discs > 0 ? discs - 1 : kDiscs;
        given = discs > 0;
      }
    }
    follow_normals();
    bound_ = given ? Bound::given_normal : Bound::own_normal;
    law(velocity_, bound_, true);
    double start = linear_solve(mass);
    ++report.iterations;
    if (bound_ == Bound::own_normal && !(start < 0)) {
      bound_ = Bound::given_normal;
      law(velocity_, bound_, true);
      start = linear_solve(mass);
      ++report.iterations;
      bound_ = Bound::own_normal;
      double rise;
      start = slope(0, &rise);
    }
    last_step = search(start);
    move(mass, last_step);
  }
  report.residual = best, report.searches = searches_;
  return report;
}

}  // namespace tarsus
