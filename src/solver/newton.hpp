// Newton's method on all rows at once: the default solver, and M-SHAKE as its dense variant.
// [theory.md, section 5; Kräutler 2001]
//
// Position stage: A δ = σ(x) with A = J(x) M^-1 J(x0)ᵀ, λ̃ -= δ, x = x' ⊞ M^-1 J(x0)ᵀ λ̃. The first iteration reuses
// the factor of J(x0) M^-1 J(x0)ᵀ from the last velocity stage, if that was at x0. This is the chord method; its
// contraction is the angle by which rows turn in a step. If it needs more than two further iterations, A is formed and
// factored at the present x. M-SHAKE forms the dense A in each iteration. An iteration that increases the violation is
// halved.
#pragma once

#include <vector>

#include "solver/delassus.hpp"
#include "tarsus/solver/constraint_solver.hpp"

namespace tarsus {

class NewtonSolver final : public ConstraintSolver {
 public:
  /// `dense`: M-SHAKE.
  explicit NewtonSolver(bool dense = false) : dense_(dense) {}
  std::string_view name() const override { return dense_ ? "m_shake" : "newton"; }
  SolveReport solve_positions(const Problem& problem, const MassOperator& mass, std::span<const double> x0,
                              std::span<double> x, std::span<double> multiplier, const SolveOptions& options) override;
  SolveReport solve_velocities(const Problem& problem, const MassOperator& mass, std::span<const double> x,
                               std::span<double> v, std::span<double> multiplier, const SolveOptions& options) override;

 private:
  void prepare(const Problem& problem, const MassOperator& mass);

  bool dense_;
  Delassus delassus_;
  std::vector<double> factored_at_;  // x of the present symmetric factor; empty if there is none
  PivotReport pivots_;
  std::vector<double> sigma_, jacobian_, delta_, total_, trial_, start_, move_;
};

/// SHAKE and RATTLE row by row; shake.cpp.
std::unique_ptr<ConstraintSolver> make_shake(bool velocities_by_matrix);

}  // namespace tarsus
