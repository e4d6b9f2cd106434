#include "tarsus/baselines/row_solvers.hpp"

#include "baselines/dense_rows.hpp"

namespace tarsus {

std::span<const std::string_view> all_row_solver_names() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names(row_solver_names().begin(), row_solver_names().end());
    names.insert(names.end(), {"jacobi", "newton", "pivoting"});
    return names;
  }();
  return kNames;
}

std::unique_ptr<RowSolver> make_any_row_solver(std::string_view name) {
  if (name == "jacobi") return make_jacobi();
  if (name == "newton") return make_row_newton();
  if (name == "pivoting") return make_pivoting();
  return make_row_solver(name);
}

}  // namespace tarsus
