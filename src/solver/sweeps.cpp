#include "tarsus/solver/sweeps.hpp"

#include <algorithm>
#include <cmath>

#include "solver/law.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

namespace {

constexpr std::size_t kMostRows = 400;  ///< A of more costs more than it is worth

/// u + R (y - c) - b
double miss(const TermRow& row, double velocity, double impulse) {
  return velocity + row.compliance * (impulse - row.centre) - row.target;
}

}  // namespace

void Sweeps::begin(const StepProblem& problem) { acted_.assign(problem.terms.size(), 0), terms_.clear(); }

/// Terms with an impulse, or which would have one. @return there are new ones
bool Sweeps::choose(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse) {
  bool more = false;
  double z[kTermRows], projected[kTermRows];
  for (std::size_t i = 0; i < problem.terms.size(); ++i) {
    if (acted_[i]) continue;
    const Term& term = problem.terms[i];
    for (int k = 0; k < term.nrow; ++k) {
      const TermRow& row = problem.rows[term.first_row + k];
      const double y = impulse[term.first_row + k];
      z[k] = y - miss(row, velocity[term.first_row + k], y) / (row.scale + row.compliance);
    }
    project(term, z, projected);
    for (int k = 0; k < term.nrow; ++k) acted_[i] |= projected[k] != 0 || impulse[term.first_row + k] != 0;
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
