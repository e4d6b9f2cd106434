// Proximal solve of bilateral rows that may be dependent or contradictory (bilateral_schur.hpp). With A = J M̂⁻¹ Jᵀ and
// δ the raised part of Σ_e, each proximal step solves
//
//     (A + Σ_e + δ) (λ_{k+1} - λ_k) = b - (A + Σ_e) λ_k
//
// on the same factors, until the error of rows that some motion can satisfy has fallen to rounding.
#include "tarsus/constraint/bilateral_schur.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tarsus/math/larger.hpp"
#include "tarsus/solver/multipliers.hpp"

namespace tarsus {

namespace {

/// Share of a row's inverse mass by which Σ_e is raised; at least the rounding error of dependent rows. Proximal steps
/// remove it again, as long as each leaves at most kTaken of the residual: the error of rows that can be satisfied
/// falls as a power.
template <class R>
constexpr double kRaised = sizeof(R) == 8 ? 1e-10 : 4e-5;
constexpr int kProximalSteps = 10;
constexpr double kTaken = 0.8;
/// Least inverse mass of a row, relative to the largest of all rows: in float, rounding exceeds smaller ones.
template <class R>
constexpr double kLeastMass = sizeof(R) == 8 ? 1e-9 : 1e-3;

template <class R>
constexpr double kMet = sizeof(R) == 8 ? 1e-7 : 1e-3;  ///< [m/s² | rad/s²]

constexpr double kRounding = 1e-14;
constexpr double kHolds = 1e-10;  ///< relative; if more is left after all steps, the rows contradict one another

}  // namespace

template <class R>
void BilateralSchur<R>::write(const BasicData<R>& data, DelassusRows<R>& rows) {
  if (count() == 0) return;
  phi_.resize(count());
  if (rows.blocks() == 0) bilateral_.equalities->template add_blocks<R>(rows);
  bilateral_.equalities->template evaluate<R>(data, 0, bilateral_.qpos, {}, rows, phi_, {}, {});
}

template <class R>
void BilateralSchur<R>::lay_out(const BilateralRows<R>& bilateral, DelassusRows<R>& rows) {
  const bool same = bilateral.equalities && bilateral.equalities == bilateral_.equalities && blocks_ > 0 &&
                    blocks_ == bilateral.equalities->size();
  bilateral_ = bilateral;
  same ? rows.keep(blocks_) : rows.clear();  // the links of the rows stay; anything added since is dropped
  if (!same && count() > 0) bilateral_.equalities->template add_blocks<R>(rows);
  blocks_ = rows.blocks();
}

/// b_e - J_e v⁰ = h (y₂ - J q̈⁰) and the rows' inverse masses, from the present factors.
template <class R>
void BilateralSchur<R>::begin(const Model& model, BasicData<R>& data, double h, DelassusRows<R>& rows) {
  const int m = count();
  demand_.resize(m), raised_.resize(m), diagonal_.resize(m), eased_.assign(m, 0.0);
  size_ = unmet_ = 0, contradict_ = met_ = false;
  write(data, rows);
  if (m == 0) return;
  rows.sweep(model, data);
  mass_.resize(m), velocity_.resize(m);
  rows.diagonal(mass_);
  rows.velocity_of(data, data.qacc, velocity_);
  for (int i = 0; i < m; ++i) {
    demand_[i] = h * (double(bilateral_.demand[i]) - double(velocity_[i]));
    size_ = std::max(size_, std::abs(h * double(velocity_[i])));
  }
  // Rows that no motion changes have no inverse mass.
  double most = 0;
  for (int i = 0; i < m; ++i) most = std::max(most, double(mass_[i]));
  for (int i = 0; i < m; ++i) {  // as ConstrainedDynamics::drop_row(): rounding in such rows must not demand a force
    if (mass_[i] <= kZeroRow<R> * most && std::abs(demand_[i]) <= kMet<R> * h) demand_[i] = 0;
  }
  if (!(most > 0)) most = 1;
  const double least = kLeastMass<R> * most;
  const EqualitySet& set = *bilateral_.equalities;
  set.each_unit(0, set.size(), [&](int begin, int end) {
    double largest = 0;
    for (int i = begin; i < end; ++i) largest = std::max(largest, double(mass_[i]));
    largest =
        largest > kZeroRow<R> * most ? std::max(largest, least) : most;  // rows that no motion changes get no force
    for (int i = begin; i < end; ++i) raised_[i] = kRaised<R> * largest;
  });
  for (int i = 0; i < m; ++i) diagonal_[i] = double(bilateral_.compliance[i]) + raised_[i];
}

/// The largest |J_e v + Σ_e λ_e - b_e|, from the effect of the raised Σ_e on the last step and what was subtracted from
/// the demand.
template <class R>
double BilateralSchur<R>::left() const {
  double most = unmet_;
  for (std::size_t i = 0; i < step_.size(); ++i) most = larger(most, std::abs(raised_[i] * step_[i] - eased_[i]));
  return most;
}

/// One more proximal step: adds the solution for the right side raised_ × (last step). Its rows' part is the next step.
template <class R>
void BilateralSchur<R>::step_again(const Solve& solve, std::span<double> solution, int first) {
  change_.assign(solution.size(), 0.0);
  for (int i = 0; i < count(); ++i) change_[first + i] = raised_[i] * step_[i];
  solve(change_);
  for (std::size_t i = 0; i < solution.size(); ++i) solution[i] += change_[i];
  std::copy_n(change_.begin() + first, count(), step_.begin());
}

template <class R>
void BilateralSchur<R>::refine(const Solve& solve, std::span<double> solution, int first, const BilateralImpulse& now,
                               BilateralImpulse& next) {
  const int held = count();
  const bool from_now = !contradict_ && now.miss <= kHolds * size_;
  for (int i = 0; i < held && from_now; ++i) solution[first + i] += raised_[i] * now.at[i];
  solve(solution);
  if (held == 0) return;
  step_.resize(held);
  for (int i = 0; i < held; ++i) step_[i] = solution[first + i] - (from_now ? now.at[i] : 0);
  next.miss = left();
  if (!contradict_) {
    first_solution_.assign(solution.begin(), solution.end());
    double before = std::numeric_limits<double>::infinity();
    int steps = 1;
    for (; steps <= kProximalSteps && next.miss > kRounding * size_ && next.miss < kTaken * before; ++steps) {
      before = next.miss;
      step_again(solve, solution, first);
      next.miss = left();
    }
    contradict_ = next.miss > kHolds * size_;
    if (contradict_) {  // then this solve is one step from zero too
      std::copy(first_solution_.begin(), first_solution_.end(), solution.begin());
      steps = 1;
    }
    if (contradict_ || (!met_ && next.miss > kRounding * size_)) {  // each step added the same impulse for it
      change_.assign(solution.size(), 0.0);
      for (int i = 0; i < held; ++i) {
        const double unmet = raised_[i] * step_[i];
        demand_[i] -= unmet, change_[first + i] = steps * unmet;
        if (!contradict_) continue;
        unmet_ = larger(unmet_, std::abs(unmet));
        eased_[i] = raised_[i] * solution[first + i] - unmet;
        demand_[i] += eased_[i], change_[first + i] -= eased_[i];
        if (from_now) change_[first + i] += raised_[i] * now.at[i];
      }
      solve(change_);
      for (std::size_t i = 0; i < solution.size(); ++i) solution[i] -= change_[i];
      for (int i = 0; i < held; ++i)
        step_[i] = contradict_ ? solution[first + i] : step_[i] - change_[first + i] / steps;
      next.miss = left();
    }
    met_ = true;
  }
  std::copy_n(solution.begin() + first, held, next.at.begin());
}

template class BilateralSchur<double>;
template class BilateralSchur<float>;

}  // namespace tarsus
