// Solvers of the two constraint stages behind one interface, one file each.
// [Tuckerman, section 3.9; theory.md, section 5]
//
//   position stage   x = x' ⊞ M^-1 J(x0)ᵀ λ̃  with σ(x) = 0        λ̃ = (Δt²/2) λ, (3.9.13)
//   velocity stage   v = v' + M^-1 J(x)ᵀ μ̃    with J(x) v = 0      μ̃ = (Δt/2) μ,  (3.9.17)
//
// | name         | position stage                                  | velocity stage        | converges              |
// | newton       | Newton, J(x) M^-1 J(x0)ᵀ by a sparse factor     | sparse LDLᵀ           | quadratically          |
// | m_shake      | the same matrix, dense                          | dense LLᵀ             | quadratically, O(m³)   |
// | shake        | each row in turn (3.9.15)                       | each row in turn      | linearly               |
// | shake_matrix | each row in turn (3.9.15)                       | dense (3.9.19)        | linearly               |
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tarsus/solver/problem.hpp"

namespace tarsus {

struct SolveOptions {
  double tolerance = 1e-12;  ///< on max |σ|/scale, and on max |J v| Δt/scale; rounding bounds it from below
  int max_iterations = 0;    ///< 0: the solver's default (Newton 60 iterations, rows 100,000 sweeps)
  double timestep = 1.0;     ///< Δt, which makes velocities dimensionless; scales the multipliers in reports
};

enum class SolveStatus { converged, at_rounding, diverged, too_many_iterations, singular, not_finite };
const char* status_name(SolveStatus status);

/// Result of a solve. A failure is reported, not thrown, and leaves x (or v) unchanged.
struct SolveReport {
  SolveStatus status = SolveStatus::converged;
  int iterations = 0;      ///< Newton iterations or sweeps
  int factorizations = 0;  ///< number of these with a new matrix
  double residual = 0.0;   ///< largest dimensionless violation at the end
  double start_residual = 0.0;
  int worst_row = -1;        ///< the row of `residual`
  double pivot_ratio = 1.0;  ///< smallest pivot over its diagonal; near 0: rows are nearly dependent
  bool wrong_root = false;   ///< a row's gradient turned by more than 90° in one step: the mirrored solution
  bool ok() const { return status == SolveStatus::converged || status == SolveStatus::at_rounding; }
};

class ConstraintSolver {
 public:
  virtual ~ConstraintSolver() = default;
  virtual std::string_view name() const = 0;
  /// Position stage. x [nx] is x' on entry and satisfies the constraints on return; `multiplier` [nrow] is set to λ̃.
  /// @param x0 [nx] configuration of J(x0)  @throws ShapeError
  virtual SolveReport solve_positions(const Problem& problem, const MassOperator& mass, std::span<const double> x0,
                                      std::span<double> x, std::span<double> multiplier,
                                      const SolveOptions& options) = 0;
  /// Velocity stage. v [nv] is v' on entry and satisfies J(x) v = 0 on return; `multiplier` [nrow] is set to μ̃.
  /// @param x [nx]  @throws ShapeError
  virtual SolveReport solve_velocities(const Problem& problem, const MassOperator& mass, std::span<const double> x,
                                       std::span<double> v, std::span<double> multiplier,
                                       const SolveOptions& options) = 0;
};

/// The names in the table above.
std::span<const std::string_view> solver_names();
/// @throws ValueError for an unknown name, listing the known ones.
std::unique_ptr<ConstraintSolver> make_solver(std::string_view name);

/// Δt ω_max of the stiffness of the constraint forces, Σ λ_k ∇²σ_k, relative to the mass. Velocity Verlet is stable
/// below 2. The number is exact in the limit of a long straight chain and an upper bound otherwise. It needs a diagonal
/// mass (0 without one) and covers rows with known curvature only. @param multiplier [nrow] λ̃ of solve_positions()
double stability_number(const Problem& problem, const MassOperator& mass, std::span<const double> multiplier);

/// One sentence: status, the worst row in words, residuals.
std::string describe(const SolveReport& report, const Problem& problem);

}  // namespace tarsus
