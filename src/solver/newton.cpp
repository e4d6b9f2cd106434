// Newton's method for the two constraint stages, and its dense variant M-SHAKE (newton.hpp).
#include "solver/newton.hpp"

#include <algorithm>
#include <cmath>

#include "solver/convergence.hpp"
#include "tarsus/base/error.hpp"

namespace tarsus {
namespace {

constexpr int kMaxIterations = 60;
constexpr int kMaxHalvings = 10;
constexpr double kSmallestPivot = 1e-13;

}  // namespace

void NewtonSolver::prepare(const Problem& problem, const MassOperator& mass) {
  if (delassus_.analyze(problem.pattern(), mass, dense_)) factored_at_.clear();
  sigma_.resize(problem.nrow());
  delta_.resize(problem.nrow());
  jacobian_.resize(problem.pattern().nonzeros());
  move_.resize(problem.nv());
}

SolveReport NewtonSolver::solve_positions(const Problem& problem, const MassOperator& mass, std::span<const double> x0,
                                          std::span<double> x, std::span<double> multiplier,
                                          const SolveOptions& options) {
  check_size("multiplier", multiplier.size(), problem.nrow());
  check_size("x", x.size(), problem.nx());
  prepare(problem, mass);
  bool fresh = !dense_ && std::equal(x0.begin(), x0.end(), factored_at_.begin(), factored_at_.end());
  if (!fresh) {
    problem.evaluate(x0, sigma_, jacobian_);
    delassus_.set_base(jacobian_);
    factored_at_.clear();
    pivots_ = {};
  }
  SolveReport report;
  report.pivot_ratio = pivots_.ratio;
  const int max_iterations = options.max_iterations > 0 ? options.max_iterations : kMaxIterations;
  start_.assign(x.begin(), x.end());  // x'
  trial_ = start_;
  std::fill(multiplier.begin(), multiplier.end(), 0.0);
  total_.assign(problem.nrow(), 0.0);
  problem.evaluate(trial_, sigma_, jacobian_);
  Violation violation = largest_violation(problem, sigma_);
  report.start_residual = violation.value;
  double contraction = fresh ? 0.0 : 1.0;  // 1: refactor before the next iteration
  bool matrix_ready = fresh;
  for (;;) {
    report.residual = violation.value;
    report.worst_row = violation.row;
    if (violation.value <= options.tolerance || violation.row < 0) break;
    if (!std::isfinite(violation.value)) return report.status = SolveStatus::not_finite, report;
    if (report.iterations >= max_iterations) return report.status = SolveStatus::too_many_iterations, report;
    const double floor = problem.rounding_floor(violation.row, trial_);
    if (violation.value <= floor && contraction > 0.5 && report.iterations > 1) {
      report.status = SolveStatus::at_rounding;
      break;
    }
    if (dense_ || !matrix_ready || wants_new_matrix(violation.value, options.tolerance, contraction)) {
      pivots_ = delassus_.factor(jacobian_);
      report.pivot_ratio = std::min(report.pivot_ratio, pivots_.ratio);
      ++report.factorizations;
      factored_at_.clear();
      matrix_ready = true;
      if (!(pivots_.ratio > kSmallestPivot)) {
        report.worst_row = pivots_.worst;
        return report.status = SolveStatus::singular, report;
      }
    }
    std::copy(sigma_.begin(), sigma_.end(), delta_.begin());
    delassus_.solve(delta_);
    ++report.iterations;
    const double before = violation.value;
    double taken = 0, want = 1;
    for (int halving = 0; halving <= kMaxHalvings; ++halving, want *= 0.5) {
      for (std::size_t k = 0; k < total_.size(); ++k) total_[k] -= (want - taken) * delta_[k];
      taken = want;
      delassus_.displace(total_, move_);
      problem.retract(start_, move_, trial_);
      problem.evaluate(trial_, sigma_, jacobian_);
      violation = largest_violation(problem, sigma_);
      if (violation.value < before || violation.value <= options.tolerance) break;
      if (before <= problem.rounding_floor(std::max(violation.row, 0), trial_)) break;
    }
    contraction = violation.value / before;
    if (!(contraction < 1) && taken < std::ldexp(1.0, -kMaxHalvings + 1)) {
      report.residual = before;
      return report.status = SolveStatus::diverged, report;
    }
  }
  for (int k = 0; k < problem.nrow() && !report.wrong_root; ++k) {
    const std::size_t from = problem.pattern().start[k], count = problem.pattern().start[k + 1] - from;
    report.wrong_root = delassus_.diagonal(k, std::span(jacobian_).subspan(from, count)) <= 0;
  }
  std::copy(trial_.begin(), trial_.end(), x.begin());
  std::copy(total_.begin(), total_.end(), multiplier.begin());
  return report;
}

SolveReport NewtonSolver::solve_velocities(const Problem& problem, const MassOperator& mass, std::span<const double> x,
                                           std::span<double> v, std::span<double> multiplier,
                                           const SolveOptions& options) {
  check_size("multiplier", multiplier.size(), problem.nrow());
  check_size("v", v.size(), problem.nv());
  prepare(problem, mass);
  problem.evaluate(x, sigma_, jacobian_);
  delassus_.set_base(jacobian_);
  pivots_ = delassus_.factor_symmetric();
  factored_at_.assign(x.begin(), x.end());
  SolveReport report;
  report.factorizations = 1;
  report.pivot_ratio = pivots_.ratio;
  std::fill(multiplier.begin(), multiplier.end(), 0.0);
  if (!(pivots_.ratio > kSmallestPivot)) {
    report.worst_row = pivots_.worst;
    factored_at_.clear();
    return report.status = SolveStatus::singular, report;
  }
  trial_.assign(v.begin(), v.end());
  VelocityResidual residual = velocity_residual(problem, jacobian_, trial_, options.timestep, sigma_);
  report.start_residual = residual.value;
  // One solve is exact to rounding; refinement removes the rest.
  for (; residual.value > options.tolerance && report.iterations < 4; ++report.iterations) {
    std::copy(sigma_.begin(), sigma_.end(), delta_.begin());
    delassus_.solve(delta_);
    for (std::size_t k = 0; k < delta_.size(); ++k) multiplier[k] -= delta_[k];
    delassus_.displace(multiplier, move_);
    for (std::size_t i = 0; i < trial_.size(); ++i) trial_[i] = v[i] + move_[i];
    residual = velocity_residual(problem, jacobian_, trial_, options.timestep, sigma_);
  }
  end_velocities(residual, options.tolerance, trial_, v, report);
  return report;
}

}  // namespace tarsus
