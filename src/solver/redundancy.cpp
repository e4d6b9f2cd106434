#include "tarsus/solver/redundancy.hpp"

#include <random>

#include "tarsus/base/error.hpp"
#include "solver/delassus.hpp"

namespace tarsus {
namespace {

// A pivot that should vanish is left at about 1e-15 times the growth of the elimination; one that should not is at
// least the square of a small angle between rows. Rows closer to dependent than this cannot be solved for anyway.
constexpr double kThreshold = 1e-9;

std::vector<int> dependent_rows(const Problem& problem, const MassOperator& mass, std::span<const double> x) {
  std::vector<double> sigma(problem.nrow()), jacobian(problem.pattern().nonzeros());
  problem.evaluate(x, sigma, jacobian);
  Delassus delassus;
  delassus.analyze(problem.pattern(), mass, false);
  delassus.set_base(jacobian);
  return delassus.factor_symmetric_dropping(kThreshold).dependent;
}

}  // namespace

Redundancy find_redundant_rows(const Problem& problem, const MassOperator& mass, std::span<const double> x, double spread) {
  if (mass.inverse_diagonal().empty()) throw ValueError("mass", "not diagonal", "a diagonal mass operator");
  Redundancy found;
  found.dependent = dependent_rows(problem, mass, x);
  found.rank = problem.nrow() - static_cast<int>(found.dependent.size());
  if (found.dependent.empty()) return found;
  std::mt19937_64 generator(20240229);
  std::vector<double> moved(x.begin(), x.end()), step(problem.nv());
  for (double& value : step) value = spread * (static_cast<double>(generator() >> 11) * 0x1p-52 - 1.0);
  problem.retract(x, step, moved);
  found.singular_geometry = dependent_rows(problem, mass, moved).size() < found.dependent.size();
  return found;
}

}  // namespace tarsus
