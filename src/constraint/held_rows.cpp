#include "tarsus/constraint/held_rows.hpp"

#include <algorithm>
#include <cmath>

namespace tarsus {

namespace {

/// Of a bilateral row's own inverse mass, that Σ_e is raised by; and proximal steps that take it out again, as long as
/// each takes its share of what is left: the error of what can be moved falls as the power.
constexpr double kRaised = 1e-9;
constexpr int kProximalSteps = 10;
constexpr double kTaken = 0.8;
constexpr double kLeastMass = 1e-9;  ///< of the largest inverse mass of all rows, that a row's counts as

constexpr double kRounding = 1e-14;
constexpr double kHolds = 1e-10;  ///< of their size: the impulses at hand are a start

}  // namespace

template <class R>
void HeldRows<R>::write(const BasicData<R>& data, DelassusRows<R>& rows) {
  if (count() == 0) return;
  phi_.resize(count());
  bilateral_.equalities->template add_blocks<R>(rows);
  bilateral_.equalities->template evaluate<R>(data, 0, bilateral_.qpos, {}, rows, phi_, {}, {});
}

/// b_e - J_e v⁰ = h (y₂ - J q̈⁰), and the rows' inverse masses, from the factors at hand.
template <class R>
void HeldRows<R>::begin(const Model& model, BasicData<R>& data, double h, const BilateralRows<R>& bilateral,
                        DelassusRows<R>& rows) {
  bilateral_ = bilateral;
  const int m = count();
  demand_.resize(m), raised_.resize(m), diagonal_.resize(m);
  size_ = 0;
  if (m == 0) return;
  rows.clear();
  write(data, rows);
  rows.sweep(model, data);
  const int ld = rows.leading_dimension();
  gram_.resize(std::size_t(m) * ld), velocity_.resize(m);
  rows.gram(gram_.data(), ld);
  rows.velocity_of(data, data.qacc, velocity_);
  for (int i = 0; i < m; ++i) {
    demand_[i] = h * (double(bilateral_.demand[i]) - double(velocity_[i]));
    size_ = std::max(size_, std::abs(h * double(velocity_[i])));
  }
  // Rows that nothing moves have no inverse mass of their own.
  const auto inverse_mass = [&](int i) { return double(gram_[std::size_t(i) * (ld + 1)]); };
  double most = 0;
  for (int i = 0; i < m; ++i) most = std::max(most, inverse_mass(i));
  const double least = most > 0 ? kLeastMass * most : 1;
  const EqualitySet& set = *bilateral_.equalities;
  for (int e = 0; e < set.size(); ++e) {  // rows of one unit: a weld's positions, then its angles
    for (int first = 0; first < set[e].nrow; first += 3) {
      const int begin = set[e].first_row + first, end = set[e].first_row + std::min(first + 3, set[e].nrow);
      double largest = least;
      for (int i = begin; i < end; ++i) largest = std::max(largest, inverse_mass(i));
      for (int i = begin; i < end; ++i) raised_[i] = kRaised * largest;
    }
  }
  for (int i = 0; i < m; ++i) diagonal_[i] = double(bilateral_.compliance[i]) + raised_[i];
}

template <class R>
void HeldRows<R>::settle(const std::function<void(std::span<double>)>& solve, std::span<double> solution, int first,
                         const HeldImpulse& now, HeldImpulse& next) {
  const int held = count();
  const double rounding = kRounding * size_;
  const auto start = [&, holds = now.miss <= kHolds * size_](int i) { return holds ? now.at[i] : 0; };
  for (int i = 0; i < held; ++i) solution[first + i] += raised_[i] * start(i);
  solve(solution);
  if (held == 0) return;
  change_.assign(solution.size(), 0.0);
  double before = kUnbounded;
  for (int step = 0;; ++step) {
    next.miss = 0;
    for (int i = 0; i < held; ++i) {
      double& change = change_[first + i];
      change = raised_[i] * (step == 0 ? solution[first + i] - start(i) : change);
      next.miss = std::max(next.miss, std::abs(change));
    }
    if (step == kProximalSteps || !(next.miss > rounding && next.miss < kTaken * before)) break;
    before = next.miss;
    std::fill_n(change_.begin(), first, 0.0), std::fill(change_.begin() + first + held, change_.end(), 0.0);
    solve(change_);
    for (std::size_t i = 0; i < solution.size(); ++i) solution[i] += change_[i];
  }
  std::copy_n(solution.begin() + first, held, next.at.begin());
}

template class HeldRows<double>;
template class HeldRows<float>;

}  // namespace tarsus
