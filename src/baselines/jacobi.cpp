// Projected Jacobi: all rows are updated from the same state, with steps so small that their sum does not overshoot.
//
//   z = P(λ - r/s),   s_i = Σ_j |A_ij| for the rows of a block (the largest of the block for a ball)
//
// diag(s) - A is positive semidefinite (Gershgorin), so each iteration is a descent for bilateral and interval rows. An
// iteration costs O(nonzeros). Convergence is slower than Gauss-Seidel's, but independent of the order of the rows.
#include <algorithm>
#include <cmath>

#include "baselines/row_solvers.hpp"

namespace tarsus {

namespace {

class Jacobi final : public RowSolver {
 public:
  RowSolveReport solve(const RowProblem& problem, std::span<double> u, std::span<double> multiplier,
                       const RowSolveOptions& options) override;

 private:
  void prepare(const RowProblem& problem);
  std::vector<double> steps_;
};

/// Bounds Σ_j |A_ij| <= Σ_k |W_ik| D⁻¹_k c_k + Σ_i with c_k = Σ_j |W_jk|, without forming A.
void Jacobi::prepare(const RowProblem& problem) {
  std::vector<double> load(static_cast<std::size_t>(problem.nu()), 0.0);
  for (int row = 0; row < problem.nrow(); ++row) {
    const auto columns = problem.columns(row);
    const auto effect = problem.effect(row);
    for (std::size_t k = 0; k < columns.size(); ++k) load[static_cast<std::size_t>(columns[k])] += std::abs(effect[k]);
  }
  steps_.assign(static_cast<std::size_t>(problem.nrow()), 0.0);
  for (const RowBlock& block : problem.blocks()) {
    double largest = 0;
    for (int row = block.first; row < block.first + block.count; ++row) {
      const auto columns = problem.columns(row);
      const auto velocity = problem.velocity(row);
      double sum = problem.numbers(row).compliance;
      for (std::size_t k = 0; k < columns.size(); ++k) {
        sum += std::abs(velocity[k]) * load[static_cast<std::size_t>(columns[k])];
      }
      steps_[static_cast<std::size_t>(row)] = sum;
      largest = std::max(largest, sum);
    }
    if (block.cone == RowCone::ball) std::fill_n(steps_.begin() + block.first, block.count, largest);
  }
}

RowSolveReport Jacobi::solve(const RowProblem& problem, std::span<double> u, std::span<double> multiplier,
                             const RowSolveOptions& options) {
  check_solve(problem, u, multiplier, options);
  RowSolveReport report;
  prepare(problem);
  if (!start(problem, u, multiplier)) return report.status = RowSolveStatus::not_finite, report;
  std::vector<double> next(multiplier.size());
  report.status = RowSolveStatus::too_many_iterations;
  for (int k = 0; k < options.max_iterations; ++k) {
    for (int row = 0; row < problem.nrow(); ++row) {
      const auto i = static_cast<std::size_t>(row);
      next[i] =
          steps_[i] > 0 ? multiplier[i] - options.relaxation * problem.residual(row, u, multiplier[i]) / steps_[i] : 0;
    }
    for (const RowBlock& block : problem.blocks()) problem.project(block, next);
    double change = 0;
    for (int row = 0; row < problem.nrow(); ++row) {
      const auto i = static_cast<std::size_t>(row);
      if (next[i] == multiplier[i]) continue;
      problem.apply(row, next[i] - multiplier[i], u);
      change = std::max(change, std::abs(next[i] - multiplier[i]) * steps_[i]);
      multiplier[i] = next[i];
    }
    ++report.iterations;
    if (change <= options.tolerance && natural_residual(problem, u, multiplier) <= options.tolerance) {
      report.status = RowSolveStatus::converged;
      break;
    }
  }
  report.residual = natural_residual(problem, u, multiplier);
  return report;
}

}  // namespace

std::unique_ptr<RowSolver> make_jacobi() { return std::make_unique<Jacobi>(); }

}  // namespace tarsus
