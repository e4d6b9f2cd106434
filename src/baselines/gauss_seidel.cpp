// Projected Gauss-Seidel: the velocities carry the residual.  [Lacoursière 2013, alg. 2.1 and 2.2, eq. 36]
//
//   for each block:  r = W D⁻¹ u + Σ λ - b,  z = P(λ - ω r/d),  u += Wᵀ (z - λ),  λ = z
//
// A sweep costs O(nonzeros). It converges for bilateral and interval rows if the rows' matrix is positive definite
// [Mangasarian 1977]. With friction, whose bounds move with λ_n, no such theorem holds: check the report. Convergence
// is slow where the gain is near 1: long chains, tall stacks, large mass ratios.
#include <algorithm>
#include <cmath>

#include "baselines/row_solvers.hpp"
#include "tarsus/base/index.hpp"

namespace tarsus {

namespace {

class GaussSeidel final : public RowSolver {
 public:
  RowSolveReport solve(const RowProblem& problem, std::span<double> u, std::span<double> multiplier,
                       const RowSolveOptions& options) override {
    check_solve(problem, u, multiplier, options);
    RowSolveReport report;
    steps_.resize(at(problem.nrow()));
    before_.resize(at(problem.nrow()));
    for (const RowBlock& block : problem.blocks())
      problem.steps(block, std::span(steps_).subspan(at(block.first), at(block.count)));
    if (!start(problem, u, multiplier)) return report.status = RowSolveStatus::not_finite, report;
    report.status = RowSolveStatus::too_many_iterations;
    for (int k = 0; k < options.max_iterations; ++k) {
      double change = 0;
      for (const RowBlock& block : problem.blocks())
        change = std::max(change, relax(problem, block, options.relaxation, u, multiplier));
      ++report.iterations;
      // The change of the sweep is known at no cost. The tolerance refers to the residual, which is tested only then.
      if (change <= options.tolerance && natural_residual(problem, u, multiplier) <= options.tolerance) {
        report.status = RowSolveStatus::converged;
        break;
      }
    }
    report.residual = natural_residual(problem, u, multiplier);
    return report;
  }

 private:
  /// Relaxes one block. @return the largest |Δλ| d
  double relax(const RowProblem& problem, const RowBlock& block, double relaxation, std::span<double> u,
               std::span<double> multiplier) {
    const int step =
        block.cone == RowCone::ball ? block.count : 1;  // rows of a box or interval see each other's changes
    double worst = 0;
    for (int begin = block.first; begin < block.first + block.count; begin += step) {
      const auto first = at(begin), n = at(step);
      for (std::size_t i = 0; i < n; ++i) {
        double& x = multiplier[first + i];
        const double d = steps_[first + i];
        before_[i] = x;
        x = d > 0 ? x - relaxation * problem.residual(begin + int(i), u, x) / d : 0;
      }
      problem.project({begin, step, block.cone, block.reference, block.coefficient}, multiplier);
      for (std::size_t i = 0; i < n; ++i) {
        const double change = multiplier[first + i] - before_[i];
        if (change == 0) continue;
        problem.apply(begin + int(i), change, u);
        worst = std::max(worst, std::abs(change) * steps_[first + i]);
      }
    }
    return worst;
  }

  std::vector<double> steps_;   // [nrow] d
  std::vector<double> before_;  // [nrow] λ before a block is relaxed, from its first row on
};

}  // namespace

std::unique_ptr<RowSolver> make_gauss_seidel() { return std::make_unique<GaussSeidel>(); }

}  // namespace tarsus
