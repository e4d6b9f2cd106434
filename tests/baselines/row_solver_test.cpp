// Every row solver on every kind of problem, in one table: natural residuals, and agreement between the solvers.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>
#include <functional>
#include <random>

#include "support/dense_solve.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/baselines/row_solver.hpp"

namespace tarsus {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

struct Case {
  RowProblem problem;
  std::vector<double> u;
};

using Maker = std::function<Case(unsigned)>;

double uniform(std::mt19937& engine, double from = -1, double to = 1) {
  return from + (to - from) * double(engine()) / 4294967295.0;
}

/// A row on `entries` of the nu coordinates.
int add_random_row(RowProblem& p, std::mt19937& engine, int entries, const RowNumbers& numbers) {
  std::vector<int> columns;
  std::vector<double> values;
  for (int k = 0; k < entries; ++k)
    columns.push_back(int(engine() % unsigned(p.nu()))), values.push_back(uniform(engine));
  return p.add_row(columns, values, numbers);
}

Case random_case(unsigned seed, bool bilateral, bool intervals, RowCone friction, int tangents, double compliance) {
  std::mt19937 engine(seed);
  Case c;
  std::vector<double> inverse_mass(40);
  for (double& x : inverse_mass) x = uniform(engine, 0.2, 2);
  c.problem = RowProblem(inverse_mass);
  for (int i = 0; i < 40; ++i) c.u.push_back(uniform(engine, -3, 3));
  for (int i = 0; i < 8; ++i) {
    const double b = uniform(engine);
    if (bilateral) {
      c.problem.add_block(RowCone::interval);
      add_random_row(c.problem, engine, 5, {compliance, b, -kInf, kInf});
    }
    if (intervals) {
      c.problem.add_block(RowCone::interval);
      add_random_row(c.problem, engine, 5, {compliance, uniform(engine), -0.2, 0.1});
      c.problem.add_block(RowCone::interval);
      add_random_row(c.problem, engine, 5, {compliance, uniform(engine), -kInf, 0});
    }
    c.problem.add_block(RowCone::interval);
    const int normal = add_random_row(c.problem, engine, 5, {compliance, uniform(engine), 0, kInf});
    if (tangents == 0) continue;
    c.problem.add_block(friction, normal, 0.4);
    for (int t = 0; t < tangents; ++t) add_random_row(c.problem, engine, 5, {0, 0, 0, 0});
  }
  return c;
}

/// n equal particles stacked on the floor and pushed sideways: normal rows, and a disc or box for two tangents.
Case column(int n, RowCone cone) {
  Case c;
  c.problem = RowProblem(std::vector<double>(std::size_t(3 * n), 0.5));
  std::mt19937 engine(3);
  for (int i = 0; i < n; ++i) {
    for (int axis = 0; axis < 3; ++axis) c.u.push_back(2 * (axis < 2 ? uniform(engine, -0.3, 0.6) : -9.81 / 60));
    const auto row = [&](int axis, const RowNumbers& numbers) {
      const std::vector<int> both = {3 * i + axis, 3 * i - 3 + axis};
      const std::vector<double> values = {1, -1};
      const std::size_t used = i == 0 ? 1 : 2;
      return c.problem.add_row(std::span(both).first(used), std::span(values).first(used), numbers);
    };
    c.problem.add_block(RowCone::interval);
    const int normal = row(2, {1e-3, 0, 0, kInf});
    c.problem.add_block(cone, normal, 0.5);
    row(0, {}), row(1, {});
  }
  return c;
}

struct NamedCase {
  const char* name;
  Maker make;
};

std::vector<NamedCase> cases() {
  return {
      {"bilateral", [](unsigned s) { return random_case(s, true, false, RowCone::box, 0, 1e-2); }},
      {"intervals", [](unsigned s) { return random_case(s, true, true, RowCone::box, 0, 1e-2); }},
      {"box friction", [](unsigned s) { return random_case(s, false, false, RowCone::box, 2, 1e-2); }},
      {"disc friction", [](unsigned s) { return random_case(s, false, false, RowCone::ball, 2, 1e-2); }},
      {"ball of three", [](unsigned s) { return random_case(s, true, false, RowCone::ball, 3, 1e-2); }},
      {"column, box", [](unsigned) { return column(6, RowCone::box); }},
      {"column, disc", [](unsigned) { return column(6, RowCone::ball); }},
  };
}

/// The parts of the natural residual.  [theory.md, section 4: complementarity at the solution]
struct Complementarity {
  double penetration_speed = 0;  ///< largest -r of a row at or above its lower bound that could push (w >= 0 broken)
  double negative = 0;           ///< largest -λ_n
  double product = 0;            ///< largest λ_n w
  double cone_excess = 0;        ///< largest ‖λ_t‖ - μ λ_n
  double misalignment = 0;  ///< largest ‖r_t‖ ‖λ_t‖ + r_t · λ_t: friction that does not oppose the sliding
};

Complementarity complementarity(const RowProblem& problem, std::span<const double> u,
                                std::span<const double> multiplier) {
  Complementarity c;
  for (const RowBlock& block : problem.blocks()) {
    double push = 0, slide = 0, along = 0;
    for (int row = block.first; row < block.first + block.count; ++row) {
      const double x = multiplier[std::size_t(row)], r = problem.residual(row, u, x);
      const RowNumbers& n = problem.numbers(row);
      if (block.cone == RowCone::interval && n.lower == 0) {
        c.penetration_speed = std::max(c.penetration_speed, x < n.upper ? -r : 0);
        c.negative = std::max(c.negative, -x);
        c.product = std::max(c.product, std::abs(x * r));
      }
      push += x * x, slide += r * r, along += x * r;
    }
    if (block.cone != RowCone::ball) continue;
    const double radius = block.coefficient * std::max(0.0, multiplier[std::size_t(block.reference)]);
    c.cone_excess = std::max(c.cone_excess, std::sqrt(push) - radius);
    c.misalignment = std::max(c.misalignment, std::sqrt(push * slide) + along);
  }
  return c;
}

TEST(RowSolver, EverySolverReachesItsToleranceOnEveryCase) {
  int solved = 0;
  for (const NamedCase& named : cases()) {
    for (unsigned seed = 1; seed <= 8; ++seed) {
      const Case c = named.make(seed);
      for (std::string_view solver : row_solver_names()) {
        SCOPED_TRACE(std::string(named.name) + ", " + std::string(solver) + ", seed " + std::to_string(seed));
        std::vector<double> u = c.u, x(std::size_t(c.problem.nrow()), 0.0);
        const RowSolveReport report = make_row_solver(solver)->solve(
            c.problem, u, x, {.max_iterations = solver == "newton" ? 200 : 200000, .tolerance = 1e-9});
        if (report.status == RowSolveStatus::unsupported) {
          EXPECT_EQ(solver, "pivoting");
          EXPECT_EQ(u, c.u);
          continue;
        }
        ++solved;
        ASSERT_EQ(report.status, RowSolveStatus::converged) << name(report.status) << " at " << report.residual;
        EXPECT_LE(report.residual, 1e-9);
        // u recomputed from λ, and complementarity by its definition.
        std::vector<double> again = c.u;
        for (int i = 0; i < c.problem.nrow(); ++i) c.problem.apply(i, x[std::size_t(i)], again);
        for (std::size_t i = 0; i < u.size(); ++i) ASSERT_NEAR(u[i], again[i], 1e-9);
        const Complementarity at = complementarity(c.problem, again, x);
        EXPECT_LT(at.penetration_speed, 3e-9);
        EXPECT_LE(at.negative, 0);
        EXPECT_LT(at.product, 1e-7);
        EXPECT_LT(at.cone_excess, 1e-9);
        EXPECT_LT(at.misalignment, 1e-7);
      }
    }
  }
  EXPECT_EQ(solved, 7 * 8 * 3 + 4 * 8);  // pivoting: the cases without discs
}

TEST(RowSolver, AgreeWhereTheSolutionIsUnique) {
  // Bilateral and interval rows with Σ > 0 give a strictly convex problem with one solution. Discs on a column are
  // compared with Newton's method.
  for (const NamedCase& named : {cases()[0], cases()[1], cases()[6]}) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
      const Case c = named.make(seed);
      std::vector<double> reference;
      for (std::string_view solver : {"newton", "gauss_seidel", "jacobi"}) {
        std::vector<double> u = c.u, x(std::size_t(c.problem.nrow()), 0.0);
        make_row_solver(solver)->solve(c.problem, u, x, {.max_iterations = 200000, .tolerance = 1e-10});
        if (reference.empty()) reference = x;
        for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], reference[i], 1e-6) << named.name << " " << solver;
      }
    }
  }
}

TEST(RowSolver, DenseLinearSolveOfBilateralRows) {
  const Case c = random_case(5, true, false, RowCone::box, 0, 1e-2);
  // The bilateral rows alone: extract them and solve (W D⁻¹ Wᵀ + Σ) λ = b - W D⁻¹ u with Eigen.
  RowProblem p{std::vector<double>(c.problem.inverse_mass().begin(), c.problem.inverse_mass().end())};
  for (int i = 0; i < c.problem.nrow(); ++i) {
    if (std::isfinite(c.problem.numbers(i).upper) || std::isfinite(c.problem.numbers(i).lower)) continue;
    p.add_block(RowCone::interval);
    p.add_row(c.problem.columns(i), c.problem.effect(i), c.problem.numbers(i));
  }
  const int m = p.nrow();
  ASSERT_EQ(m, 8);
  Eigen::MatrixXd w = Eigen::MatrixXd::Zero(m, p.nu());
  Eigen::VectorXd b(m), sigma(m);
  for (int i = 0; i < m; ++i) {
    for (std::size_t k = 0; k < p.columns(i).size(); ++k) w(i, p.columns(i)[k]) += p.effect(i)[k];
    b[i] = p.numbers(i).target, sigma[i] = p.numbers(i).compliance;
  }
  const Eigen::VectorXd inverse = Eigen::Map<const Eigen::VectorXd>(p.inverse_mass().data(), p.nu());
  const Eigen::VectorXd u0 = Eigen::Map<const Eigen::VectorXd>(c.u.data(), p.nu());
  Eigen::MatrixXd a = w * inverse.asDiagonal() * w.transpose();
  a.diagonal() += sigma;
  const Eigen::VectorXd direct = test::spd_solve(a, b - w * inverse.asDiagonal() * u0);
  for (std::string_view solver : row_solver_names()) {
    std::vector<double> u = c.u, x(std::size_t(m), 0.0);
    make_row_solver(solver)->solve(p, u, x, {.max_iterations = 100000, .tolerance = 1e-12});
    for (int i = 0; i < m; ++i) EXPECT_NEAR(x[std::size_t(i)], direct[i], 1e-8) << solver;
  }
}

TEST(RowSolver, ColumnCarriesItsWeightAndFrictionOpposesSliding) {
  // Closed form: contact i of n (counted from the floor, from 0) carries (n - i) m g h.
  const int n = 6;
  const Case c = column(n, RowCone::ball);
  std::vector<double> u = c.u, x(std::size_t(c.problem.nrow()), 0.0);
  make_row_solver("newton")->solve(c.problem, u, x, {.max_iterations = 100, .tolerance = 1e-12});
  for (int i = 0; i < n; ++i) {
    // Σ > 0 lets each contact yield slightly, v = -Σ λ. The exact recursion below sums the contributions.
    double carried = 0;
    for (int j = i; j < n; ++j) carried += 2 * 9.81 / 60;
    EXPECT_NEAR(x[std::size_t(3 * i)], carried, 0.05 * carried);
  }
  EXPECT_LT(complementarity(c.problem, u, x).misalignment, 1e-10);
}

TEST(RowSolver, ResidualFallsWithSweeps) {
  for (const NamedCase& named : cases()) {
    const Case c = named.make(2);
    double last = kInf;
    for (int sweeps : {1, 10, 100, 1000}) {
      std::vector<double> u = c.u, x(std::size_t(c.problem.nrow()), 0.0);
      const RowSolveReport r =
          make_row_solver("gauss_seidel")->solve(c.problem, u, x, {.max_iterations = sweeps, .tolerance = 0});
      // With tolerance zero only an exact fixed point may stop earlier.
      EXPECT_TRUE(r.iterations == sweeps || r.residual == 0);
      EXPECT_LT(r.residual, std::max(last, 1e-12)) << named.name << " " << sweeps;
      last = r.residual;
    }
    EXPECT_LT(last, 1e-6) << named.name;
  }
}

TEST(RowSolver, OverRelaxationReachesTheSameAnswer) {
  const Case c = random_case(9, true, true, RowCone::box, 0, 1e-2);
  std::vector<double> reference(std::size_t(c.problem.nrow()), 0.0), u = c.u;
  make_row_solver("newton")->solve(c.problem, u, reference, {.max_iterations = 100, .tolerance = 1e-12});
  for (const double relaxation : {0.7, 1.4}) {
    std::vector<double> v = c.u, x(reference.size(), 0.0);
    const RowSolveReport r =
        make_row_solver("gauss_seidel")
            ->solve(c.problem, v, x, {.max_iterations = 100000, .tolerance = 1e-11, .relaxation = relaxation});
    EXPECT_EQ(r.status, RowSolveStatus::converged) << relaxation;
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], reference[i], 1e-7);
  }
}

TEST(RowSolver, WarmStartAtTheSolutionNeedsOneSweep) {
  const Case c = column(20, RowCone::ball);
  std::vector<double> u = c.u, x(std::size_t(c.problem.nrow()), 0.0);
  make_row_solver("gauss_seidel")->solve(c.problem, u, x, {.max_iterations = 100000, .tolerance = 1e-10});
  std::vector<double> v = c.u, y = x;
  const RowSolveReport r =
      make_row_solver("gauss_seidel")->solve(c.problem, v, y, {.max_iterations = 100, .tolerance = 1e-9});
  EXPECT_LE(r.iterations, 2);
  for (std::size_t i = 0; i < u.size(); ++i) EXPECT_NEAR(u[i], v[i], 1e-8);
}

TEST(RowSolver, MassOfATreeThroughItsFactors) {
  // M̂ = L D Lᵀ dense and random: rows W = J L⁻ᵀ against the dense solution with M̂⁻¹.
  std::mt19937 engine(4);
  const int n = 7, m = 4;
  Eigen::MatrixXd lower = Eigen::MatrixXd::Identity(n, n), j(m, n);
  Eigen::VectorXd d(n), v(n), b(m);
  for (int i = 0; i < n; ++i) {
    for (int k = 0; k < i; ++k) lower(i, k) = uniform(engine);
    d[i] = uniform(engine, 0.5, 3), v[i] = uniform(engine);
  }
  for (int i = 0; i < m; ++i) {
    for (int k = 0; k < n; ++k) j(i, k) = uniform(engine);
    b[i] = uniform(engine);
  }
  const Eigen::MatrixXd mass = lower * d.asDiagonal() * lower.transpose();
  const Eigen::MatrixXd w = lower.triangularView<Eigen::Lower>().solve(j.transpose()).transpose();
  std::vector<double> inverse(std::size_t(n), 0.0), u(std::size_t(n), 0.0), x(std::size_t(m), 0.0);
  const Eigen::VectorXd u0 = lower.triangularView<Eigen::Lower>().solve(mass * v);
  for (int i = 0; i < n; ++i) inverse[std::size_t(i)] = 1 / d[i], u[std::size_t(i)] = u0[i];
  RowProblem p(inverse);
  std::vector<int> columns;
  for (int k = 0; k < n; ++k) columns.push_back(k);
  for (int i = 0; i < m; ++i) {
    p.add_block(RowCone::interval);
    std::vector<double> row;
    for (int k = 0; k < n; ++k) row.push_back(w(i, k));
    p.add_row(columns, row, {0.1, b[i], -kInf, kInf});
  }
  make_row_solver("gauss_seidel")->solve(p, u, x, {.max_iterations = 100000, .tolerance = 1e-13});
  const Eigen::MatrixXd a = j * mass.inverse() * j.transpose() + 0.1 * Eigen::MatrixXd::Identity(m, m);
  const Eigen::VectorXd lambda = test::spd_solve(a, b - j * v), after = v + mass.inverse() * j.transpose() * lambda;
  const Eigen::VectorXd ours = lower.transpose().triangularView<Eigen::Upper>().solve(
      Eigen::VectorXd(Eigen::Map<Eigen::VectorXd>(u.data(), n).cwiseQuotient(d)));
  EXPECT_LT((ours - after).norm(), 1e-9);
}

TEST(RowSolver, BadInputIsRefusedAndIdleRowsGetNothing) {
  Case c = column(3, RowCone::ball);
  std::vector<double> x(std::size_t(c.problem.nrow()), 0.0), short_x(2);
  for (std::string_view solver : row_solver_names()) {
    auto s = make_row_solver(solver);
    EXPECT_THROW(s->solve(c.problem, c.u, short_x, {}), ShapeError);
    EXPECT_THROW(s->solve(c.problem, c.u, x, {.max_iterations = 0}), ValueError);
    EXPECT_THROW(s->solve(c.problem, c.u, x, {.relaxation = 2}), ValueError);
    EXPECT_THROW(s->solve(c.problem, c.u, x, {.tolerance = -1}), ValueError);
    std::vector<double> bad = c.u;
    bad[4] = std::nan("");
    const RowSolveReport r = s->solve(c.problem, bad, x, {});
    EXPECT_EQ(r.status, RowSolveStatus::not_finite) << solver;
  }
  EXPECT_THROW(make_row_solver("gauss"), ValueError);
  RowProblem p({1, 1});
  EXPECT_THROW(p.add_row({}, {}, {}), ValueError);
  p.add_block(RowCone::interval);
  EXPECT_THROW(p.add_row(std::vector<int>{2}, std::vector<double>{1}, {}), ValueError);
  p.add_row(std::vector<int>{1}, std::vector<double>{0}, {0, 1, 0, kInf});
  std::vector<double> u = {0, 0}, y = {0.5};
  make_row_solver("gauss_seidel")->solve(p, u, y, {});
  EXPECT_EQ(y[0], 0);
}

TEST(RowSolver, LemkeSaysWhenThereIsNoSolution) {
  RowProblem p({1.0});
  for (double w : {1.0, -1.0}) {  // v >= 1 and v <= -1
    p.add_block(RowCone::interval);
    p.add_row(std::vector<int>{0}, std::vector<double>{w}, {0, 1, 0, kInf});
  }
  std::vector<double> u = {0}, x(2, 0.0);
  EXPECT_EQ(make_row_solver("pivoting")->solve(p, u, x, {}).status, RowSolveStatus::no_solution);
  EXPECT_EQ(u[0], 0);
}

}  // namespace
}  // namespace tarsus
