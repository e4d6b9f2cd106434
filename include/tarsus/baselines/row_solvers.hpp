// Row solvers that the step does not use, for comparison with those of solver/row_solver.hpp:
//
// | name     | method                                           | friction  | for        |
// | jacobi   | projected Jacobi, damped by the Gershgorin bound | box, ball | comparison |
// | newton   | semismooth Newton on λ = P(λ - r/d), dense       | box, ball | oracle, m³ |
// | pivoting | Lemke's complementary pivoting, dense            | box       | oracle, m³ |
#pragma once

#include "tarsus/solver/row_solver.hpp"

namespace tarsus {

/// row_solver_names(), then the names in the table above.
std::span<const std::string_view> all_row_solver_names();
/// @throws ValueError for an unknown name, listing those of row_solver_names()
std::unique_ptr<RowSolver> make_any_row_solver(std::string_view name);

}  // namespace tarsus
