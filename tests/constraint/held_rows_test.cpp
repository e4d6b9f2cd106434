// Contacts solved for while equality constraints hold: both ways to solve, judged by dense algebra.
#include <gtest/gtest.h>

#include <cmath>

#include "support/contact_world.hpp"
#include "support/dense_rows.hpp"
#include "support/random_equalities.hpp"
#include "tarsus/constraint/constrained_dynamics.hpp"

namespace tarsus::test {
namespace {

/// A world whose v⁰ satisfies random equality constraints.
struct HeldWorld : World {
  EqualitySet set;
  ConstrainedDynamics<double> loops;
  AlignedVector<double> force, qacc, free;

  HeldWorld(Random& random, Model m)
      : World(random, std::move(m)),
        set(random_equalities(random, model, {.count = 3, .max_rows = model.nv / 2})),
        loops(model, set, data),
        force(model.nv, 0.0),
        qacc(model.nv),
        free(model.nv) {
    for (int i = 0; i < set.size(); ++i) set.set_softness(i, {random.chance(0.5) ? 1e-5 : 0, 4});
  }
  /// As the step does: v⁰, then poses, velocities and factors in data.
  void solve_loops() {
    loops.accelerate(data, h, data.qpos, data.qvel, force, K, qacc);
    for (int i = 0; i < model.nv; ++i) free[i] = data.qvel[i] + h * qacc[i];
  }
  Eigen::MatrixXd inverse_mass() {
    Eigen::MatrixXd out(model.nv, model.nv);
    factor<double>(model, data, data.qpos, K);
    for (int c = 0; c < model.nv; ++c) {
      AlignedVector<double> x(model.nv, 0.0);
      x[c] = 1;
      minv<double>(model, data, x, x);
      out.col(c) = as_vector(x);
    }
    return out;
  }
  /// J_e [rows][nv].
  Eigen::MatrixXd equality_jacobian() {
    DelassusRows<double> rows(model);
    AlignedVector<double> phi;
    kinematics<double>(model, data, data.qpos, data.qvel);
    HeldRows<double>{&set, data.qpos, {}}.write(data, rows, phi);
    return dense_jacobian(model, data, rows);
  }
};

struct Answer {
  AlignedVector<double> velocity;
  std::vector<double> held;
  RowsReport report;
};

Answer solve(HeldWorld& w, const std::vector<LinkContact>& contacts, RowsMethod method, Eigen::VectorXd* impulse) {
  TreeRows<double> rows(w.model,
                        {.limit_spook = {}, .solve = {.max_iterations = 200000, .tolerance = 1e-10}, .method = method});
  w.solve_loops();
  Answer answer{w.free, {}, {}};
  rows.build(w.data, w.h, w.data.qpos, w.data.qvel, w.free, contacts, {&w.set, w.data.qpos, w.loops.compliance()});
  rows.solve(w.data, w.data.qpos, w.K, answer.velocity, false);
  answer.held.assign(rows.held_impulse().begin(), rows.held_impulse().end());
  answer.report = rows.report();
  if (answer.report.status == RowSolveStatus::converged) {
    double largest = 1;
    for (const double x : answer.held) largest = std::max(largest, std::abs(x));
    EXPECT_LT(rows.residual(w.data, w.data.qpos, answer.velocity), 1e-7 * largest);
  }
  AlignedVector<double> sum(w.model.nv, 0.0);
  rows.add_force(w.data, sum);
  *impulse = w.h * as_vector(sum);
  return answer;
}

/// Random worlds with contacts and constraints. @param check (world, contacts, J_e)
template <class F>
void each_world(unsigned count, const F& check) {
  for (unsigned seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    HeldWorld w(random, random_tree(seed, {.bodies = 10}));
    if (w.set.rows() == 0) continue;
    std::vector<LinkContact> contacts = random_contacts(random, w, 5);
    for (LinkContact& c : contacts) c.b = random.chance(0.7) ? -1 : c.b, c.friction *= 0.5;
    w.solve_loops();
    if (w.loops.status(0) != KktStatus::solved) continue;
    check(w, contacts, w.equality_jacobian());
  }
}

TEST(HeldRows, ChangeNothingOfTheConstraintsAndObeyTheEquationOfMotion) {
  int checked = 0;
  double equation = 0, opened = 0;
  each_world(150, [&](HeldWorld& w, const std::vector<LinkContact>& contacts, const Eigen::MatrixXd& J) {
    for (const RowsMethod method : {RowsMethod::newton, RowsMethod::gauss_seidel}) {
      Eigen::VectorXd impulse;
      const Answer answer = solve(w, contacts, method, &impulse);
      if (answer.report.status != RowSolveStatus::converged || answer.report.touching == 0) continue;
      ++checked;
      const Eigen::VectorXd change = as_vector(answer.velocity) - as_vector(w.free), held = as_vector(answer.held);
      const Eigen::VectorXd sigma = as_vector(w.loops.compliance());
      // Beside the largest sum in it: what rounding acts on.
      const double sum =
          (J.cwiseAbs() * w.inverse_mass().cwiseAbs() * J.transpose().cwiseAbs() * held.cwiseAbs()).maxCoeff();
      opened = std::max(opened, (J * change + sigma.cwiseProduct(held)).norm() / (1 + change.norm() + sum));
      const Eigen::VectorXd total = impulse + J.transpose() * held;
      const Eigen::VectorXd part =
          w.inverse_mass().cwiseAbs() * (impulse.cwiseAbs() + (J.transpose() * held).cwiseAbs());
      equation = std::max(equation, (w.inverse_mass() * total - change).norm() / (1 + change.norm() + part.maxCoeff()));
    }
  });
  std::printf("%d solves: constraints opened by %.2g, equation of motion missed by %.2g (relative)\n", checked, opened,
              equation);
  EXPECT_GT(checked, 100);
  EXPECT_LT(opened, 1e-8);
  EXPECT_LT(equation, 1e-8);
}

TEST(HeldRows, NewtonAndGaussSeidelAgree) {
  int compared = 0, unsolved = 0;
  each_world(150, [&](HeldWorld& w, const std::vector<LinkContact>& contacts, const Eigen::MatrixXd&) {
    Eigen::VectorXd impulse;
    const Answer newton = solve(w, contacts, RowsMethod::newton, &impulse),
                 sweeps = solve(w, contacts, RowsMethod::gauss_seidel, &impulse);
    if (newton.report.rows == 0) return;
    if (newton.report.status != RowSolveStatus::converged || newton.report.method != RowsMethod::newton) {
      ++unsolved;
      return;
    }
    if (sweeps.report.status != RowSolveStatus::converged) return;
    ++compared;
    EXPECT_LT(relative_error(newton.velocity, sweeps.velocity), 1e-5);  // from residuals of 1e-10 m/s
  });
  std::printf("%d compared, %d not solved by Newton\n", compared, unsolved);
  EXPECT_GT(compared, 60);
  EXPECT_LT(unsolved, compared / 4);
}

/// A velocity that already has the rows' effect in it leads to the same answer as one that has not.
TEST(HeldRows, IncludedVelocitiesComeBackToTheSame) {
  int compared = 0;
  each_world(40, [&](HeldWorld& w, const std::vector<LinkContact>& contacts, const Eigen::MatrixXd&) {
    for (const RowsMethod method : {RowsMethod::newton, RowsMethod::gauss_seidel}) {
      TreeRows<double> rows(
          w.model, {.limit_spook = {}, .solve = {.max_iterations = 200000, .tolerance = 1e-10}, .method = method});
      w.solve_loops();
      AlignedVector<double> first = w.free;
      rows.build(w.data, w.h, w.data.qpos, w.data.qvel, w.free, contacts, {&w.set, w.data.qpos, w.loops.compliance()});
      rows.solve(w.data, w.data.qpos, w.K, first, false);
      if (rows.report().status != RowSolveStatus::converged || rows.rows() == 0) continue;
      AlignedVector<double> second = first;
      factor<double>(w.model, w.data, w.data.qpos, w.K);
      rows.solve(w.data, w.data.qpos, w.K, second, true);
      ++compared;
      EXPECT_LT(relative_error(second, first), 1e-5);
    }
  });
  EXPECT_GT(compared, 20);
}

}  // namespace
}  // namespace tarsus::test
