// Defaults and violations of Problem (problem.hpp).
#include "tarsus/solver/problem.hpp"

#include <cmath>
#include <limits>

namespace tarsus {

void Problem::evaluate(std::span<const double> x, std::span<double> sigma, std::span<double> jacobian) const {
  const RowPattern& rows = pattern();
  for (int k = 0; k < rows.nrow(); ++k) {
    const std::size_t from = rows.start[k], count = rows.start[k + 1] - rows.start[k];
    sigma[k] = evaluate_row(k, x, jacobian.empty() ? jacobian : jacobian.subspan(from, count));
  }
}

void Problem::retract(std::span<const double> x, std::span<const double> dv, std::span<double> out) const {
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = x[i] + dv[i];
}

Violation largest_violation(const Problem& problem, std::span<const double> sigma) {
  Violation worst;
  for (int k = 0; k < problem.nrow(); ++k) {
    const double value = std::abs(sigma[k]) / problem.scale(k);
    if (!(value <= worst.value)) worst = {std::isnan(value) ? std::numeric_limits<double>::infinity() : value, k};
  }
  return worst;
}

Violation largest_violation_at(const Problem& problem, std::span<const double> x) {
  std::vector<double> sigma(problem.nrow());
  problem.evaluate(x, sigma, {});
  return largest_violation(problem, sigma);
}

}  // namespace tarsus
