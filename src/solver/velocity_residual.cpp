#include "solver/velocity_residual.hpp"

#include <cmath>
#include <limits>

namespace tarsus {

VelocityResidual velocity_residual(const Problem& problem, std::span<const double> jacobian, std::span<const double> v,
                                   double timestep, std::span<double> jv) {
  constexpr double kRounding = 64 * std::numeric_limits<double>::epsilon();
  const RowPattern& rows = problem.pattern();
  VelocityResidual worst;
  for (int k = 0; k < rows.nrow(); ++k) {
    double sum = 0, size = 0;
    for (int p = rows.start[k]; p < rows.start[k + 1]; ++p) {
      const double term = jacobian[p] * v[rows.column[p]];
      sum += term;
      size += std::abs(term);
    }
    jv[k] = sum;
    const double unit = std::abs(timestep) / problem.scale(k);
    const double value = std::abs(sum) * unit;
    if (!(value <= worst.value)) {
      worst = {std::isnan(value) ? std::numeric_limits<double>::infinity() : value, kRounding * size * unit, k};
    }
  }
  return worst;
}

SolveStatus velocity_status(const VelocityResidual& residual, double tolerance) {
  if (residual.value <= tolerance) return SolveStatus::converged;
  if (!std::isfinite(residual.value)) return SolveStatus::not_finite;
  return residual.value <= residual.floor ? SolveStatus::at_rounding : SolveStatus::too_many_iterations;
}

}  // namespace tarsus
