// SHAKE and RATTLE row by row, as in the book.  [Tuckerman, eqs. 3.9.15 to 3.9.19; Ryckaert 1977; Andersen 1983]
//
//   positions   δλ̃_k = -σ_k(x) / (∇σ_k(x) M^-1 ∇σ_k(x0)ᵀ),  x += M^-1 ∇σ_k(x0)ᵀ δλ̃_k    each row in turn, until all
//   hold velocities  δμ̃_k = -J_k v / (J_k M^-1 J_kᵀ),              v += M^-1 J_kᵀ δμ̃_k
//
// Gauss-Seidel: a sweep costs O(nonzeros) and nothing is factored, but the number of sweeps grows with the square of a
// chain's length. A row is visited once a sweep (the book stays on it until it holds; the sweeps' number is the same
// and a visit costs less), and skipped while it holds. The velocity stage may be solved by matrix instead (3.9.19).
#pragma once

#include <vector>

#include "solver/newton.hpp"

namespace tarsus {

class ShakeSolver final : public ConstraintSolver {
 public:
  explicit ShakeSolver(bool velocities_by_matrix = false) : by_matrix_(velocities_by_matrix) {}
  std::string_view name() const override { return by_matrix_ ? "shake_matrix" : "shake"; }
  SolveReport solve_positions(const Problem& problem, const MassOperator& mass, std::span<const double> x0,
                              std::span<double> x, std::span<double> multiplier, const SolveOptions& options) override;
  SolveReport solve_velocities(const Problem& problem, const MassOperator& mass, std::span<const double> x,
                               std::span<double> v, std::span<double> multiplier, const SolveOptions& options) override;

 private:
  void prepare(const Problem& problem, const MassOperator& mass, std::span<const double> x);

  bool by_matrix_;
  Delassus rows_;
  NewtonSolver matrix_{true};
  std::vector<double> sigma_, jacobian_, gradient_, trial_, start_, move_;
};

}  // namespace tarsus
