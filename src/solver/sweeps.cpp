#include "tarsus/solver/sweeps.hpp"

#include <algorithm>
#include <cmath>

#include "solver/law.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

namespace {

constexpr std::size_t kMostRows = 400;  ///< A of more costs more than it is worth
constexpr int kPlain = 6;               ///< iterations before sweeps
constexpr int kFirst = 5;               ///< sweeps before an iteration, to begin with,
constexpr int kMore = 2;                ///< times as many where
constexpr double kProgress = 0.5;       ///< of the least residual is not reached,
constexpr int kMost = 640;              ///< in a step

}  // namespace

void Sweeps::begin(const StepProblem& problem) {
  acted_.assign(problem.terms.size(), 0), terms_.clear(), velocity_.clear();
  done_ = 0;
}

int Sweeps::due(std::span<const double> residuals) {
  const int iteration = int(residuals.size());
  if (iteration <= kPlain) return 0;
  const double least = *std::min_element(residuals.begin(), residuals.end() - 1);
  if (iteration == kPlain + 1 || residuals.back() <= kProgress * least)
    count_ = kFirst, without_ = false;
  else
    count_ *= kMore, without_ = !without_;
  const int count = without_ ? 0 : std::min(count_, kMost - done_);
  done_ += count;
  return count;
}

/// Terms with an impulse, or which would have one. @return there are new ones
bool Sweeps::choose(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse) {
  bool more = false;
  for (std::size_t i = 0; i < problem.terms.size(); ++i) {
    if (acted_[i]) continue;
    const int first = problem.terms[i].first_row;
    acted_[i] = acts(problem.terms[i], &problem.rows[first], &velocity[first], &impulse[first]);
    more |= acted_[i] != 0;
  }
  if (!more) return false;
  terms_.clear();
  for (std::size_t i = 0; i < acted_.size(); ++i) {
    if (acted_[i]) terms_.push_back(int(i));
  }
  return true;
}

void Sweeps::group(const StepProblem& problem) {
  const std::size_t n = velocity_.size();
  int at = 0;
  rows_.clear();
  const auto add = [&](int i, int first, int count) {
    if (problem.terms[i].nrow < first + count) return;
    double rho = 0;
    for (int r = first; r < first + count; ++r) {
      double sum = problem.rows[problem.terms[i].first_row + r].compliance;
      for (int c = first; c < first + count; ++c) sum += std::abs(A_[(at + r) * n + at + c]);
      rho = std::max(rho, sum);
    }
    rows_.push_back({i, first, count, at, 1 / rho});
  };
  for (const int i : terms_) {
    const Term& term = problem.terms[i];
    if (term.law == Law::contact)
      add(i, 0, 1), add(i, 1, 2), add(i, 3, 1), add(i, 4, 2);
    else
      add(i, 0, term.nrow);
    at += term.nrow;
  }
}

void Sweeps::relax(const StepProblem& problem, const Rows& rows, std::span<double> impulse) {
  const Term& term = problem.terms[rows.term];
  const std::size_t n = velocity_.size();
  double* y = &impulse[term.first_row];
  double z[kTermRows], projected[kTermRows];
  std::copy_n(y, term.nrow, z);
  for (int r = rows.first; r < rows.first + rows.count; ++r)
    z[r] -= miss(problem.rows[term.first_row + r], velocity_[rows.at + r], y[r]) * rows.inverse;
  project(term, z, projected);
  for (int r = 0; r < term.nrow; ++r) {  // friction's bound moves with the normal impulse
    const double change = projected[r] - y[r];
    if (change == 0) continue;
    y[r] = projected[r];
    const double* A = &A_[(rows.at + r) * n];
    for (std::size_t k = 0; k < n; ++k) velocity_[k] += change * A[k];
  }
}

bool Sweeps::run(StepOperator& mass, const StepProblem& problem, int count, std::span<const double> velocity,
                 std::span<double> impulse) {
  if (choose(problem, velocity, impulse)) {
    std::size_t n = 0;
    for (const int i : terms_) n += problem.terms[i].nrow;
    velocity_.resize(n);
    if (n > kMostRows) return false;
    A_.resize(n * n);
    mass.inverse_mass(terms_, A_);
  }
  if (velocity_.size() > kMostRows) return false;
  auto to = velocity_.begin();
  for (const int i : terms_) to = std::copy_n(&velocity[problem.terms[i].first_row], problem.terms[i].nrow, to);
  group(problem);
  for (; count > 0; --count) {
    for (const Rows& rows : rows_) {
      const bool slides = problem.terms[rows.term].law == Law::contact && rows.first > 0;
      if (!slides || impulse[problem.terms[rows.term].first_row] != 0) relax(problem, rows, impulse);
    }
  }
  return true;
}

}  // namespace tarsus
