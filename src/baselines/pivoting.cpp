// Complementary pivoting: Lemke's method on the dense problem, exact in finitely many pivots.
// [Cottle, Pang and Stone 1992, 4.4]
//
// The rows become  0 <= z ⊥ w = M z + q >= 0. Free rows are eliminated first. A row with a lower bound has
// λ = lower + z. A row with a finite upper bound or a box (λ = -μ λ_n + z, eq. 19) has a second unknown s >= 0, the
// multiplier of its upper bound, whose complement is room - z. O(m³). Only the limit of pivots stops cycling.
#include <algorithm>
#include <cmath>

#include "baselines/dense_rows.hpp"
#include "baselines/row_solvers.hpp"

namespace tarsus {

namespace {

class Pivoting final : public RowSolver {
 public:
  RowSolveReport solve(const RowProblem& problem, std::span<double> u, std::span<double> multiplier,
                       const RowSolveOptions& options) override;
};

/// λ = turn z + shift for the bounded rows, and the standard problem in (z, s).
struct StandardForm {
  std::vector<int> free, bounded, upper;  // rows; upper: indices into `bounded` of the rows with a second unknown
  Eigen::MatrixXd turn, m;
  Eigen::VectorXd shift, q;
  std::vector<double> room;  // [upper] upper - lower; 0 for boxes, whose room is in `turn`
  bool supported = true;
};

/// Determines the unknowns of each bounded row; sets everything but m and q.
StandardForm classify(const RowProblem& problem) {
  StandardForm form;
  std::vector<const RowBlock*> owner;
  std::vector<int> place(static_cast<std::size_t>(problem.nrow()), -1);
  for (const RowBlock& block : problem.blocks()) {
    if (block.cone == RowCone::ball && block.count > 1) form.supported = false;
    for (int row = block.first; row < block.first + block.count; ++row) {
      const RowNumbers& n = problem.numbers(row);
      if (block.cone == RowCone::interval && std::isinf(n.lower) && std::isinf(n.upper)) {
        form.free.push_back(row);
        continue;
      }
      if (block.cone != RowCone::interval && problem.numbers(block.reference).lower != 0) form.supported = false;
      place[static_cast<std::size_t>(row)] = static_cast<int>(form.bounded.size());
      form.bounded.push_back(row);
      owner.push_back(&block);
    }
  }
  const int n = static_cast<int>(form.bounded.size());
  form.turn.setIdentity(n, n);
  form.shift.setZero(n);
  for (int i = 0; i < n && form.supported; ++i) {
    const RowNumbers& numbers = problem.numbers(form.bounded[static_cast<std::size_t>(i)]);
    const RowBlock& block = *owner[static_cast<std::size_t>(i)];
    if (block.cone != RowCone::interval) {
      form.turn(i, place[static_cast<std::size_t>(block.reference)]) = -block.coefficient;
      form.upper.push_back(i);
      form.room.push_back(0);
    } else if (std::isinf(numbers.lower)) {
      form.turn(i, i) = -1;
      form.shift[i] = numbers.upper;
    } else {
      form.shift[i] = numbers.lower;
      if (std::isinf(numbers.upper)) continue;
      form.upper.push_back(i);
      form.room.push_back(numbers.upper - numbers.lower);
    }
  }
  return form;
}

/// Sets m and q. @return false if the free rows' matrix is singular
bool assemble(const DenseRowProblem& dense, StandardForm& form) {
  const int n = static_cast<int>(form.bounded.size()), more = static_cast<int>(form.upper.size());
  Eigen::MatrixXd s = dense.a(form.bounded, form.bounded);
  Eigen::VectorXd p = dense.q(form.bounded);
  if (!form.free.empty()) {
    const Eigen::MatrixXd ff = dense.a(form.free, form.free), fc = dense.a(form.free, form.bounded);
    const Eigen::LDLT<Eigen::MatrixXd> factor(ff);
    if (factor.info() != Eigen::Success || !(factor.rcond() > 1e-14)) return false;
    if (n > 0) s -= fc.transpose() * factor.solve(fc);
    if (n > 0) p -= fc.transpose() * factor.solve(dense.q(form.free));
  }
  const Eigen::VectorXd sign = form.turn.diagonal();
  form.m.setZero(n + more, n + more);
  form.q.setZero(n + more);
  form.m.topLeftCorner(n, n) = sign.asDiagonal() * s * form.turn;
  form.q.head(n) = sign.asDiagonal() * (s * form.shift + p);
  for (int k = 0; k < more; ++k) {
    const int i = form.upper[static_cast<std::size_t>(k)];
    form.m(i, n + k) = 1;
    form.m(n + k, i) = -1;
    form.m.row(n + k).head(n) -= 2 * (form.turn.row(i) - Eigen::RowVectorXd::Unit(n, i));
    form.q[n + k] = form.room[static_cast<std::size_t>(k)];
  }
  return true;
}

/// Lemke's method on the tableau of w = M z + q: columns w (n), z (n), covering variable, right side.
/// @return number of pivots, -1 for termination on a ray
int lemke(const Eigen::MatrixXd& m, const Eigen::VectorXd& q, Eigen::VectorXd& z, int max_pivots) {
  const int n = static_cast<int>(q.size()), cover = 2 * n, right = 2 * n + 1;
  z.setZero(n);
  if (n == 0 || q.minCoeff() >= 0) return 0;
  Eigen::MatrixXd table(n, 2 * n + 2);
  table << Eigen::MatrixXd::Identity(n, n), -m, -Eigen::VectorXd::Ones(n), q;
  std::vector<int> basis(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) basis[static_cast<std::size_t>(i)] = i;
  int row = 0, entering = cover;
  q.minCoeff(&row);
  for (int pivots = 0; pivots < max_pivots; ++pivots) {
    table.row(row) /= table(row, entering);
    for (int i = 0; i < n; ++i) {
      if (i != row && table(i, entering) != 0) table.row(i) -= table(i, entering) * table.row(row);
    }
    const int leaving = basis[static_cast<std::size_t>(row)];
    basis[static_cast<std::size_t>(row)] = entering;
    if (leaving == cover) {
      for (int i = 0; i < n; ++i) {
        const int b = basis[static_cast<std::size_t>(i)];
        if (b >= n && b < cover) z[b - n] = table(i, right);
      }
      return pivots + 1;
    }
    entering = leaving < n ? leaving + n : leaving - n;
    const double scale = table.col(entering).cwiseAbs().maxCoeff();
    double best = std::numeric_limits<double>::infinity();
    row = -1;
    for (int i = 0; i < n; ++i) {  // among ties the covering variable leaves first, then the largest pivot
      const double t = table(i, entering);
      if (t <= 1e-11 * scale) continue;
      const double ratio = table(i, right) / t, slack = 1e-12 * (1 + std::abs(best));
      const bool tie = row >= 0 && std::abs(ratio - best) <= slack;
      const bool first = tie && (basis[static_cast<std::size_t>(i)] == cover ||
                                 (basis[static_cast<std::size_t>(row)] != cover && t > table(row, entering)));
      if (row < 0 || (!tie && ratio < best) || first) row = i, best = std::min(best, ratio);
    }
    if (row < 0) return -1;
  }
  return -1;
}

RowSolveReport Pivoting::solve(const RowProblem& problem, std::span<double> u, std::span<double> multiplier,
                               const RowSolveOptions& options) {
  check_solve(problem, u, multiplier, options);
  RowSolveReport report;
  for (double x : u) {
    if (!std::isfinite(x)) return report.status = RowSolveStatus::not_finite, report;
  }
  StandardForm form = classify(problem);
  if (!form.supported) return report.status = RowSolveStatus::unsupported, report;
  const DenseRowProblem dense(problem, u);
  if (!assemble(dense, form)) return report.status = RowSolveStatus::no_solution, report;
  Eigen::VectorXd z;
  report.iterations = lemke(form.m, form.q, z, std::max(options.max_iterations, 50 * static_cast<int>(form.q.size())));
  if (report.iterations < 0) return report.iterations = 0, report.status = RowSolveStatus::no_solution, report;
  Eigen::VectorXd x = Eigen::VectorXd::Zero(problem.nrow());
  const auto n = static_cast<Eigen::Index>(form.bounded.size());
  const Eigen::VectorXd bounded = form.turn * z.head(n) + form.shift;
  for (Eigen::Index i = 0; i < n; ++i) x[form.bounded[static_cast<std::size_t>(i)]] = bounded[i];
  if (!form.free.empty()) {
    const Eigen::VectorXd rest = dense.q(form.free) + dense.a(form.free, form.bounded) * bounded;
    const Eigen::VectorXd solved = -dense.a(form.free, form.free).ldlt().solve(rest);
    for (std::size_t i = 0; i < form.free.size(); ++i) x[form.free[i]] = solved[static_cast<Eigen::Index>(i)];
  }
  std::copy(x.begin(), x.end(), multiplier.begin());
  start(problem, u, multiplier);
  report.residual = natural_residual(problem, u, multiplier);
  report.status =
      report.residual <= options.tolerance ? RowSolveStatus::converged : RowSolveStatus::too_many_iterations;
  return report;
}

}  // namespace

std::unique_ptr<RowSolver> make_pivoting() { return std::make_unique<Pivoting>(); }

}  // namespace tarsus
