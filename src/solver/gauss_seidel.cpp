// Projected Gauss-Seidel, matrix-free: the velocities carry the residual.  [Lacoursière 2013, alg. 2.1 and 2.2, eq. 36]
//
//   for each block:  r = W D⁻¹ u + Σ λ - b,  z = P(λ - ω r/d),  u += Wᵀ (z - λ),  λ = z
//
// Rows of one block without bounds (the three of a point joint) are solved together: Δλ = -ω A_bb⁻¹ r. A sweep costs
// O(nonzeros). It converges for bilateral and interval rows if the rows' matrix is positive definite
// [Mangasarian 1977]. With friction, whose bounds move with λ_n, no such theorem holds: check the report. Convergence
// is slow where the gain is near 1: long chains, tall stacks, large mass ratios.
#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <numeric>

#include "solver/row_solvers.hpp"
#include "tarsus/base/index.hpp"

namespace tarsus {

namespace {

class GaussSeidel final : public RowSolver {
 public:
  GaussSeidel(bool symmetric, bool accelerate) : symmetric_(symmetric), accelerate_(accelerate) {}
  RowSolveReport solve(const RowProblem& problem, std::span<double> u, std::span<double> multiplier,
                       const RowSolveOptions& options) override {
    check_solve(problem, u, multiplier, options);
    RowSolveReport report;
    prepare(problem);
    if (!start(problem, u, multiplier)) return report.status = RowSolveStatus::not_finite, report;
    if (accelerate_) {
      last_.assign(multiplier.begin(), multiplier.end());
      origin_ = ahead_ = last_;
      momentum_ = 1;
    }
    report.status = RowSolveStatus::too_many_iterations;
    for (int k = 0; k < options.max_iterations; ++k) {
      if (symmetric_ && k > 0) std::reverse(sequence_.begin(), sequence_.end());
      const double change = sweep(problem, options.relaxation, u, multiplier);
      ++report.iterations;
      // The change of the sweep is known at no cost. The tolerance refers to the residual, which is tested only then.
      if (change <= options.tolerance && natural_residual(problem, u, multiplier) <= options.tolerance) {
        report.status = RowSolveStatus::converged;
        break;
      }
      // A sweep forwards and backwards is a symmetric operator, as acceleration requires; in one direction it diverges.
      if (accelerate_ && k % 2 == 1 && k + 1 < options.max_iterations) extrapolate(problem, u, multiplier);
    }
    report.residual = natural_residual(problem, u, multiplier);
    return report;
  }

 private:
  void prepare(const RowProblem& problem) {
    steps_.resize(at(problem.nrow()));
    std::size_t largest = 1;
    for (const RowBlock& block : problem.blocks()) {
      const auto n = at(block.count);
      largest = std::max(largest, n);
      problem.steps(block, std::span(steps_).subspan(at(block.first), n));
    }
    inverse_at_.assign(problem.blocks().size(), -1);
    inverse_.clear();
    for (std::size_t b = 0; b < problem.blocks().size(); ++b) invert(problem, problem.blocks()[b], inverse_at_[b]);
    before_.resize(largest);
    sequence_.resize(problem.blocks().size());
    std::iota(sequence_.begin(), sequence_.end(), 0);
  }

  /// A_bb⁻¹ of a block of rows without bounds, if these are independent.
  void invert(const RowProblem& problem, const RowBlock& block, int& place) {
    if (block.cone != RowCone::interval || block.count < 2 || block.count > 6) return;
    Eigen::MatrixXd a(block.count, block.count);
    for (int i = 0; i < block.count; ++i) {
      const RowNumbers& n = problem.numbers(block.first + i);
      if (std::isfinite(n.lower) || std::isfinite(n.upper)) return;
      for (int j = 0; j <= i; ++j) a(i, j) = a(j, i) = problem.delassus(block.first + i, block.first + j);
    }
    const Eigen::LDLT<Eigen::MatrixXd> factor(a);
    if (factor.info() != Eigen::Success || !(factor.rcond() > 1e-12)) return;
    const Eigen::MatrixXd inverse = factor.solve(Eigen::MatrixXd::Identity(block.count, block.count));
    place = int(inverse_.size());
    inverse_.insert(inverse_.end(), inverse.data(), inverse.data() + inverse.size());
  }

  double solve_block(const RowProblem& problem, const RowBlock& block, const double* inverse, double relaxation,
                     std::span<double> u, std::span<double> multiplier) {
    const auto n = at(block.count), first = at(block.first);
    for (std::size_t i = 0; i < n; ++i) before_[i] = problem.residual(block.first + int(i), u, multiplier[first + i]);
    double worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double change = 0;
      for (std::size_t j = 0; j < n; ++j) change -= relaxation * inverse[i * n + j] * before_[j];
      multiplier[first + i] += change;
      problem.apply(block.first + int(i), change, u);
      worst = std::max(worst, std::abs(change) * steps_[first + i]);
    }
    return worst;
  }

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

  double sweep(const RowProblem& problem, double relaxation, std::span<double> u, std::span<double> multiplier) {
    double change = 0;
    for (int b : sequence_) {
      const RowBlock& block = problem.blocks()[at(b)];
      const int place = inverse_at_[at(b)];
      change =
          std::max(change, place >= 0 ? solve_block(problem, block, inverse_.data() + place, relaxation, u, multiplier)
                                      : relax(problem, block, relaxation, u, multiplier));
    }
    return change;
  }

  /// λ ← P(λ + β (λ - λ_last)). β returns to 0 if the sweep's step opposes the direction of extrapolation.
  /// [Nesterov 1983; restart: O'Donoghue and Candès 2015]
  void extrapolate(const RowProblem& problem, std::span<double> u, std::span<double> multiplier) {
    double uphill = 0;
    for (std::size_t i = 0; i < multiplier.size(); ++i)
      uphill += steps_[i] * (origin_[i] - multiplier[i]) * (multiplier[i] - last_[i]);
    if (uphill > 0) momentum_ = 1;
    const double next = 0.5 * (1 + std::sqrt(1 + 4 * momentum_ * momentum_)), beta = (momentum_ - 1) / next;
    momentum_ = next;
    for (std::size_t i = 0; i < multiplier.size(); ++i) {
      ahead_[i] = multiplier[i] + beta * (multiplier[i] - last_[i]);
      last_[i] = multiplier[i];
    }
    for (const RowBlock& block : problem.blocks()) problem.project(block, ahead_);
    for (std::size_t i = 0; i < multiplier.size(); ++i) {
      if (ahead_[i] != multiplier[i]) problem.apply(int(i), ahead_[i] - multiplier[i], u);
      multiplier[i] = origin_[i] = ahead_[i];
    }
  }

  bool symmetric_, accelerate_;
  std::vector<double> steps_;    // [nrow] d
  std::vector<int> inverse_at_;  // [block] offset of its A_bb⁻¹ in inverse_; -1: rows one by one
  std::vector<double> inverse_;
  std::vector<int> sequence_;   // blocks in the order of this sweep
  std::vector<double> before_;  // λ before a block is relaxed
  std::vector<double> last_, origin_,
      ahead_;  // acceleration: λ of the last sweep, start of this sweep, start of the next
  double momentum_ = 1;
};

}  // namespace

std::unique_ptr<RowSolver> make_gauss_seidel(bool symmetric, bool accelerate) {
  return std::make_unique<GaussSeidel>(symmetric, accelerate);
}

}  // namespace tarsus
