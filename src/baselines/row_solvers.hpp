// Factories of the solvers of row_solver.hpp, and what their files share.
#pragma once

#include "tarsus/baselines/row_solver.hpp"

namespace tarsus {

std::unique_ptr<RowSolver> make_gauss_seidel();
std::unique_ptr<RowSolver> make_jacobi();
std::unique_ptr<RowSolver> make_row_newton();
std::unique_ptr<RowSolver> make_pivoting();

/// @throws ShapeError, ValueError
void check_solve(const RowProblem& problem, std::span<const double> u, std::span<const double> multiplier,
                 const RowSolveOptions& options);
/// λ ← P(λ), and u += Wᵀ λ. @return false if something is not finite; u is then unchanged
bool start(const RowProblem& problem, std::span<double> u, std::span<double> multiplier);

}  // namespace tarsus
