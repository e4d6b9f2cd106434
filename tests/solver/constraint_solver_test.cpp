// Solvers on rows that are independent of particles: failures, reports, redundancy.
#include "tarsus/solver/constraint_solver.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tarsus/base/error.hpp"
#include "tarsus/solver/redundancy.hpp"

namespace tarsus {
namespace {

/// A point in space on spheres about the origin: σ = (|x|² - r²)/2 for each radius.
class Spheres final : public Problem {
 public:
  explicit Spheres(std::vector<double> radii) : radii_(std::move(radii)) {
    for (std::size_t k = 0; k < radii_.size(); ++k) {
      pattern_.column.insert(pattern_.column.end(), {0, 1, 2});
      pattern_.start.push_back(pattern_.nonzeros());
    }
  }
  int nx() const override { return 3; }
  int nv() const override { return 3; }
  const RowPattern& pattern() const override { return pattern_; }
  double evaluate_row(int row, std::span<const double> x, std::span<double> gradient) const override {
    for (std::size_t c = 0; c < gradient.size(); ++c) gradient[c] = x[c];
    return 0.5 * (x[0] * x[0] + x[1] * x[1] + x[2] * x[2] - radii_[row] * radii_[row]);
  }
  double scale(int row) const override { return radii_[row] * radii_[row]; }
  double rounding_floor(int, std::span<const double>) const override { return 1e-15; }
  std::string describe(int row) const override { return "sphere " + std::to_string(row); }
  double curvature(int) const override { return 1; }

 private:
  std::vector<double> radii_;
  RowPattern pattern_;
};

class Solvers : public testing::TestWithParam<std::string_view> {};

TEST_P(Solvers, ConvergeOnOneRow) {
  const Spheres problem({1.0});
  const DiagonalMass mass({1, 2, 3});
  const std::vector<double> x0{0.6, 0.8, 0.0};
  std::vector<double> x{0.7, 0.75, 0.1}, v{1, 1, 1}, lambda(1), mu(1);
  const auto solver = make_solver(GetParam());
  const SolveReport position = solver->solve_positions(problem, mass, x0, x, lambda, {.tolerance = 1e-13});
  ASSERT_TRUE(position.ok()) << describe(position, problem);
  EXPECT_FALSE(position.wrong_root);
  EXPECT_LE(largest_violation_at(problem, x).value, 1e-13);
  ASSERT_TRUE(solver->solve_velocities(problem, mass, x, v, mu, {}).ok());
  EXPECT_NEAR(x[0] * v[0] + x[1] * v[1] + x[2] * v[2], 0.0, 1e-12);
}

TEST_P(Solvers, FailureLeavesTheStateAndNamesTheRow) {
  const DiagonalMass mass({1, 1, 1});
  const auto solver = make_solver(GetParam());
  const std::vector<double> x0{1, 0, 0}, far{0, 5, 0};
  const auto expect_failure = [&](const Spheres& problem, const std::vector<double>& start) {
    std::vector<double> x = start, lambda(problem.nrow(), 7.0);
    const SolveReport report = solver->solve_positions(problem, mass, x0, x, lambda, {.max_iterations = 50});
    EXPECT_FALSE(report.ok()) << describe(report, problem);
    EXPECT_GE(report.worst_row, 0);
    EXPECT_NE(describe(report, problem).find("sphere"), std::string::npos);
    for (int c = 0; c < 3; ++c) EXPECT_TRUE(x[c] == start[c] || std::isnan(start[c]));
  };
  expect_failure(Spheres({1.0}), far);                 // no point x' + s x0 is on the sphere
  expect_failure(Spheres({1.0, 2.0}), {1.1, 0.1, 0});  // contradiction
  expect_failure(Spheres({1.0}), {std::nan(""), 0, 0});
}

TEST_P(Solvers, AMasslessRowIsSingularNotNan) {
  const Spheres problem({1.0});
  const DiagonalMass mass({0, 0, 0});
  std::vector<double> x{0.9, 0, 0}, v{1, 0, 0}, lambda(1), mu(1);
  const std::vector<double> x0{1, 0, 0};
  const auto solver = make_solver(GetParam());
  EXPECT_EQ(solver->solve_positions(problem, mass, x0, x, lambda, {}).status, SolveStatus::singular);
  EXPECT_EQ(solver->solve_velocities(problem, mass, x0, v, mu, {}).status, SolveStatus::singular);
  EXPECT_EQ(x[0], 0.9);
}

TEST_P(Solvers, TheMirroredSolutionIsFlagged) {
  const Spheres problem({1.0});
  const DiagonalMass mass({1, 1, 1});
  const std::vector<double> x0{1, 0, 0};
  std::vector<double> x{-1.01, 0.0, 0}, lambda(1);  // half a turn in one step
  const SolveReport report = make_solver(GetParam())->solve_positions(problem, mass, x0, x, lambda, {});
  if (report.ok()) {
    EXPECT_TRUE(report.wrong_root);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Solvers, testing::ValuesIn(solver_names().begin(), solver_names().end()),
                         [](const auto& param_info) { return std::string(param_info.param); });

TEST(Redundancy, NamesTheDependentRow) {
  const Spheres problem({1.0, 1.0});
  const DiagonalMass mass({1, 1, 1});
  const std::vector<double> x{1, 0, 0};
  const Redundancy found = find_redundant_rows(problem, mass, x, 0.1);
  EXPECT_EQ(found.rank, 1);
  EXPECT_EQ(found.dependent, std::vector<int>{1});
  EXPECT_FALSE(found.singular_geometry);
}

}  // namespace
}  // namespace tarsus
