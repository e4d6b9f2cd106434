// How far the stages of constraint solvers are from their end.
#pragma once

#include <span>

#include "tarsus/solver/constraint_solver.hpp"

namespace tarsus {

/// Whether more than two rounds of a Newton iteration with an old matrix, each of which contracts the residual by
/// `contraction`, are missing: a new matrix takes less time than they would.
inline bool wants_new_matrix(double residual, double tolerance, double contraction) {
  return !(contraction < 1) || tolerance < residual * contraction * contraction;
}

/// max |J v| Δt / scale, the velocity stage's measure.
struct VelocityResidual {
  double value = 0.0;
  double floor = 0.0;  ///< what rounding of J and v leaves in the worst row
  int row = -1;
};

/// Also leaves J v in `jv` [nrow].
VelocityResidual velocity_residual(const Problem& problem, std::span<const double> jacobian, std::span<const double> v,
                                   double timestep, std::span<double> jv);
/// How a velocity stage ended: converged, at_rounding, too_many_iterations or not_finite. v becomes `trial` where that
/// is good.
void end_velocities(const VelocityResidual& residual, double tolerance, std::span<const double> trial,
                    std::span<double> v, SolveReport& report);

}  // namespace tarsus
