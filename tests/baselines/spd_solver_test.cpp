// All methods of stable PD against one another, and the packed rows against the dense matrix.
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "support/dense_solve.hpp"
#include "support/random_model.hpp"
#include "tarsus/baselines/spd_solver.hpp"

namespace tarsus::test {
namespace {

/// Isotropic gains at balls and free joints.
Drives some_drives(Random& random, const Model& model, bool plain) {
  Drives drives = Drives::none(model);
  drives.plain = plain;
  for (const Joint& joint : model.joints) {
    const double kp = random.uniform(0, 2000), kd = random.uniform(0, 200);
    for (int k = 0; k < joint.nv(); ++k) drives.kp[joint.qvel + k] = kp, drives.kd[joint.qvel + k] = kd;
  }
  return drives;
}

template <class R>
std::vector<R> convert(const std::vector<double>& v) {
  return {v.begin(), v.end()};
}

template <class R>
std::vector<double> widen(const std::vector<R>& v) {
  return {v.begin(), v.end()};
}

/// Condition number of M + K with rows and columns scaled to a unit diagonal (Jacobi's preconditioner; elimination is
/// invariant to scaling).
double condition(const Model& model, Data& data, const std::vector<double>& qpos, const Drives& drives, double dt) {
  const int nv = model.nv;
  Eigen::MatrixXd M(nv, nv);
  crba<double>(model, data, qpos, {M.data(), std::size_t(M.size())});
  std::vector<double> Q(nv), K(nv), rest(nv);
  drive_terms<double>(model, data, drives, dt, qpos, rest, qpos, {}, {}, Q, K);
  for (int i = 0; i < nv; ++i) M(i, i) += K[i] - model.armature[i];
  const Eigen::VectorXd scale = M.diagonal().cwiseSqrt().cwiseInverse();
  const Eigen::VectorXd values = symmetric_eigenvalues(scale.asDiagonal() * M * scale.asDiagonal());
  return values.maxCoeff() / values.minCoeff();
}

/// All methods on random trees against embedded MABA in double: within `factor` rounding errors times the condition
/// number.
template <class R>
void expect_agreement(double factor) {
  double worst = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    const Model model = random_tree(seed, {.bodies = 1 + int(seed % 20), .chain = (seed % 5) / 4.0});
    if (model.nv == 0) continue;
    Random random(seed);
    const State s = random_state(random, model);
    const std::vector<double> goal = random_qpos(random, model), goal_velocity = random_vector(random, model.nv);
    const Drives drives = some_drives(random, model, seed % 2);
    const double dt = random.uniform(1.0 / 600, 1.0 / 30);
    Data data(model);
    SpdWorkspace<double> exact(model);
    std::vector<double> reference(model.nv), reference_force(model.nv);
    spd_method<double>(SpdSolver::maba)
        .solve(model, data, drives, {s.qpos, s.qvel, goal, goal_velocity, s.tau, dt}, exact, reference,
               reference_force);
    const double bound = factor * std::numeric_limits<R>::epsilon() * condition(model, data, s.qpos, drives, dt);

    const auto q = convert<R>(s.qpos), v = convert<R>(s.qvel), qt = convert<R>(goal), vt = convert<R>(goal_velocity),
               tau = convert<R>(s.tau);
    BasicData<R> narrow(model);
    SpdWorkspace<R> workspace(model);
    workspace.pcg_max_iterations = 50 * model.nv;
    std::vector<R> qacc(model.nv), force(model.nv);
    for (const SpdMethod<R>& method : spd_methods<R>()) {
      method.solve(model, narrow, drives, {q, v, qt, vt, tau, dt}, workspace, qacc, force);
      const double error = relative_error(widen(qacc), reference),
                   force_error = relative_error(widen(force), reference_force);
      worst = std::max({worst, error / bound, force_error / bound});
      ASSERT_LT(error, bound) << method.name << ", seed " << seed;
      ASSERT_LT(force_error, bound) << method.name << ", seed " << seed;
    }
  }
  ::testing::Test::RecordProperty("worst_share_of_bound", std::to_string(worst));
}

// Solving H x = b loses cond(H) rounding errors of terms that are 1e2 to 1e4 times larger than x. Methods that pass τ =
// Q - K x to ABA lose as much again where Q and K x cancel.
TEST(SpdSolvers, AgreeToRoundingInDouble) { expect_agreement<double>(10000); }
TEST(SpdSolvers, AgreeToRoundingInFloat) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  expect_agreement<float>(10000);
}

TEST(SpdSolvers, TheRegistryIsInTheEnumsOrder) {
  const auto methods = spd_methods<double>();
  for (std::size_t i = 0; i < methods.size(); ++i) EXPECT_EQ(std::size_t(methods[i].solver), i);
}

TEST(SpdSolvers, EmbeddedWithoutGainsIsAba) {
  const Model model = random_tree(7, {.springs = false});
  Random random(7);
  const State s = random_state(random, model);
  Data data(model);
  SpdWorkspace<double> workspace(model);
  std::vector<double> with(model.nv), without(model.nv);
  const SpdInput<double> input{s.qpos, s.qvel, s.qpos, {}, s.tau, 0.01};
  spd_method<double>(SpdSolver::maba).solve(model, data, Drives::none(model), input, workspace, with, {});
  aba<double>(model, data, s.qpos, s.qvel, s.tau, without);
  EXPECT_EQ(with, without);
}

TEST(SpdSolvers, ForceClosesTheEquationsOfMotion) {
  // rnea(q, v, q̈) = τ for every method, with springs and dampers as part of τ.
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Model model = random_tree(seed);
    if (model.nv == 0) continue;
    Random random(seed);
    const State s = random_state(random, model);
    const std::vector<double> goal = random_qpos(random, model);
    const Drives drives = some_drives(random, model, false);
    Data data(model);
    SpdWorkspace<double> workspace(model);
    std::vector<double> qacc(model.nv), force(model.nv), needed(model.nv);
    for (const SpdMethod<double>& method : spd_methods<double>()) {
      method.solve(model, data, drives, {s.qpos, s.qvel, goal, {}, s.tau, 1.0 / 60}, workspace, qacc, force);
      rnea<double>(model, data, s.qpos, s.qvel, qacc, needed);
      ASSERT_LT(relative_error(force, needed), 1e-8) << method.name << ", seed " << seed;
    }
  }
}

TEST(SpdLaw, IsTheDrivesForceCutOffAtTheLimits) {
  int cut = 0;
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Model model = random_tree(seed);
    if (model.nv == 0) continue;
    Random random(seed);
    const State s = random_state(random, model);
    const std::vector<double> goal = random_qpos(random, model);
    Drives drives = some_drives(random, model, seed % 2);
    Data data(model);
    const double dt = 1.0 / 60;
    // Without limits: the drive forces that follow from MABA's acceleration, without springs and dampers.
    SpdWorkspace<double> workspace(model);
    std::vector<double> qacc(model.nv), free(model.nv), tau(model.nv);
    spd_method<double>(SpdSolver::maba)
        .solve(model, data, drives, {s.qpos, s.qvel, goal, {}, {}, dt}, workspace, qacc, {});
    drive_force<double>(model, data, drives, dt, s.qpos, s.qvel, goal, {}, qacc, free);
    for (const SpdSolver method : {SpdSolver::dense_direct, SpdSolver::sparse_direct}) {
      spd_law<double>(model, drives, dt, method)(s.qpos, s.qvel, goal, tau);
      ASSERT_LT(relative_error(tau, free), 1e-8) << seed;
    }
    drives.force_limit.assign(model.nv, 20);
    spd_law<double>(model, drives, dt, SpdSolver::dense_direct)(s.qpos, s.qvel, goal, tau);
    for (const Joint& joint : model.joints) {
      const bool rotates = turns_freely(joint.type) || moves_freely(joint.type);
      const int first = joint.qvel + (moves_freely(joint.type) ? 3 : 0);
      for (int v = joint.qvel; v < joint.qvel + joint.nv(); ++v) {
        if (rotates && v >= first) continue;
        ASSERT_NEAR(tau[v], std::clamp(free[v], -20.0, 20.0), 1e-6 * (1 + std::abs(free[v])));
        cut += std::abs(free[v]) > 20;
      }
      if (!rotates) continue;
      const double length = std::hypot(free[first], free[first + 1], free[first + 2]);
      for (int k = 0; k < 3; ++k)
        ASSERT_NEAR(tau[first + k], free[first + k] * std::min(1.0, 20 / length), 1e-6 * (1 + length));
      cut += length > 20;
    }
  }
  EXPECT_GT(cut, 100);
}

TEST(SpdSolvers, WrongSizesAndBatchesAreNamed) {
  const Model model = random_tree(1);
  std::vector<double> short_one(1), qacc(model.nv);
  SpdWorkspace<double> workspace(model);
  Data data(model), batch(model, 8);
  const Drives drives = Drives::none(model);
  for (const SpdMethod<double>& method : spd_methods<double>()) {
    EXPECT_THROW(
        method.solve(model, data, drives, {short_one, data.qvel, data.qpos, {}, {}, 0.01}, workspace, qacc, {}),
        ShapeError);
    EXPECT_THROW(
        method.solve(model, batch, drives, {batch.qpos, batch.qvel, batch.qpos, {}, {}, 0.01}, workspace, qacc, {}),
        ValueError);
  }
}

}  // namespace
}  // namespace tarsus::test
