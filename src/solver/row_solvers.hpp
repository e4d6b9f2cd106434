// Functions that the row solvers' files share.
#pragma once

#include "tarsus/solver/row_solver.hpp"

namespace tarsus {

std::unique_ptr<RowSolver> make_gauss_seidel(bool symmetric, bool accelerate);

/// @throws ShapeError, ValueError
void check_solve(const RowProblem& problem, std::span<const double> u, std::span<const double> multiplier,
                 const RowSolveOptions& options);
/// λ ← P(λ), and u += Wᵀ λ. @return false if something is not finite; u is then unchanged
bool start(const RowProblem& problem, std::span<double> u, std::span<double> multiplier);

}  // namespace tarsus
