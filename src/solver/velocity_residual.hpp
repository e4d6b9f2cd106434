// max |J v| Δt / scale, the velocity stage's measure, and the rounding that it cannot go under.
#pragma once

#include <span>

#include "tarsus/solver/constraint_solver.hpp"

namespace tarsus {

struct VelocityResidual {
  double value = 0.0;
  double floor = 0.0;  ///< what rounding of J and v leaves in the worst row
  int row = -1;
};

/// Also leaves J v in `jv` [nrow].
VelocityResidual velocity_residual(const Problem& problem, std::span<const double> jacobian, std::span<const double> v,
                                   double timestep, std::span<double> jv);
/// How a velocity stage ended: converged, at_rounding, too_many_iterations or not_finite. v becomes `trial` where that is
/// good.
void end_velocities(const VelocityResidual& residual, double tolerance, std::span<const double> trial,
                    std::span<double> v, SolveReport& report);

}  // namespace tarsus
