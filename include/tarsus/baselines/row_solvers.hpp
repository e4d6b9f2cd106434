// Solvers of rows that no step uses, beside those of solver/row_solver.hpp: what these are compared with.
//
// | name     | method                                           | friction  | for        |
// | jacobi   | projected Jacobi, damped by the Gershgorin bound | box, ball | comparing  |
// | newton   | semismooth Newton on λ = P(λ - r/d), dense       | box, ball | oracle, m³ |
// | pivoting | Lemke's complementary pivoting, dense            | box       | oracle, m³ |
#pragma once

#include "tarsus/solver/row_solver.hpp"

namespace tarsus {

/// row_solver_names(), then those of the table above.
std::span<const std::string_view> all_row_solver_names();
/// @throws ValueError for an unknown name, listing those of row_solver_names()
std::unique_ptr<RowSolver> make_any_row_solver(std::string_view name);

}  // namespace tarsus
