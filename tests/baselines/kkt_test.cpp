// All methods for the KKT system against one another and against a dense solve, on 1,000 random trees and constraint
// sets.
#include "tarsus/baselines/kkt.hpp"
#include "support/dense_solve.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <utility>

#include "support/dense_rows.hpp"
#include "support/dense_system.hpp"
#include "support/random_equalities.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus::test {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

struct System {
  Model model;
  Data data;
  State s;
  EqualitySet set;
  DelassusRows<double> rows;
  std::vector<double> K, sigma, y1, y2;

  explicit System(unsigned seed, EqualityOptions options = {})
      : model(random_tree(seed, {.bodies = 1 + int(seed % 13), .chain = (seed % 5) / 4.0})),
        data(model),
        set(model),
        rows(model) {
    Random random(seed + 4000);
    s = random_state(random, model);
    options.max_rows = std::min(options.max_rows, model.nv);
    set = random_equalities(random, model, options);
    fill(random, seed % 3 == 0);
  }
  void fill(Random& random, bool soft) {
    const int m = set.rows();
    set.add_blocks(rows);
    K.assign(model.armature.begin(), model.armature.end());
    for (const Joint& joint : model.joints) {
      const double extra = random.chance(0.5) ? random.uniform(0, 3) : 0;  // a drive's Δt K_d
      for (int k = 0; k < joint.nv(); ++k) K[joint.qvel + k] += extra;
    }
    if (soft) sigma = random_vector(random, m, 0.1);
    for (double& x : sigma) x = std::abs(x);
    y1 = random_vector(random, model.nv, 10), y2 = random_vector(random, m, 3);
    refill();
  }
  void refill() {
    std::vector<double> phi(set.rows());
    kinematics<double>(model, data, s.qpos);
    set.evaluate<double>(data, 0, s.qpos, {}, rows, phi, {}, {});
  }
  KktInput input() { return {data, rows, s.qpos, K, sigma, y1, y2}; }

  Matrix J() {
    kinematics<double>(model, data, s.qpos);
    return dense_jacobian(model, data, rows);
  }
  Matrix M() {
    std::vector<double> M(std::size_t(model.nv) * model.nv);
    crba<double>(model, data, s.qpos, M);
    Matrix mass = Eigen::Map<Matrix>(M.data(), model.nv, model.nv);
    for (int i = 0; i < model.nv; ++i) mass(i, i) += K[i] - model.armature[i];
    return mass;
  }
  /// Condition number of Λ⁻¹ + Σ with rows scaled to a unit diagonal. The solvers can agree to 1e-10 only where
  /// rounding allows it.
  double condition() {
    const Matrix j = J();
    if (j.rows() == 0) return 1;  // Eigen would refer to numbers that do not exist
    Matrix A = j * spd_solve(M(), j.transpose());
    for (std::size_t r = 0; r < sigma.size(); ++r) A(r, r) += sigma[r];
    const Vector d = A.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
    const Vector e = symmetric_eigenvalues(d.asDiagonal() * A * d.asDiagonal());
    return e.maxCoeff() / std::max(e.minCoeff(), 1e-300);
  }
};

/// The whole matrix, factored with full pivoting and without use of the tree.
Vector dense_kkt(System& t) {
  const int n = t.model.nv, m = t.set.rows();
  Matrix H = Matrix::Zero(n + m, n + m);
  const Matrix J = t.J();
  H.topLeftCorner(n, n) = t.M(), H.topRightCorner(n, m) = J.transpose(), H.bottomLeftCorner(m, n) = J;
  for (std::size_t r = 0; r < t.sigma.size(); ++r) H(n + r, n + r) = -t.sigma[r];
  Vector y(n + m);
  for (int i = 0; i < n; ++i) y[i] = t.y1[i];
  for (int r = 0; r < m; ++r) y[n + r] = t.y2[r];
  return lu_solve(H, y);
}

TEST(Kkt, MethodsAgreeWithTheDenseSystemOnAThousandTrees) {
  int compared = 0, no_rows = 0, full = 0, soft = 0, skipped = 0, own_way = 0;
  double worst = 0, worst_force = 0, worst_row = 0;
  for (unsigned seed = 0; compared < 1000 && seed < 3000; ++seed) {
    System t(seed, {.count = 1 + int(seed % 7)});
    const int n = t.model.nv, m = t.set.rows();
    if (n == 0) continue;
    // For nearly dependent rows rounding prevents an agreement to 1e-10. The tests below cover them.
    if (t.condition() > 1e5) {
      ++skipped;
      continue;
    }
    ++compared, no_rows += m == 0, full += m == n, soft += !t.sigma.empty();
    const Vector expected = dense_kkt(t);
    KktSolver solver(t.model);
    for (const KktMethod method : kkt_methods()) {
      std::vector<double> x1(n), x2(m);
      const KktReport report = solver.solve(method, t.input(), x1, x2);
      ASSERT_EQ(report.status, KktStatus::solved) << name(method) << " seed " << seed;
      ASSERT_EQ(report.rank, m) << name(method) << " seed " << seed;
      if (method == KktMethod::constrained_aba)
        own_way += report.method == method;
      else
        ASSERT_EQ(report.method, method);
      const double error =
          std::max(relative_error(x1, std::vector<double>(expected.data(), expected.data() + n)),
                   relative_error(x2, std::vector<double>(expected.data() + n, expected.data() + n + m)));
      ASSERT_LT(error, 1e-10) << name(method) << " seed " << seed << " m " << m;
      ASSERT_LT(report.force_residual, 1e-10) << name(method) << " seed " << seed;
      ASSERT_LT(report.row_residual, 1e-10) << name(method) << " seed " << seed;
      worst = std::max(worst, error), worst_force = std::max(worst_force, report.force_residual),
      worst_row = std::max(worst_row, report.row_residual);
    }
  }
  std::printf(
      "compared %d (m = 0: %d, m = n: %d, with compliance: %d; left out: %d); largest difference %.2g, residuals %.2g "
      "and %.2g\n",
      compared, no_rows, full, soft, skipped, worst, worst_force, worst_row);
  EXPECT_EQ(compared, 1000);
  EXPECT_GT(no_rows, 10);
  EXPECT_GT(full, 10);
  EXPECT_GT(own_way, 980);  // otherwise constrained_aba used its fallback, branches, and says so
}

/// Every row occurs twice. All methods find the rank, name the same number of dependent rows and give the same motion
/// and the same total force.
TEST(Kkt, RedundantRowsShareTheirForce) {
  int seen = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    System t(seed, {.count = 2, .user = false});
    const int n = t.model.nv, m = t.set.rows();
    if (n == 0 || m == 0 || t.condition() > 1e4 || !t.sigma.empty()) continue;
    ++seen;
    const Vector single = dense_kkt(t);
    DelassusRows<double> twice(t.model);
    for (int copy = 0; copy < 2; ++copy) {
      for (int b = 0; b < t.rows.blocks(); ++b) {
        auto from = t.rows.block(b);
        auto to = twice.block(twice.add_block(from.a, from.b, from.nrow, from.joint != nullptr));
        std::copy_n(from.force, 12 * from.stride, to.force);
        if (from.joint) std::copy_n(from.joint, 2 * from.stride, to.joint);
      }
    }
    std::vector<double> y2(t.y2);
    y2.insert(y2.end(), t.y2.begin(), t.y2.end());
    const KktInput in{t.data, twice, t.s.qpos, t.K, {}, t.y1, y2};
    KktSolver solver(t.model);
    for (const KktMethod method : kkt_methods()) {
      std::vector<double> x1(n), x2(2 * m);
      const KktReport report = solver.solve(method, in, x1, x2);
      ASSERT_LT(report.row_residual, 1e-9) << name(method) << " seed " << seed;
      ASSERT_LT(report.force_residual, 1e-9) << name(method) << " seed " << seed;
      ASSERT_LT(relative_error(x1, std::vector<double>(single.data(), single.data() + n)), 1e-8)
          << name(method) << " seed " << seed;
      if (method == KktMethod::constrained_aba) {  // it needs no rank, and determines it only among rows of loops
        ASSERT_LE(report.rank, n) << "seed " << seed;
        continue;
      }
      ASSERT_EQ(report.status, KktStatus::redundant) << name(method) << " seed " << seed;
      ASSERT_EQ(report.rank, m) << name(method) << " seed " << seed;
      ASSERT_EQ(int(report.dependent.size()), m);
      for (int r = 0; r < m; ++r)
        ASSERT_NEAR(x2[r], x2[m + r], 1e-8 * (1 + std::abs(x2[r]))) << name(method) << " seed " << seed;
    }
  }
  EXPECT_GT(seen, 50);
}

/// The same rows with contradicting right sides: the status reports it, all results are finite, and the violation is
/// shared evenly (least squares).
TEST(Kkt, InconsistentRowsAreViolatedLeast) {
  int seen = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    System t(seed, {.count = 2, .user = false});
    const int n = t.model.nv, m = t.set.rows();
    if (n == 0 || m == 0 || t.condition() > 1e4 || !t.sigma.empty()) continue;
    ++seen;
    DelassusRows<double> twice(t.model);
    for (int copy = 0; copy < 2; ++copy) {
      for (int b = 0; b < t.rows.blocks(); ++b) {
        auto from = t.rows.block(b);
        auto to = twice.block(twice.add_block(from.a, from.b, from.nrow, from.joint != nullptr));
        std::copy_n(from.force, 12 * from.stride, to.force);
        if (from.joint) std::copy_n(from.joint, 2 * from.stride, to.joint);
      }
    }
    std::vector<double> y2(t.y2), middle(t.y2);
    for (int r = 0; r < m; ++r) y2.push_back(t.y2[r] + 1), middle[r] += 0.5;
    t.y2 = middle;  // between the two right sides
    const Vector expected = dense_kkt(t);
    const KktInput in{t.data, twice, t.s.qpos, t.K, {}, t.y1, y2};
    KktSolver solver(t.model);
    for (const KktMethod method : kkt_methods()) {
      std::vector<double> x1(n), x2(2 * m);
      const KktReport report = solver.solve(method, in, x1, x2);
      ASSERT_EQ(report.status, KktStatus::inconsistent) << name(method) << " seed " << seed;
      ASSERT_LT(report.force_residual, 1e-6) << name(method) << " seed " << seed;
      ASSERT_LT(relative_error(x1, std::vector<double>(expected.data(), expected.data() + n)), 1e-6)
          << name(method) << " seed " << seed;
      for (const double x : x2) ASSERT_TRUE(std::isfinite(x));
    }
  }
  EXPECT_GT(seen, 50);
}

TEST(Kkt, NumbersThatAreNotFiniteGiveAStatus) {
  int systems = 0;
  for (unsigned seed = 0; seed < 40; ++seed) {  // trees with several roots too, of which only one is not finite
    System t(seed, {.count = 4});
    if (t.set.rows() == 0) continue;
    ++systems;
    KktSolver solver(t.model);
    std::vector<double> x1(t.model.nv), x2(t.set.rows());
    for (double& y : t.y1) {
      const double kept = std::exchange(y, NAN);
      for (const KktMethod method : kkt_methods())
        ASSERT_EQ(solver.solve(method, t.input(), x1, x2).status, KktStatus::not_finite) << name(method) << " " << seed;
      y = kept;
    }
  }
  EXPECT_GT(systems, 20);
}

TEST(Kkt, MethodsHaveNames) {
  for (const KktMethod method : kkt_methods()) EXPECT_EQ(kkt_method(name(method)), method);
  EXPECT_EQ(kkt_method("automatic"), KktMethod::automatic);
  try {
    kkt_method("magic");
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("efpa"), std::string::npos);
  }
}

/// The computation of a step, with velocities, gravity and J̇ q̇, against the dense system from rnea and crba.
TEST(ConstrainedDynamics, ExactAccelerationSolvesTheDenseSystem) {
  int compared = 0;
  for (unsigned seed = 0; seed < 600; ++seed) {
    System t(seed, {.count = 1 + int(seed % 4)});
    const int n = t.model.nv, m = t.set.rows();
    if (n == 0 || t.condition() > 1e5) continue;
    ++compared;
    t.sigma.clear();
    ConstrainedDynamics<double> dynamics(t.model, t.set, t.data);
    std::vector<double> qacc(n), bias(n), zero(n), phi(m), rate(m), Jdot(m), tau(n);
    dynamics.accelerate(t.data, 0, t.s.qpos, t.s.qvel, t.s.tau, t.K, qacc);
    bias_force<double>(t.model, t.data, t.s.qpos, t.s.qvel, bias);
    kinematics<double>(t.model, t.data, t.s.qpos, t.s.qvel);
    rnea<double>(t.model, t.data, t.s.qpos, t.s.qvel, zero, tau);
    t.set.evaluate<double>(t.data, 0, t.s.qpos, t.s.qvel, t.rows, phi, rate, Jdot);
    for (int i = 0; i < n; ++i) t.y1[i] = t.s.tau[i] - bias[i];
    for (int r = 0; r < m; ++r) t.y2[r] = -Jdot[r];
    if (t.condition() > 1e5) continue;
    const Vector expected = dense_kkt(t);
    ASSERT_LT(relative_error(qacc, std::vector<double>(expected.data(), expected.data() + n)), 1e-9) << "seed " << seed;
    ASSERT_EQ(dynamics.status(0), KktStatus::solved);
    for (int r = 0; r < m; ++r)
      ASSERT_NEAR(dynamics.multiplier()[r], expected[n + r], 1e-9 * (1 + expected.cwiseAbs().maxCoeff()))
          << "seed " << seed;
  }
  EXPECT_GT(compared, 300);
}

/// SPOOK: J v⁺ + Σ λ = b with λ = -h x₂, v⁺ = v + h q̈, and M̂ v⁺ - Jᵀ λ = M̂ v + h (Q - C).
TEST(ConstrainedDynamics, SpookRowsHoldAtTheEndOfTheStep) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    System t(seed, {.count = 1 + int(seed % 4)});
    const int n = t.model.nv, m = t.set.rows();
    if (n == 0 || m == 0) continue;
    const double h = 0.01, steps = 1 + seed % 5, compliance = seed % 2 ? 1e-3 : 0;
    for (int i = 0; i < t.set.size(); ++i) t.set.set_softness(i, {compliance, steps});
    t.sigma.clear();
    if (t.condition() > 1e5) continue;
    ConstrainedDynamics<double> dynamics(t.model, t.set, t.data);
    std::vector<double> qacc(n);
    dynamics.accelerate(t.data, h, t.s.qpos, t.s.qvel, t.s.tau, t.K, qacc);
    const Matrix J = t.J();
    const Vector v = Eigen::Map<Vector>(t.s.qvel.data(), n), next = v + h * Eigen::Map<Vector>(qacc.data(), n),
                 before = J * v, after = J * next;
    for (int r = 0, i = 0; r < m; ++r) {
      if (r == t.set[i].first_row + t.set[i].nrow) ++i;
      const double damping = 1 + 4 * steps, b = before[r] / damping - pull_back(t.set[i], r, dynamics.phi(), h);
      const double sigma = 4 * compliance / (h * h * damping), lambda = -h * dynamics.multiplier()[r];
      ASSERT_NEAR(after[r] + sigma * lambda, b,
                  1e-9 * (1 + std::abs(b) + before.cwiseAbs().maxCoeff() + after.cwiseAbs().maxCoeff()))
          << "seed " << seed;
    }
  }
}

/// On chains of thousands of links the rounding errors of the force rows are far larger than those of the forces.
/// Constrained ABA converges without its fallback, to the solution of the method `branches`.
TEST(Kkt, ConstrainedAbaOnLongChains) {
  for (const int links : {300, 3000}) {
    ModelSpec spec;
    Random random(3);
    for (int i = 1; i <= links; ++i) {
      BodySpec body("link" + std::to_string(i));
      body.parent = i - 1;
      body.orientation = axis_angle({1, 0, 0}, random.uniform(-1, 1));
      body.position = {0.03 * random.uniform(-1, 1), 0.03 * random.uniform(-1, 1), 0.1};
      body.joints.emplace_back();
      body.joints.back().name = "joint" + std::to_string(i);
      body.inertial = InertialSpec{0.5, {0.01, 0.02, 0.05}, diagonal3(1.4e-3, 1.5e-3, 1e-3), {}};
      spec.bodies.push_back(body);
    }
    const Model model = compile(std::move(spec));
    Data data(model);
    const std::vector<double> q = random_vector(random, model.nv, 1), y1 = random_vector(random, model.nv, 1);
    kinematics<double>(model, data, q);
    EqualitySet set(model);
    set.add_connect("tip", links, {0, 0, 0}, 0, body_pose(model, data, links).p);
    set.add_connect("middle", links / 2, {0, 0, 0}, 0, body_pose(model, data, links / 2).p);
    DelassusRows<double> rows(model);
    set.add_blocks(rows);
    std::vector<double> phi(6), sigma(6, 1e-6);
    const std::vector<double> y2 = random_vector(random, 6, 1);
    set.evaluate<double>(data, 0, q, {}, rows, phi, {}, {});
    KktSolver solver(model);
    std::vector<double> K(model.armature.begin(), model.armature.end());
    Vector x1[2] = {Vector(links), Vector(links)}, x2[2] = {Vector(6), Vector(6)};
    const KktInput in{data, rows, q, K, sigma, y1, y2};
    for (const int k : {0, 1}) {
      const KktMethod method = k ? KktMethod::constrained_aba : KktMethod::branches;
      const KktReport report = solver.solve(method, in, {x1[k].data(), x1[k].size() + 0ul}, {x2[k].data(), 6});
      EXPECT_EQ(report.method, method) << links << " links";
      EXPECT_EQ(report.status, KktStatus::solved);
      EXPECT_LT(report.row_residual, 1e-10);
      EXPECT_LT(report.iterations, 8);
    }
    EXPECT_LT((x1[1] - x1[0]).cwiseAbs().maxCoeff(), 1e-10 * x1[0].cwiseAbs().maxCoeff()) << links << " links";
    EXPECT_LT((x2[1] - x2[0]).cwiseAbs().maxCoeff(), 1e-10 * x2[0].cwiseAbs().maxCoeff()) << links << " links";
  }
}

/// A batch in lanes: each world equals the world solved individually.
template <class R>
void lanes_are_worlds(double tolerance) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    System t(seed, {.count = 3});
    const int n = t.model.nv, m = t.set.rows();
    if (n == 0 || m == 0) continue;
    BasicData<R> batch(t.model, 5), one(t.model);
    Random random(seed);
    AlignedVector<R> tau(batch.size(n)), qacc(batch.size(n));
    std::vector<R> a(n), b(n);
    ConstrainedDynamics<R> together(t.model, t.set, batch), alone(t.model, t.set, one);
    std::vector<State> states;
    for (int w = 0; w < 5; ++w) {
      states.push_back(random_state(random, t.model));
      const auto put = [&](AlignedVector<R>& to, const std::vector<double>& from) {
        batch.set(to, int(from.size()), w, std::vector<R>(from.begin(), from.end()));
      };
      put(batch.qpos, states[w].qpos), put(batch.qvel, states[w].qvel), put(tau, states[w].tau);
    }
    together.accelerate(batch, 0.01, batch.qpos, batch.qvel, tau, batch.joint_inertia, qacc);
    for (int w = 0; w < 5; ++w) {
      const std::vector<R> q(states[w].qpos.begin(), states[w].qpos.end()),
          v(states[w].qvel.begin(), states[w].qvel.end()), force(states[w].tau.begin(), states[w].tau.end());
      alone.accelerate(one, 0.01, q, v, force, one.joint_inertia, a);
      batch.get(qacc, n, w, b);
      ASSERT_EQ(alone.status(0), together.status(w)) << "seed " << seed;
      t.s.qpos = states[w].qpos, t.sigma.clear();
      t.refill();
      if (alone.status(0) != KktStatus::solved || t.condition() > 1e4) continue;
      double scale = 1;
      for (int i = 0; i < n; ++i) scale = std::max(scale, std::abs(double(a[i])));
      for (int i = 0; i < n; ++i)
        ASSERT_NEAR(double(a[i]), double(b[i]), tolerance * scale) << "seed " << seed << " world " << w;
    }
  }
}
TEST(ConstrainedDynamics, LanesAreWorlds) { lanes_are_worlds<double>(1e-9); }
#ifndef TARSUS_DOUBLE_ONLY
TEST(ConstrainedDynamics, LanesAreWorldsInFloat) { lanes_are_worlds<float>(2e-2); }
#endif

}  // namespace
}  // namespace tarsus::test
