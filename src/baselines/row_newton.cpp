// Semismooth Newton on the natural map F(λ) = d (λ - P(λ - r/d)) = 0, dense.  [Alart and Curnier 1991]
//
// Exact for discs too (true Coulomb friction, not the convex approximation). Each iteration factorises a matrix, O(m³),
// and is globalised by a line search on ‖F‖². If no Newton step reduces ‖F‖², a few Gauss-Seidel sweeps change the
// iterate. Convergence is not guaranteed for Coulomb friction; the report has the residual reached.
#include <Eigen/QR>
#include <algorithm>
#include <cmath>

#include "baselines/dense_rows.hpp"
#include "baselines/row_solvers.hpp"

namespace tarsus {

namespace {

class Newton final : public RowSolver {
 public:
  RowSolveReport solve(const RowProblem& problem, std::span<double> u, std::span<double> multiplier,
                       const RowSolveOptions& options) override;
};

struct NaturalMap {
  const RowProblem& problem;
  const DenseRowProblem& dense;
  Eigen::VectorXd d;

  NaturalMap(const RowProblem& p, const DenseRowProblem& rows) : problem(p), dense(rows), d(p.nrow()) {
    for (const RowBlock& b : p.blocks()) {
      p.steps(b, std::span(d.data(), static_cast<std::size_t>(d.size()))
                     .subspan(static_cast<std::size_t>(b.first), static_cast<std::size_t>(b.count)));
    }
    for (double& x : d) x = x > 0 ? x : 1;  // a zero row: F = λ - P(λ - r) with constant r
  }

  /// F, and its generalised Jacobian if `jacobian` is not null.
  Eigen::VectorXd evaluate(const Eigen::VectorXd& x, Eigen::MatrixXd* jacobian) const {
    const Eigen::VectorXd r = dense.a * x + dense.q;
    Eigen::VectorXd f(x.size());
    if (jacobian) jacobian->setZero(x.size(), x.size());
    for (const RowBlock& block : problem.blocks()) {
      if (block.cone == RowCone::ball)
        ball(block, x, r, f, jacobian);
      else
        rows(block, x, r, f, jacobian);
    }
    return f;
  }

 private:
  void rows(const RowBlock& block, const Eigen::VectorXd& x, const Eigen::VectorXd& r, Eigen::VectorXd& f,
            Eigen::MatrixXd* jacobian) const {
    for (int i = block.first; i < block.first + block.count; ++i) {
      double lower = problem.numbers(i).lower, upper = problem.numbers(i).upper, slope = 0;
      if (block.cone == RowCone::box) {
        slope = x[block.reference] > 0 ? block.coefficient : 0;
        upper = block.coefficient * std::max(0.0, x[block.reference]);
        lower = -upper;
      }
      const double z = x[i] - r[i] / d[i];
      if (z >= lower && z <= upper) {
        f[i] = r[i];
        if (jacobian) jacobian->row(i) = dense.a.row(i);
        continue;
      }
      const double sign = z > upper ? 1 : -1;
      f[i] = d[i] * (x[i] - (sign > 0 ? upper : lower));
      if (!jacobian) continue;
      (*jacobian)(i, i) = d[i];
      if (slope > 0) (*jacobian)(i, block.reference) -= sign * slope * d[i];
    }
  }

  void ball(const RowBlock& block, const Eigen::VectorXd& x, const Eigen::VectorXd& r, Eigen::VectorXd& f,
            Eigen::MatrixXd* jacobian) const {
    const int s = block.first, n = block.count;
    const double step = d[s], normal = std::max(0.0, x[block.reference]), radius = block.coefficient * normal;
    const Eigen::VectorXd z = x.segment(s, n) - r.segment(s, n) / step;
    const double length = z.norm();
    if (length <= radius || length == 0) {
      f.segment(s, n) = r.segment(s, n);
      if (jacobian) jacobian->middleRows(s, n) = dense.a.middleRows(s, n);
      return;
    }
    const Eigen::VectorXd along = z / length;
    f.segment(s, n) = step * (x.segment(s, n) - radius * along);
    if (!jacobian) return;
    const Eigen::MatrixXd turn = (radius / length) * (Eigen::MatrixXd::Identity(n, n) - along * along.transpose());
    jacobian->middleRows(s, n) = turn * dense.a.middleRows(s, n);
    jacobian->block(s, s, n, n) += step * (Eigen::MatrixXd::Identity(n, n) - turn);
    if (x[block.reference] > 0) jacobian->block(s, block.reference, n, 1) -= step * block.coefficient * along;
  }
};

/// Projected Gauss-Seidel on the dense matrix.
void sweep(const NaturalMap& map, Eigen::VectorXd& x) {
  const std::span<double> all(x.data(), static_cast<std::size_t>(x.size()));
  for (const RowBlock& block : map.problem.blocks()) {
    for (int i = block.first; i < block.first + block.count; ++i) {
      const double r = map.dense.a.row(i).dot(x) + map.dense.q[i];
      x[i] -= r / map.d[i];
    }
    map.problem.project(block, all);
  }
}

RowSolveReport Newton::solve(const RowProblem& problem, std::span<double> u, std::span<double> multiplier,
                             const RowSolveOptions& options) {
  check_solve(problem, u, multiplier, options);
  RowSolveReport report;
  for (double x : u) {
    if (!std::isfinite(x)) return report.status = RowSolveStatus::not_finite, report;
  }
  const DenseRowProblem dense(problem, u);
  const NaturalMap map(problem, dense);
  Eigen::VectorXd x =
      Eigen::Map<const Eigen::VectorXd>(multiplier.data(), static_cast<Eigen::Index>(multiplier.size()));
  if (!x.allFinite() || !dense.q.allFinite()) return report.status = RowSolveStatus::not_finite, report;
  Eigen::VectorXd best = x;
  double best_norm = std::numeric_limits<double>::infinity();
  Eigen::MatrixXd jacobian;
  report.status = RowSolveStatus::too_many_iterations;
  for (int k = 0; k <= options.max_iterations && x.size() > 0; ++k) {
    const Eigen::VectorXd f = map.evaluate(x, &jacobian);
    const double norm = f.lpNorm<Eigen::Infinity>();
    if (norm < best_norm) best = x, best_norm = norm;
    if (norm <= options.tolerance || k == options.max_iterations) break;
    ++report.iterations;
    const Eigen::VectorXd step = -jacobian.completeOrthogonalDecomposition().solve(f);
    double length = 1;
    bool better = false;
    for (int half = 0; step.allFinite() && half < 8 && !better; ++half, length *= 0.5) {
      const Eigen::VectorXd trial = x + length * step;
      better = map.evaluate(trial, nullptr).squaredNorm() < (1 - 1e-4 * length) * f.squaredNorm();
      if (better) x = trial;
    }
    for (int s = 0; !better && s < 20; ++s) sweep(map, x);
  }
  std::copy(best.begin(), best.end(), multiplier.begin());
  start(problem, u, multiplier);
  report.residual = natural_residual(problem, u, multiplier);
  if (report.residual <= options.tolerance) report.status = RowSolveStatus::converged;
  return report;
}

}  // namespace

std::unique_ptr<RowSolver> make_row_newton() { return std::make_unique<Newton>(); }

}  // namespace tarsus
