// Names and reports of the constraint solvers, and the stability number of their multipliers (constraint_solver.hpp).
#include "tarsus/solver/constraint_solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "solver/newton.hpp"
#include "tarsus/base/error.hpp"

namespace tarsus {
namespace {

constexpr std::array<std::string_view, 4> kNames = {"newton", "m_shake", "shake", "shake_matrix"};

}  // namespace

const char* status_name(SolveStatus status) {
  static constexpr const char* kStatusNames[] = {
      "converged", "converged to rounding", "diverged", "too many iterations", "singular", "not finite"};
  return kStatusNames[int(status)];
}

std::span<const std::string_view> solver_names() { return kNames; }

std::unique_ptr<ConstraintSolver> make_solver(std::string_view name) {
  if (name == "newton") return std::make_unique<NewtonSolver>(false);
  if (name == "m_shake") return std::make_unique<NewtonSolver>(true);
  if (name == "shake") return make_shake(false);
  if (name == "shake_matrix") return make_shake(true);
  throw ValueError("solver", std::string(name), fmt::format("one of {}", fmt::join(kNames, ", ")));
}

double stability_number(const Problem& problem, const MassOperator& mass, std::span<const double> multiplier) {
  const std::span<const double> inverse = mass.inverse_diagonal();
  if (inverse.empty()) return 0.0;
  // Δt² K = 2 Σ λ̃_k ∇²σ_k. For distances K is a weighted graph Laplacian, whose largest eigenvalue against the mass is
  // at most max over edges (i, j) of D_i + D_j, with D_i = (1/m_i) Σ |weights at i|.
  const RowPattern& rows = problem.pattern();
  std::vector<double> at(inverse.size(), 0.0);
  for (int k = 0; k < rows.nrow(); ++k) {
    const double weight = 2 * std::abs(multiplier[k]) * problem.curvature(k);
    for (int p = rows.start[k]; p < rows.start[k + 1]; ++p) at[rows.column[p]] += weight * inverse[rows.column[p]];
  }
  double largest = 0;
  for (int k = 0; k < rows.nrow(); ++k) {
    double sum = 0;
    for (int p = rows.start[k]; p < rows.start[k + 1]; ++p) sum += at[rows.column[p]];
    largest = std::max(largest, sum / 3);  // the three coordinates of a particle contribute equally
  }
  return std::sqrt(largest);
}

std::string describe(const SolveReport& report, const Problem& problem) {
  std::string text = fmt::format("{} after {} iterations: largest violation {:.3g}", status_name(report.status),
                                 report.iterations, report.residual);
  if (report.worst_row >= 0) text += " in " + problem.describe(report.worst_row);
  text += fmt::format(", smallest pivot ratio {:.2g}", report.pivot_ratio);
  if (report.wrong_root) text += "; a constraint jumped to its mirrored solution: take a smaller timestep";
  return text;
}

}  // namespace tarsus
