// SHAKE and RATTLE row by row, as in the book.  [Tuckerman, eqs. 3.9.15 to 3.9.19; Ryckaert 1977; Andersen 1983]
//
//   positions   δλ̃_k = -σ_k(x) / (∇σ_k(x) M^-1 ∇σ_k(x0)ᵀ),  x += M^-1 ∇σ_k(x0)ᵀ δλ̃_k    row by row, until all hold
//   velocities  δμ̃_k = -J_k v / (J_k M^-1 J_kᵀ),              v += M^-1 J_kᵀ δμ̃_k
//
// This is Gauss-Seidel. A sweep costs O(nonzeros) without a factorisation, but the number of sweeps grows with the
// square of a chain's length. Each sweep visits a row once and skips it while it holds. (The book repeats a row until
// it holds, which needs as many sweeps, each of them costlier.) The velocity stage may be solved by a matrix instead
// (3.9.19).
#include <algorithm>
#include <cmath>

#include "solver/convergence.hpp"
#include "solver/newton.hpp"
#include "tarsus/base/error.hpp"

namespace tarsus {
namespace {

constexpr int kMaxSweeps = 100000;
constexpr double kBlownUp = 1e6;  // a violation this large, relative to the row's scale, does not recover

class ShakeSolver final : public ConstraintSolver {
 public:
  explicit ShakeSolver(bool velocities_by_matrix = false) : by_matrix_(velocities_by_matrix) {}
  std::string_view name() const override { return by_matrix_ ? "shake_matrix" : "shake"; }
  SolveReport solve_positions(const Problem& problem, const MassOperator& mass, std::span<const double> x0,
                              std::span<double> x, std::span<double> multiplier, const SolveOptions& options) override {
    check_size("multiplier", multiplier.size(), problem.nrow());
    check_size("x", x.size(), problem.nx());
    prepare(problem, mass, x0);
    const RowPattern& rows = problem.pattern();
    const bool euclidean = !mass.inverse_diagonal().empty() && problem.nx() == problem.nv();
    const int max_sweeps = options.max_iterations > 0 ? options.max_iterations : kMaxSweeps;
    std::fill(multiplier.begin(), multiplier.end(), 0.0);
    start_.assign(x.begin(), x.end());
    trial_ = start_;
    gradient_.resize(problem.nv());
    SolveReport report;
    double previous = INFINITY;
    for (;; ++report.iterations) {
      Violation worst;
      for (int k = 0; k < rows.nrow(); ++k) {
        const std::span<double> gradient(gradient_.data(), rows.start[k + 1] - rows.start[k]);
        const double sigma = problem.evaluate_row(k, trial_, gradient);
        const double value = std::abs(sigma) / problem.scale(k);
        if (!(value <= worst.value)) worst = {std::isnan(value) ? INFINITY : value, k};
        if (value <= options.tolerance) continue;
        const double diagonal = rows_.diagonal(k, gradient);
        if (!(std::abs(diagonal) > 0)) {
          report.worst_row = k, report.residual = value, report.pivot_ratio = 0;
          return report.status = SolveStatus::singular, report;
        }
        const double step = -sigma / diagonal;
        multiplier[k] += step;
        if (euclidean) {
          rows_.displace_row(k, step, trial_);
        } else {
          rows_.displace_row(k, step, move_);
          problem.retract(start_, move_, trial_);
        }
      }
      if (report.iterations == 0) report.start_residual = worst.value;
      report.residual = worst.value, report.worst_row = worst.row;
      if (worst.value <= options.tolerance) break;
      if (!std::isfinite(worst.value)) return report.status = SolveStatus::not_finite, report;
      if (worst.value > kBlownUp) return report.status = SolveStatus::diverged, report;
      if (worst.value <= problem.rounding_floor(worst.row, trial_) && worst.value >= previous) {
        report.status = SolveStatus::at_rounding;
        break;
      }
      if (report.iterations >= max_sweeps) return report.status = SolveStatus::too_many_iterations, report;
      previous = worst.value;
    }
    for (int k = 0; k < rows.nrow() && !report.wrong_root; ++k) {
      const std::span<double> gradient(gradient_.data(), rows.start[k + 1] - rows.start[k]);
      problem.evaluate_row(k, trial_, gradient);
      report.wrong_root = rows_.diagonal(k, gradient) <= 0;
    }
    std::copy(trial_.begin(), trial_.end(), x.begin());
    return report;
  }

  SolveReport solve_velocities(const Problem& problem, const MassOperator& mass, std::span<const double> x,
                               std::span<double> v, std::span<double> multiplier,
                               const SolveOptions& options) override {
    if (by_matrix_) return matrix_.solve_velocities(problem, mass, x, v, multiplier, options);
    check_size("multiplier", multiplier.size(), problem.nrow());
    check_size("v", v.size(), problem.nv());
    prepare(problem, mass, x);
    const RowPattern& rows = problem.pattern();
    const int max_sweeps = options.max_iterations > 0 ? options.max_iterations : kMaxSweeps;
    std::fill(multiplier.begin(), multiplier.end(), 0.0);
    trial_.assign(v.begin(), v.end());
    SolveReport report;
    VelocityResidual residual = velocity_residual(problem, jacobian_, trial_, options.timestep, sigma_);
    report.start_residual = residual.value;
    double previous = INFINITY;
    while (residual.value > options.tolerance && std::isfinite(residual.value) && report.iterations < max_sweeps) {
      if (residual.value <= residual.floor && residual.value >= previous) break;
      previous = residual.value;
      for (int k = 0; k < rows.nrow(); ++k) {
        double jv = 0;
        for (int p = rows.start[k]; p < rows.start[k + 1]; ++p) jv += jacobian_[p] * trial_[rows.column[p]];
        const std::span<const double> gradient(&jacobian_[rows.start[k]], rows.start[k + 1] - rows.start[k]);
        const double diagonal = rows_.diagonal(k, gradient);
        if (!(diagonal > 0)) {
          report.worst_row = k, report.pivot_ratio = 0;
          return report.status = SolveStatus::singular, report;
        }
        multiplier[k] -= jv / diagonal;
        rows_.displace_row(k, -jv / diagonal, trial_);
      }
      ++report.iterations;
      residual = velocity_residual(problem, jacobian_, trial_, options.timestep, sigma_);
    }
    end_velocities(residual, options.tolerance, trial_, v, report);
    return report;
  }

 private:
  void prepare(const Problem& problem, const MassOperator& mass, std::span<const double> x) {
    // The matrix is never factored here; the analysis is only needed, once, for the storage of its rows.
    rows_.analyze(problem.pattern(), mass, true);
    sigma_.resize(problem.nrow());
    jacobian_.resize(problem.pattern().nonzeros());
    move_.assign(problem.nv(), 0.0);
    problem.evaluate(x, sigma_, jacobian_);
    rows_.set_base(jacobian_);
  }

  bool by_matrix_;
  Delassus rows_;
  NewtonSolver matrix_{true};
  std::vector<double> sigma_, jacobian_, gradient_, trial_, start_, move_;
};

}  // namespace

std::unique_ptr<ConstraintSolver> make_shake(bool velocities_by_matrix) {
  return std::make_unique<ShakeSolver>(velocities_by_matrix);
}

}  // namespace tarsus
