// The pass with two matrices against the dense matrix M̂ + θh ∂C/∂v, on 1,000 random trees over all joint types.
#include "tarsus/dynamics/velocity_products.hpp"
#include "support/dense_solve.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "support/random_model.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus::test {
namespace {

constexpr int kTrees = 1000;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;
using Map = Eigen::Map<const Vector>;

std::vector<double> plain(const Vector& v) { return {v.data(), v.data() + v.size()}; }

TreeOptions with_size(unsigned seed) {
  TreeOptions options;
  options.bodies = 1 + int(seed % 17);
  options.chain = (seed % 5) / 4.0;
  return options;
}

/// A tree, a state and the right-hand side.
struct Case {
  Model model;
  Data data;
  State s;
  std::vector<double> inertia, external, theta_h;

  explicit Case(unsigned seed) : model(random_tree(seed, with_size(seed))), data(model) {
    Random random(seed + 100000);
    s = random_state(random, model);
    for (double& v : s.qvel) v *= 5;
    inertia = model.armature;
    for (const Joint& joint : model.joints) {  // K as for maba(): one number for the rotations of a joint
      const double k = random.chance(0.5) ? 0 : std::pow(10.0, random.uniform(-3, 3));
      for (int d = 0; d < joint.nv(); ++d) inertia[joint.qvel + d] = k;
    }
    external = random_vector(random, 6 * model.njoint(), 10);
    theta_h = {random.uniform(0, 0.05)};
  }

  Vector bias(const Vector& qvel, bool with_external = true) {
    Vector c(model.nv);
    const Vector rest = Vector::Zero(model.nv);
    rnea<double>(model, data, s.qpos, plain(qvel), plain(rest), {c.data(), std::size_t(c.size())},
                 with_external ? external : std::vector<double>{});
    return c;
  }
  /// M₀ + diag K + θh ∂C/∂v. C is a quadratic polynomial of v, so central differences are exact.
  Matrix matrix() {
    Matrix M(model.nv, model.nv);
    crba<double>(model, data, s.qpos, {M.data(), std::size_t(M.size())});
    for (int k = 0; k < model.nv; ++k) M(k, k) += inertia[k] - model.armature[k];
    const Vector v = Map(s.qvel.data(), model.nv);
    for (int k = 0; k < model.nv; ++k) {
      const Vector step = Vector::Unit(model.nv, k) * 5;
      M.col(k) += theta_h[0] / 10 * (bias(v + step) - bias(v - step));
    }
    return M;
  }
  std::vector<double> accelerate(const std::vector<double>& tangent = {}) {
    std::vector<double> qacc(model.nv);
    VelocityProducts<double>(model, data)
        .accelerate(model, data, theta_h, s.qpos, s.qvel, s.tau, inertia, qacc, external, tangent);
    return qacc;
  }
};

/// Normwise backward error of q̈ in (matrix) q̈ = Q - C: what rounding may cause whatever the matrix' condition.
double backward_error(const Matrix& A, const std::vector<double>& x, const Vector& b) {
  const Vector q = Map(x.data(), x.size());
  return (A * q - b).cwiseAbs().maxCoeff() / std::max(1e-300, (A.cwiseAbs() * q.cwiseAbs() + b.cwiseAbs()).maxCoeff());
}

TEST(VelocityProducts, EqualTheDenseSolveOnRandomTrees) {
  double worst = 0, worst_solution = 0;
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Case c(seed);
    if (c.model.nv == 0) continue;
    const Matrix A = c.matrix();
    const Vector b = Map(c.s.tau.data(), c.model.nv) - c.bias(Map(c.s.qvel.data(), c.model.nv));
    const std::vector<double> x = c.accelerate();
    worst = std::max(worst, backward_error(A, x, b));
    worst_solution = std::max(worst_solution, relative_error(x, plain(lu_solve(A, b))));
    ASSERT_LT(backward_error(A, x, b), 1e-10) << "seed " << seed;
    ASSERT_LT(relative_error(x, plain(lu_solve(A, b))), 1e-10) << "seed " << seed;
  }
  RecordProperty("worst_backward_error", std::to_string(worst));
  std::printf("largest backward error %.1e, largest error of the solution %.1e\n", worst, worst_solution);
}

TEST(VelocityProducts, UnsymmetricTangentsOfLinksEnterTheDenseMatrix) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Case c(seed);
    if (c.model.nv == 0) continue;
    Random random(seed);
    const int nlink = c.model.njoint();
    std::vector<double> tangent(36 * nlink);
    Matrix A = c.matrix();
    const Vector b = Map(c.s.tau.data(), c.model.nv) - c.bias(Map(c.s.qvel.data(), c.model.nv));
    kinematics<double>(c.model, c.data, c.s.qpos, c.s.qvel);
    for (int body = 1; body < c.model.nbody(); ++body) {
      const Body& of = c.model.bodies[body];
      if (of.link < 0 || random.chance(0.3)) continue;
      // A positive definite part and a skew one, at the origin of the link.
      Eigen::Matrix<double, 6, 6, Eigen::RowMajor> G, B;
      for (int k = 0; k < 36; ++k) G.data()[k] = random.uniform();
      B = 3 * G * G.transpose();
      for (int k = 0; k < 36; ++k) G.data()[k] = random.uniform();
      B += G - G.transpose();
      Matrix J(6, c.model.nv);
      const Vec3d origin = c.data.links()[of.link].o;
      jacobian<double>(c.model, c.data, body, std::array{origin.x, origin.y, origin.z},
                       {J.data(), std::size_t(J.size())});
      for (int k = 0; k < 36; ++k) tangent[36 * of.link + k] += B.data()[k];
      A += J.transpose() * B * J;
    }
    const std::vector<double> x = c.accelerate(tangent);
    ASSERT_LT(relative_error(x, plain(lu_solve(A, b))), 1e-10) << "seed " << seed;
    // The acceleration w of each link is J q̈.
    for (int body = 1; body < c.model.nbody(); ++body) {
      const int link = c.model.bodies[body].link;
      if (link < 0) continue;
      const Motion<double> w = c.data.links()[link].a;
      kinematics<double>(c.model, c.data, c.s.qpos, x);
      const Motion<double> expected = c.data.links()[link].v;
      c.accelerate(tangent);
      const double size = 1 + norm(expected.w) + norm(expected.v);
      ASSERT_LT(norm(w.w - expected.w) + norm(w.v - expected.v), 1e-10 * size) << "seed " << seed;
    }
  }
}

TEST(VelocityProducts, WithoutThetaAreMaba) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Case c(seed);
    c.theta_h[0] = 0;
    std::vector<double> expected(c.model.nv);
    maba<double>(c.model, c.data, c.s.qpos, c.s.qvel, c.s.tau, c.inertia, expected, c.external);
    ASSERT_LT(relative_error(c.accelerate(), expected), 1e-10) << "seed " << seed;
  }
}

/// A step of h seconds may use the explicit C where the energy that it adds, ½ h² Cᵀ M⁻¹ C, is negligible.
TEST(VelocityProducts, AreExplicitWhereTheyAddLittle) {
  const double h = 1.0 / 60;
  int explicit_ones = 0, others = 0, needless = 0;
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Case c(seed);
    if (c.model.nv == 0) continue;
    c.model.gravity = {0, 0, 0}, c.theta_h[0] = 0, c.inertia = c.model.armature;
    kinematics<double>(c.model, c.data, c.s.qpos, c.s.qvel);
    double fastest = 0;
    for (int i = 0; i < c.model.njoint(); ++i) fastest = std::max(fastest, norm(c.data.links()[i].v.w));
    if (fastest == 0) continue;
    const double wanted = std::pow(10.0, Random(seed).uniform(-3.4, -1.1)) / h;  // angles of 4e-4 to 0.08 in a step
    for (double& v : c.s.qvel) v *= wanted / fastest;
    const Matrix M = c.matrix();
    const Vector v = Map(c.s.qvel.data(), c.model.nv), C = c.bias(v, false);
    const Vector braked = lu_solve(M, C), momentum = M * v;
    const double gain = 0.5 * h * h * C.dot(braked), energy = 0.5 * v.dot(momentum);
    const std::vector<double> none(c.model.nv);
    std::vector<double> qacc(c.model.nv);
    if (VelocityProducts<double>(c.model, c.data)
            .accelerate_step(c.model, c.data, h, false, c.s.qpos, c.s.qvel, none, c.inertia, qacc)) {
      ++explicit_ones;
      EXPECT_LE(gain, 1e-6 * energy) << seed;
      EXPECT_LT(relative_error(qacc, plain(-braked)), 1e-9) << seed;
    } else {
      ++others, needless += gain < 1e-9 * energy;
    }
  }
  EXPECT_GT(explicit_ones, 50);
  EXPECT_GT(others, 50);
  EXPECT_LT(needless, 0.1 * others);
  std::printf("%d explicit, %d not, %d of these needlessly\n", explicit_ones, others, needless);
}

/// A free ball has none about its centre at any speed; a box has, and a ball whose frame is elsewhere.
TEST(VelocityProducts, OfAFreeBallAreNone) {
  const auto needed = [](const std::string& geom) {
    const Model model = compile(
        parse_mjcf("<mujoco><worldbody><body><freejoint/>" + geom + "</body></worldbody></mujoco>", "ball.xml", ""));
    const auto in = [&]<class R>(R, int worlds) {
      BasicData<R> data(model, worlds);
      VelocityProducts<R> products(model, data);
      const int lanes = data.width();
      for (int k = 0; k < 6 * lanes; ++k) data.qvel[std::size_t(k)] = R(20 + k / lanes);
      const AlignedVector<R> none(data.size(model.nv), R(0));
      AlignedVector<R> found(data.size(1));
      products.begin_step(model, data, R(0.01), VelocityProducts<R>::Use::where_needed, data.qpos, data.qvel, none,
                          none, data.qacc, found);
      for (const R lane : found) EXPECT_EQ(lane, found[0]);
      return found[0] != 0;
    };
    const bool one = in(1.0, 1);
    EXPECT_EQ(in(1.0, 4), one) << geom;
    EXPECT_EQ(in(1.0f, 1), one) << geom;
    return one;
  };
  EXPECT_FALSE(needed("<geom size='.1'/>"));
  EXPECT_FALSE(needed("<geom type='box' size='.1 .1 .1' euler='20 30 40'/>")) << "as a ball's";
  EXPECT_TRUE(needed("<geom type='box' size='.1 .2 .1'/>"));
  EXPECT_TRUE(needed("<geom size='.1' pos='.05 0 0'/>"));
}

/// A link that spins about its axis needs no pass with two matrices. The shank of a lying dog does so in every step.
TEST(VelocityProducts, OfALimbThatSpinsAboutItsAxisAreNone) {
  const Model model = compile(parse_mjcf(R"(<mujoco><worldbody><body><freejoint/><geom size='.1' mass='9'/>
      <body><joint type='ball'/><geom type='capsule' fromto='0 0 -.03 0 0 -.1' size='.02' mass='.5'/>
      </body></body></worldbody></mujoco>)",
                                         "limb", "."));
  Data data(model);
  const std::vector<double> none(model.nv);
  std::vector<double> qacc(model.nv);
  const auto is_explicit = [&](double spin, double swing) {
    data.qvel[8] = spin, data.qvel[6] = swing;
    return VelocityProducts<double>(model, data)
        .accelerate_step(model, data, 1.0 / 60, false, data.qpos, data.qvel, none, model.armature, qacc);
  };
  EXPECT_TRUE(is_explicit(3, 0));
  EXPECT_FALSE(is_explicit(3, 1));
  data.qvel[0] = 100;  // the velocity of the whole system does not matter
  EXPECT_FALSE(is_explicit(3, 1));
}

template <class R>
void expect_lanes_equal_scalar(unsigned seed, int worlds) {
  const Model model = random_tree(seed, with_size(seed));
  if (model.nv == 0) return;
  Random random(seed);
  const int nlink = model.njoint();
  BasicData<R> one(model), batch(model, worlds);
  const int all = batch.packs() * batch.width();
  const auto room = [&](int n) { return AlignedVector<R>(batch.size(n)); };
  AlignedVector<R> q = room(model.nq), v = room(model.nv), f = room(model.nv), K = room(model.nv), a = room(model.nv),
                   external = room(6 * nlink), tangent = room(36 * nlink), theta_h = room(1);
  std::vector<std::vector<R>> expected;
  for (int world = 0; world < all; ++world) {
    const State s = random_state(random, model);
    const auto cast = [](const std::vector<double>& x) { return std::vector<R>(x.begin(), x.end()); };
    const std::vector<R> qpos = cast(s.qpos), qvel = cast(s.qvel), tau = cast(s.tau),
                         inertia(model.nv, R(random.uniform(0, 1))), forces = cast(random_vector(random, 6 * nlink)),
                         B = cast(random_vector(random, 36 * nlink, 0.1)), g = {R(random.uniform(0, 0.1))};
    batch.set(q, model.nq, world, qpos), batch.set(v, model.nv, world, qvel), batch.set(f, model.nv, world, tau);
    batch.set(K, model.nv, world, inertia), batch.set(external, 6 * nlink, world, forces);
    batch.set(tangent, 36 * nlink, world, B), batch.set(theta_h, 1, world, g);
    std::vector<R> qacc(model.nv);
    const bool with_tangent = seed % 2;
    VelocityProducts<R>(model, one)
        .accelerate(model, one, g, qpos, qvel, tau, inertia, qacc, forces, with_tangent ? B : std::vector<R>{});
    expected.push_back(qacc);
  }
  VelocityProducts<R>(model, batch)
      .accelerate(model, batch, theta_h, q, v, f, K, a, external, seed % 2 ? In<R>(tangent) : In<R>());
  for (int world = 0; world < worlds; ++world) {
    std::vector<R> mine(model.nv);
    batch.get(a, model.nv, world, mine);
    ASSERT_EQ(mine, expected[world]) << "seed " << seed << ", world " << world;
  }
}

TEST(VelocityProducts, EveryLaneEqualsTheScalarRunToTheBit) {
  for (unsigned seed = 0; seed < 100; ++seed) expect_lanes_equal_scalar<double>(seed, 2 + int(seed % 11));
}

#ifndef TARSUS_DOUBLE_ONLY
TEST(VelocityProducts, EveryLaneEqualsTheScalarRunToTheBitInFloat) {
  for (unsigned seed = 0; seed < 100; ++seed) expect_lanes_equal_scalar<float>(seed, 2 + int(seed % 19));
}
#endif

}  // namespace
}  // namespace tarsus::test
