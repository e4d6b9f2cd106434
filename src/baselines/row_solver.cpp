// Names, input checks and starting point of the row solvers.
#include "tarsus/baselines/row_solver.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>

#include "baselines/row_solvers.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"

namespace tarsus {

namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<RowSolver> (*make)();
};
constexpr Entry kSolvers[] = {{"gauss_seidel", make_gauss_seidel},
                              {"jacobi", make_jacobi},
                              {"newton", make_row_newton},
                              {"pivoting", make_pivoting}};

}  // namespace

const char* name(RowSolveStatus status) {
  static constexpr const char* kNames[] = {"converged", "too many iterations", "unsupported bounds", "no solution",
                                           "not finite"};
  return kNames[int(status)];
}

std::span<const std::string_view> row_solver_names() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, std::size(kSolvers)> names;
    std::ranges::transform(kSolvers, names.begin(), &Entry::name);
    return names;
  }();
  return kNames;
}

std::unique_ptr<RowSolver> make_row_solver(std::string_view name) {
  std::string known;
  for (const Entry& entry : kSolvers) {
    if (entry.name == name) return entry.make();
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw ValueError("solver", std::string(name), "one of " + known);
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
