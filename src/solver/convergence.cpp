// Convergence tests of the constraint solvers (convergence.hpp).
#include "solver/convergence.hpp"

#include <algorithm>
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
    if (!(value <= worst.value))
      worst = {std::isnan(value) ? std::numeric_limits<double>::infinity() : value, kRounding * size * unit, k};
  }
  return worst;
}

void end_velocities(const VelocityResidual& residual, double tolerance, std::span<const double> trial,
                    std::span<double> v, SolveReport& report) {
  report.residual = residual.value, report.worst_row = residual.row;
  report.status = residual.value <= tolerance        ? SolveStatus::converged
                  : !std::isfinite(residual.value)   ? SolveStatus::not_finite
                  : residual.value <= residual.floor ? SolveStatus::at_rounding
                                                     : SolveStatus::too_many_iterations;
  if (report.ok()) std::copy(trial.begin(), trial.end(), v.begin());
}

}  // namespace tarsus
