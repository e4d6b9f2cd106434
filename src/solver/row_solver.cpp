// Names, input checks and starting point of the row solvers (row_solver.hpp).
#include "tarsus/solver/row_solver.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "solver/row_solvers.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"

namespace tarsus {

namespace {

constexpr std::array<std::string_view, 3> kRowSolverNames = {"gauss_seidel", "gauss_seidel_symmetric",
                                                             "gauss_seidel_nesterov"};

}  // namespace

const char* name(RowSolveStatus status) {
  static constexpr const char* kNames[] = {"converged", "too many iterations", "unsupported bounds", "no solution",
                                           "not finite"};
  return kNames[int(status)];
}

std::span<const std::string_view> row_solver_names() { return kRowSolverNames; }

std::unique_ptr<RowSolver> make_row_solver(std::string_view name) {
  if (name == kRowSolverNames[0]) return make_gauss_seidel(false, false);
  if (name == kRowSolverNames[1]) return make_gauss_seidel(true, false);
  if (name == kRowSolverNames[2]) return make_gauss_seidel(true, true);
  std::string known;
  for (std::string_view n : kRowSolverNames) known += (known.empty() ? "" : ", ") + std::string(n);
  throw ValueError("solver", std::string(name), "one of " + known + " (and lanes, for worlds of free bodies)");
}

void check_solve(const RowProblem& problem, std::span<const double> u, std::span<const double> multiplier,
                 const RowSolveOptions& options) {
  check_size("u", u.size(), static_cast<std::size_t>(problem.nu()));
  check_size("multiplier", multiplier.size(), static_cast<std::size_t>(problem.nrow()));
  if (options.max_iterations < 1)
    throw ValueError("max_iterations", std::to_string(options.max_iterations), "at least 1");
  if (!(options.tolerance >= 0)) throw ValueError("tolerance", number_text(options.tolerance), "at least 0 m/s");
  if (!(options.relaxation > 0 && options.relaxation < 2))
    throw ValueError("relaxation", number_text(options.relaxation), "a number above 0 and below 2");
}

bool start(const RowProblem& problem, std::span<double> u, std::span<double> multiplier) {
  const auto finite = [](double x) { return std::isfinite(x); };
  if (!std::all_of(u.begin(), u.end(), finite) || !std::all_of(multiplier.begin(), multiplier.end(), finite))
    return false;
  for (const RowBlock& block : problem.blocks()) problem.project(block, multiplier);
  for (int row = 0; row < problem.nrow(); ++row) {
    const double x = multiplier[static_cast<std::size_t>(row)];
    if (x != 0) problem.apply(row, x, u);
  }
  return true;
}

}  // namespace tarsus
