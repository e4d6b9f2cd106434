// Solvers of RowProblem behind one interface. They compute λ and the u that belongs to it. No step uses them: they are
// what the solvers of the steps are compared with.
//
// | name         | method                                             | friction  | for        |
// | gauss_seidel | projected Gauss-Seidel, alg. 2.1 and 2.2           | box, ball | comparison |
// | jacobi       | projected Jacobi, damped by the Gershgorin bound   | box, ball | comparison |
// | newton       | semismooth Newton on λ = P(λ - r/d), dense         | box, ball | oracle, m³ |
// | pivoting     | Lemke's complementary pivoting, dense              | box       | oracle, m³ |
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tarsus/baselines/row_problem.hpp"

namespace tarsus {

struct RowSolveOptions {
  int max_iterations = 50;  ///< sweeps, Newton iterations or pivots; at least 1
  double tolerance = 1e-8;  ///< on the residual [m/s | rad/s], at least 0; 0: only max_iterations stops the solver
  double relaxation = 1;    ///< in (0, 2): above 1 over-relaxed
};

enum class RowSolveStatus {
  converged,            ///< the residual is within the tolerance
  too_many_iterations,  ///< max_iterations reached; the best iterate is returned
  unsupported,          ///< the solver does not support these bounds; nothing was changed
  no_solution,          ///< pivoting ended on a ray, or a singular system; nothing was changed
  not_finite,           ///< the input is not finite; nothing was changed
};
const char* name(RowSolveStatus status);

struct RowSolveReport {
  RowSolveStatus status = RowSolveStatus::converged;
  int iterations = 0;
  double residual = 0;  ///< natural_residual() of the returned λ [m/s | rad/s]
};

class RowSolver {
 public:
  virtual ~RowSolver() = default;
  /// Solves for λ and u.
  /// @param u [nu] in: unconstrained, WITHOUT the effect of `multiplier`; out: with the effect of the solution
  /// @param multiplier [nrow] in: initial values (zeros, or the last step's as a warm start); out: the solution
  /// @throws ShapeError, ValueError for options out of range
  virtual RowSolveReport solve(const RowProblem& problem, std::span<double> u, std::span<double> multiplier,
                               const RowSolveOptions& options) = 0;
};

/// The names in the table above.
std::span<const std::string_view> row_solver_names();
/// @throws ValueError for an unknown name, listing the known ones
std::unique_ptr<RowSolver> make_row_solver(std::string_view name);

}  // namespace tarsus
