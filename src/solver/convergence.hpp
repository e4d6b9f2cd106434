// Convergence tests that the stages of constraint solvers share.
#pragma once

#include <span>

#include "tarsus/solver/constraint_solver.hpp"

namespace tarsus {

/// Whether a Newton iteration with an old matrix, which contracts the residual by `contraction`, needs more than two
/// further iterations. A new matrix is cheaper than these.
inline bool wants_new_matrix(double residual, double tolerance, double contraction) {
  return !(contraction < 1) || tolerance < residual * contraction * contraction;
}

/// The velocity stage's residual, max |J v| Δt / scale.
struct VelocityResidual {
  double value = 0.0;
  double floor = 0.0;  ///< rounding error of J v in the worst row
  int row = -1;
};

/// Computes the residual, and J v in `jv` [nrow].
VelocityResidual velocity_residual(const Problem& problem, std::span<const double> jacobian, std::span<const double> v,
                                   double timestep, std::span<double> jv);
/// Result of a velocity stage: converged, at_rounding, too_many_iterations or not_finite. v is set to `trial` on
/// success.
void end_velocities(const VelocityResidual& residual, double tolerance, std::span<const double> trial,
                    std::span<double> v, SolveReport& report);

}  // namespace tarsus
