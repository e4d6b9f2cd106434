// Identities between the algorithms, on 1,000 random trees over all joint types, without stored reference numbers.
#include <gtest/gtest.h>

#include <Eigen/Dense>

#include "support/dense_solve.hpp"
#include "support/random_model.hpp"
#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus::test {
namespace {

constexpr int kTrees = 1000;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

Vector eigen(const std::vector<double>& v) { return Eigen::Map<const Vector>(v.data(), v.size()); }
std::vector<double> plain(const Vector& v) { return {v.data(), v.data() + v.size()}; }

/// One random tree with a state, and the calls that the identities compare.
struct Tree {
  Model model;
  Data data;
  State s;

  explicit Tree(unsigned seed, TreeOptions options = {})
      : model(random_tree(seed, with_size(seed, options))), data(model), s(draw(seed)) {}

  static TreeOptions with_size(unsigned seed, TreeOptions options) {
    options.bodies = 1 + int(seed % 17);
    options.chain = (seed % 5) / 4.0;
    return options;
  }
  State draw(unsigned seed) {
    Random random(seed + 100000);
    return random_state(random, model);
  }
  Matrix mass_matrix(const std::vector<double>& qpos) {
    Matrix M(model.nv, model.nv);
    crba<double>(model, data, qpos, {M.data(), std::size_t(M.size())});
    return M;
  }
  std::vector<double> bias(const std::vector<double>& qpos, const std::vector<double>& qvel) {
    std::vector<double> c(model.nv);
    bias_force<double>(model, data, qpos, qvel, c);
    return c;
  }
  std::vector<double> moved(double dt) {
    std::vector<double> q(model.nq);
    integrate<double>(model, data, s.qpos, s.qvel, dt, q);
    return q;
  }
};

/// The condition number of M multiplies rounding errors. Residual tolerances are relative to the forces, so 1e-11
/// leaves room for 1e5 rounding errors of a recursion with up to 17 bodies.
constexpr double kTight = 1e-11;

TEST(Identities, RneaOfAbaReturnsTau) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    std::vector<double> qacc(t.model.nv), tau(t.model.nv);
    aba<double>(t.model, t.data, t.s.qpos, t.s.qvel, t.s.tau, qacc);
    rnea<double>(t.model, t.data, t.s.qpos, t.s.qvel, qacc, tau);
    // The residual is relative to the largest force that cancels in it.
    const double scale = std::max(1.0, (t.mass_matrix(t.s.qpos).cwiseAbs() * eigen(qacc).cwiseAbs()).size()
                                           ? (t.mass_matrix(t.s.qpos).cwiseAbs() * eigen(qacc).cwiseAbs()).maxCoeff()
                                           : 1.0);
    for (int i = 0; i < t.model.nv; ++i)
      ASSERT_NEAR(tau[i], t.s.tau[i], kTight * scale) << "seed " << seed << " dof " << i;
  }
}

TEST(Identities, AbaIsDenseSolve) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    if (t.model.nv == 0) continue;
    std::vector<double> qacc(t.model.nv);
    aba<double>(t.model, t.data, t.s.qpos, t.s.qvel, t.s.tau, qacc);
    const Matrix M = t.mass_matrix(t.s.qpos);
    const Vector expected = spd_solve(M, eigen(t.s.tau) - eigen(t.bias(t.s.qpos, t.s.qvel)));
    ASSERT_LT(relative_error(qacc, plain(expected)), 1e-9) << "seed " << seed;
  }
}

TEST(Identities, CrbaTimesVectorIsRnea) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    std::vector<double> tau(t.model.nv);
    rnea<double>(t.model, t.data, t.s.qpos, t.s.qvel, t.s.qacc, tau);
    const Vector expected = t.mass_matrix(t.s.qpos) * eigen(t.s.qacc) + eigen(t.bias(t.s.qpos, t.s.qvel));
    ASSERT_LT(relative_error(tau, plain(expected)), kTight) << "seed " << seed;
  }
}

TEST(Identities, MassMatrixIsSymmetricPositiveDefinite) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    const Matrix M = t.mass_matrix(t.s.qpos);
    ASSERT_EQ((M - M.transpose()).cwiseAbs().sum(), 0) << "seed " << seed;
    ASSERT_TRUE(spd_solve(M, Vector::Ones(M.rows())).allFinite()) << "seed " << seed;
  }
}

TEST(Identities, MinvUsesTheFactorsOfAbaAndOfFactor) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    if (t.model.nv == 0) continue;
    const Vector expected = spd_solve(t.mass_matrix(t.s.qpos), eigen(t.s.tau));
    std::vector<double> x(t.model.nv), y(t.model.nv), qacc(t.model.nv);
    aba<double>(t.model, t.data, t.s.qpos, t.s.qvel, t.s.tau, qacc);
    minv<double>(t.model, t.data, t.s.tau, x);
    factor<double>(t.model, t.data, t.s.qpos, t.model.armature);
    minv<double>(t.model, t.data, t.s.tau, y);
    ASSERT_LT(relative_error(x, plain(expected)), 1e-9) << "seed " << seed;
    ASSERT_EQ(x, y) << "seed " << seed;
  }
}

/// dT/dt of the kinetic energy equals the power of all forces: τ·v with gravity inside bias.
TEST(Identities, EnergyRateIsPower) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed, {.springs = false});
    if (t.model.nv == 0) continue;
    std::vector<double> qacc(t.model.nv);
    aba<double>(t.model, t.data, t.s.qpos, t.s.qvel, t.s.tau, qacc);
    const double h = 1e-4;
    const auto total = [&](double dt) {
      // q(t + dt) to second order: with the velocity in the middle of the interval.
      std::vector<double> middle(t.s.qvel), end(t.s.qvel), q(t.model.nq);
      for (int i = 0; i < t.model.nv; ++i) middle[i] += 0.5 * dt * qacc[i], end[i] += dt * qacc[i];
      integrate<double>(t.model, t.data, t.s.qpos, middle, dt, q);
      kinematics<double>(t.model, t.data, q, end);
      return energy<double>(t.model, t.data, q, end).total();
    };
    const double rate = (total(h) - total(-h)) / (2 * h);
    const double power = eigen(t.s.tau).dot(eigen(t.s.qvel));
    const double scale = 1 + std::abs(power) + std::abs(total(0)) + eigen(qacc).squaredNorm();
    ASSERT_NEAR(rate, power, 1e-6 * scale) << "seed " << seed;
  }
}

/// Ṁ - 2C is skew: v·(Ṁ v - 2 C(q, v) v) = 0, where C v is the bias without gravity. This holds for quaternion joints
/// too, since both terms use the same quasi-velocities.
TEST(Identities, MassRateMinusTwiceCoriolisIsSkew) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    if (t.model.nv == 0) continue;
    const double h = 1e-5;
    const Vector v = eigen(t.s.qvel);
    const std::vector<double> zero(t.model.nv);
    const Vector coriolis = eigen(t.bias(t.s.qpos, t.s.qvel)) - eigen(t.bias(t.s.qpos, zero));
    const Matrix rate = (t.mass_matrix(t.moved(h)) - t.mass_matrix(t.moved(-h))) / (2 * h);
    const double scale =
        1 + std::abs(v.dot(rate * v)) + std::abs(v.dot(coriolis)) + t.mass_matrix(t.s.qpos).cwiseAbs().maxCoeff();
    ASSERT_NEAR(v.dot(rate * v), 2 * v.dot(coriolis), 1e-7 * scale) << "seed " << seed;
  }
}

TEST(Identities, JacobianIsTheDerivativeOfPoses) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    if (t.model.nv == 0) continue;
    const int body = int(seed) % (t.model.nbody() - 1) + 1;
    const Vec3d local{0.3, -0.2, 0.5};
    const auto pose = [&](double dt) {
      kinematics<double>(t.model, t.data, t.moved(dt));
      return body_pose(t.model, t.data, body);
    };
    const double h = 1e-6;
    const Transformd before = pose(-h), after = pose(h);
    kinematics<double>(t.model, t.data, t.s.qpos, t.s.qvel);
    const Transformd X = body_pose(t.model, t.data, body);
    const Vec3d p = X.R * local + X.p;
    const std::vector<double> point{p.x, p.y, p.z};
    Matrix J(6, t.model.nv);
    jacobian<double>(t.model, t.data, body, point, {J.data(), std::size_t(J.size())});
    const Vector twist = J * eigen(t.s.qvel);
    const Vec3d linear = (after.R * local + after.p - before.R * local - before.p) * (0.5 / h);
    const Vec3d angular = log_map(quaternion(after.R * transpose(before.R))) * (0.5 / h);
    const Motion<double> v = shift(body_velocity(t.model, t.data, body), X.R * local);
    for (int k = 0; k < 3; ++k) {
      ASSERT_NEAR(twist[k], angular[k], 1e-7 * (1 + std::abs(twist[k]))) << "seed " << seed;
      ASSERT_NEAR(twist[3 + k], linear[k], 1e-7 * (1 + std::abs(twist[3 + k]))) << "seed " << seed;
      ASSERT_NEAR(twist[k], v.w[k], 1e-12 * (1 + std::abs(v.w[k]))) << "seed " << seed;
      ASSERT_NEAR(twist[3 + k], v.v[k], 1e-11 * (1 + norm(v.v))) << "seed " << seed;
    }
  }
}

TEST(Identities, ExternalForceIsJacobianTransposeForce) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    if (t.model.nv == 0) continue;
    Random random(seed);
    std::vector<double> external(6 * t.model.njoint()), by_force(t.model.nv), by_tau(t.model.nv), tau = t.s.tau;
    kinematics<double>(t.model, t.data, t.s.qpos);
    const int link = random.index(t.model.njoint());
    const int body = t.model.joints[link].body;
    if (t.model.bodies[body].link != link) continue;  // an inner joint of a body with several
    const std::vector<double> wrench = random_vector(random, 6, 5);
    std::copy(wrench.begin(), wrench.end(), external.begin() + 6 * link);
    const Vec3d o = t.data.links()[link].o;
    Matrix J(6, t.model.nv);
    jacobian<double>(t.model, t.data, body, std::vector<double>{o.x, o.y, o.z}, {J.data(), std::size_t(J.size())});
    const Vector extra = J.transpose() * eigen(wrench);
    for (int i = 0; i < t.model.nv; ++i) tau[i] += extra[i];
    aba<double>(t.model, t.data, t.s.qpos, t.s.qvel, t.s.tau, by_force, external);
    aba<double>(t.model, t.data, t.s.qpos, t.s.qvel, tau, by_tau);
    ASSERT_LT(relative_error(by_force, by_tau), 1e-9) << "seed " << seed;
  }
}

TEST(Identities, MomentumRateIsExternalForce) {
  // A single free tree in gravity: the linear momentum changes by m g, the angular momentum about the centre of mass is
  // constant.
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed, {.springs = false, .welds = false});
    if (t.model.joints[0].type != JointType::free) continue;
    bool one_root = true;
    for (int i = 2; i < t.model.nbody(); ++i) one_root = one_root && t.model.bodies[i].parent != 0;
    for (const double a : t.model.armature) one_root = one_root && a == 0;
    if (!one_root) continue;
    std::vector<double> qacc(t.model.nv), tau(t.s.tau);
    std::fill(tau.begin(), tau.begin() + 6, 0.0);
    aba<double>(t.model, t.data, t.s.qpos, t.s.qvel, tau, qacc);
    const double h = 1e-4;
    const auto at = [&](double dt) {
      std::vector<double> middle(t.s.qvel), end(t.s.qvel), q(t.model.nq);
      for (int i = 0; i < t.model.nv; ++i) middle[i] += 0.5 * dt * qacc[i], end[i] += dt * qacc[i];
      integrate<double>(t.model, t.data, t.s.qpos, middle, dt, q);
      kinematics<double>(t.model, t.data, q, end);
      return momentum<double>(t.model, t.data);
    };
    const Momentum a = at(-h), b = at(h);
    const Vec3d force = (b.linear - a.linear) * (0.5 / h), moment = (b.angular - a.angular) * (0.5 / h);
    const double scale = 1 + eigen(qacc).squaredNorm();
    ASSERT_LT(norm(force - t.model.gravity * a.mass), 1e-6 * scale) << "seed " << seed;
    ASSERT_LT(norm(moment), 1e-6 * scale) << "seed " << seed;
  }
}

TEST(Identities, DifferenceInvertsIntegrate) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    std::vector<double> v(t.model.nv);
    difference(t.model, t.s.qpos, t.moved(1), v);
    ASSERT_LT(relative_error(v, t.s.qvel), 1e-12) << "seed " << seed;
  }
}

/// qpos with its quaternions scaled to the given norm.
std::vector<double> with_length(const Model& model, std::vector<double> qpos, double length) {
  for (const int place : model.quaternions) {
    for (int k = 0; k < 4; ++k) qpos[place + k] *= length;
  }
  return qpos;
}

TEST(Identities, QuaternionsMayHaveAnyLength) {
  for (unsigned seed = 0; seed < kTrees; ++seed) {
    Tree t(seed);
    const std::vector<double> end = t.moved(1);
    for (const double length : {0.0, 1e-100, 1e-9, 0.5, 7.0, 1e100}) {
      const std::vector<double> given = with_length(t.model, t.s.qpos, length);
      std::vector<double> same = length == 0 ? given : t.s.qpos;
      for (const int place : t.model.quaternions) same[place] = length == 0 ? 1 : same[place];
      std::vector<double> moved(t.model.nq), expected(t.model.nq), there(t.model.nv), v(t.model.nv);
      integrate<double>(t.model, t.data, given, t.s.qvel, 0.1, moved);
      integrate<double>(t.model, t.data, same, t.s.qvel, 0.1, expected);
      ASSERT_LT(relative_error(moved, expected), 1e-14) << "seed " << seed << ", length " << length;
      difference(t.model, given, end, there), difference(t.model, same, end, v);
      ASSERT_LT(relative_error(there, v), 1e-13) << "seed " << seed << ", length " << length;
      difference(t.model, end, given, there), difference(t.model, end, same, v);
      ASSERT_LT(relative_error(there, v), 1e-13) << "seed " << seed << ", length " << length;
      ASSERT_NEAR(energy<double>(t.model, t.data, given, t.s.qvel).spring,
                  energy<double>(t.model, t.data, same, t.s.qvel).spring, 1e-10)
          << "seed " << seed << ", length " << length;
    }
  }
}

TEST(Identities, CallsThatDoNotFitSayWhich) {
  Tree t(3);
  std::vector<double> short_one(t.model.nv - 1), right(t.model.nv);
  EXPECT_THROW(aba<double>(t.model, t.data, short_one, t.s.qvel, t.s.tau, right), ShapeError);
  try {
    aba<double>(t.model, t.data, t.s.qpos, short_one, t.s.tau, right);
    FAIL();
  } catch (const ShapeError& e) {
    EXPECT_NE(std::string(e.what()).find("qvel"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tarsus::test
