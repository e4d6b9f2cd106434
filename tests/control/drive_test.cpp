// Stable PD against the dense solve of eq. 7, against closed forms, and at its stability bound; effects of damping.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <cmath>

#include "support/dense_solve.hpp"
#include "support/random_model.hpp"
#include "tarsus/control/drive.hpp"

namespace tarsus::test {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;
Vector eigen(const std::vector<double>& v) { return Eigen::Map<const Vector>(v.data(), v.size()); }
std::vector<double> plain(const Vector& v) { return {v.data(), v.data() + v.size()}; }

/// The position error of every DoF after h q̇, by code that is independent of the kernels' polynomials.
std::vector<double> error_after(const Model& model, const std::vector<double>& qpos, const std::vector<double>& qvel,
                                const std::vector<double>& target, double h) {
  std::vector<double> e(model.nv);
  const auto rotation = [&](int q, int v) {
    const Quatd now{qpos[q], qpos[q + 1], qpos[q + 2], qpos[q + 3]},
        goal{target[q], target[q + 1], target[q + 2], target[q + 3]};
    const Vec3d w = log_map(conjugate(goal) * now * exp_map(Vec3d{qvel[v], qvel[v + 1], qvel[v + 2]} * h));
    e[v] = w.x, e[v + 1] = w.y, e[v + 2] = w.z;
  };
  for (const Joint& joint : model.joints) {
    const int q = joint.qpos, v = joint.qvel;
    const int linear = joint.type == JointType::free ? 3 : joint.nv() == 1 ? 1 : 0;
    for (int k = 0; k < linear; ++k) e[v + k] = qpos[q + k] + h * qvel[v + k] - target[q + k];
    if (joint.nv() > 1) rotation(q + linear, v + linear);
  }
  return e;
}

/// Isotropic gains at balls and free joints, any at hinges.
Drives random_drives(Random& random, const Model& model, bool by_source) {
  Drives drives = Drives::none(model);
  drives.plain = by_source;
  for (const Joint& joint : model.joints) {
    const double kp = random.uniform(0, 2000), kd = random.uniform(0, 200);
    const double root_kp = random.uniform(0, 2000), root_kd = random.uniform(0, 200);
    for (int k = 0; k < joint.nv(); ++k) {
      const bool linear = joint.type == JointType::free && k < 3;
      drives.kp[joint.qvel + k] = linear ? root_kp : kp, drives.kd[joint.qvel + k] = linear ? root_kd : kd;
    }
  }
  return drives;
}

void expect_dense(bool by_source) {
  for (unsigned seed = 0; seed < 1000; ++seed) {
    const Model model = random_tree(seed, {.bodies = 1 + int(seed % 15), .springs = false, .chain = (seed % 5) / 4.0});
    const int nv = model.nv;
    if (nv == 0) continue;
    Random random(seed);
    const State s = random_state(random, model);
    const std::vector<double> target = random_qpos(random, model), target_velocity = random_vector(random, nv);
    const Drives drives = random_drives(random, model, by_source);
    const double h = random.uniform(1.0 / 600, 1.0 / 30);
    Data data(model);
    std::vector<double> Q(nv), K(nv), qacc(nv), force(nv);
    drive_terms<double>(model, data, drives, h, s.qpos, s.qvel, target, target_velocity, s.tau, Q, K);
    maba<double>(model, data, s.qpos, s.qvel, Q, K, qacc);
    drive_force<double>(model, data, drives, h, s.qpos, s.qvel, target, target_velocity, qacc, force);

    Matrix M(nv, nv);
    crba<double>(model, data, s.qpos, {M.data(), std::size_t(M.size())});
    std::vector<double> C(nv);
    bias_force<double>(model, data, s.qpos, s.qvel, C);
    const std::vector<double> e = error_after(model, s.qpos, s.qvel, target, h);
    Matrix hat = M;
    Vector rhs = eigen(s.tau) - eigen(C);
    for (int i = 0; i < nv; ++i) {
      hat(i, i) += h * drives.kd[i] + (by_source ? 0 : h * h * drives.kp[i]);
      rhs[i] += -drives.kp[i] * e[i] - drives.kd[i] * (s.qvel[i] - target_velocity[i]);
    }
    ASSERT_LT(relative_error(qacc, plain(spd_solve(hat, rhs))), 1e-10) << "seed " << seed;
    // τ closes M q̈ + C = τ. Forces of size kp e cancel in it.
    const Vector closed = M * eigen(qacc) + eigen(C) - eigen(s.tau);
    ASSERT_LT(relative_error(force, plain(closed)), 1e-9) << "seed " << seed;
  }
}

TEST(Drives, MabaIsItsDenseSolve) { expect_dense(false); }
TEST(Drives, PlainMabaIsTheDenseSolveOfEquation7) { expect_dense(true); }

TEST(Drives, NoGainsIsAbaToTheBit) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Model model = random_tree(seed, {.springs = false});
    Random random(seed);
    const State s = random_state(random, model);
    Data data(model);
    std::vector<double> Q(model.nv), K(model.nv), with(model.nv), without(model.nv);
    drive_terms<double>(model, data, Drives::none(model), 1.0 / 30, s.qpos, s.qvel, random_qpos(random, model), {},
                        s.tau, Q, K);
    maba<double>(model, data, s.qpos, s.qvel, Q, K, with);
    aba<double>(model, data, s.qpos, s.qvel, s.tau, without);
    ASSERT_EQ(with, without) << "seed " << seed;
  }
}

TEST(Drives, InfiniteDampingFreezesTheJoint) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    const Model model = random_tree(seed, {.springs = false});
    if (model.nv == 0) continue;
    Random random(seed);
    const State s = random_state(random, model);
    Drives drives = Drives::none(model);
    std::fill(drives.kd.begin(), drives.kd.end(), 1e12);
    const double h = 1.0 / 60;
    Data data(model);
    std::vector<double> Q(model.nv), K(model.nv), qacc(model.nv);
    drive_terms<double>(model, data, drives, h, s.qpos, s.qvel, s.qpos, {}, s.tau, Q, K);
    maba<double>(model, data, s.qpos, s.qvel, Q, K, qacc);
    // The step removes the whole velocity: v + h q̈ = O(force / kd).
    for (int i = 0; i < model.nv; ++i) ASSERT_NEAR(s.qvel[i] + h * qacc[i], 0, 1e-6) << "seed " << seed;
  }
}

TEST(Drives, DampingNeverDoesPositiveWork) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Model model = random_tree(seed, {.springs = false});
    if (model.nv == 0) continue;
    Random random(seed);
    const State s = random_state(random, model);
    Drives drives = random_drives(random, model, false);
    std::fill(drives.kp.begin(), drives.kp.end(), 0.0);
    const double h = 1.0 / 30;
    Data data(model);
    std::vector<double> Q(model.nv), K(model.nv), qacc(model.nv), force(model.nv);
    drive_terms<double>(model, data, drives, h, s.qpos, s.qvel, s.qpos, {}, s.tau, Q, K);
    maba<double>(model, data, s.qpos, s.qvel, Q, K, qacc);
    drive_force<double>(model, data, drives, h, s.qpos, s.qvel, s.qpos, {}, qacc, force);
    double power = 0, scale = 1;
    for (int i = 0; i < model.nv; ++i) {
      const double end = s.qvel[i] + h * qacc[i];
      power += force[i] * end, scale += std::abs(force[i] * end);
    }
    ASSERT_LE(power, 1e-9 * scale) << "seed " << seed;
  }
}

Model one_slider(double mass, double stiffness = 0, double damping = 0) {
  ModelSpec spec;
  spec.option.gravity = {0, 0, 0};
  BodySpec body("cart");
  body.parent = 0;
  JointSpec slide;
  slide.name = "x", slide.type = JointType::slide, slide.axis = {1, 0, 0};
  slide.stiffness = stiffness, slide.damping = damping;
  body.joints.push_back(slide);
  body.inertial = InertialSpec{mass, {0, 0, 0}, diagonal3(mass, mass, mass), {}};
  spec.bodies.push_back(body);
  return compile(std::move(spec));
}

/// Spectral radius of one step of the scalar drive, from its action on two states.
double growth(const Model& model, const Drives& drives, double h) {
  Data data(model);
  Eigen::Matrix2d A;
  for (int column = 0; column < 2; ++column) {
    const std::vector<double> q{column == 0 ? 1.0 : 0.0}, v{column == 1 ? 1.0 : 0.0}, zero{0.0};
    std::vector<double> Q(1), K(1), a(1);
    drive_terms<double>(model, data, drives, h, q, v, zero, {}, {}, Q, K);
    maba<double>(model, data, q, v, Q, K, a);
    const double v1 = v[0] + h * a[0];
    A(0, column) = q[0] + h * v1, A(1, column) = v1;
  }
  const double middle = (A(0, 0) + A(1, 1)) / 2, half = (A(0, 0) - A(1, 1)) / 2,
               square = half * half + A(0, 1) * A(1, 0);
  return square >= 0 ? std::abs(middle) + std::sqrt(square) : std::sqrt(middle * middle - square);
}

TEST(Drives, PlainIsStableExactlyBelowItsBound) {
  // Stable where 3 h² kp < 4 m + 2 h kd.
  Random random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    const double m = random.uniform(0.01, 5), kd = random.uniform(0, 100), h = random.uniform(0.001, 0.2);
    const double bound = (4 * m + 2 * h * kd) / (3 * h * h);
    const Model model = one_slider(m);
    EXPECT_LE(growth(model, {{0.999 * bound}, {kd}, true}, h), 1 + 1e-9);
    EXPECT_GT(growth(model, {{1.001 * bound}, {kd}, true}, h), 1);
    EXPECT_LE(growth(model, {{1000 * bound}, {kd}, false}, h), 1 + 1e-9);
  }
}

TEST(Drives, MatchesTheScalarClosedForm) {
  const double m = 2, kp = 300, kd = 10, h = 0.02, q = 0.3, v = -1, goal = 1;
  const Model model = one_slider(m);
  Data data(model);
  std::vector<double> Q(1), K(1), a(1);
  const auto acceleration = [&](bool by_source) {
    drive_terms<double>(model, data, {{kp}, {kd}, by_source}, h, std::vector{q}, std::vector{v}, std::vector{goal}, {},
                        {}, Q, K);
    maba<double>(model, data, std::vector{q}, std::vector{v}, Q, K, a);
    return a[0];
  };
  EXPECT_NEAR(acceleration(true), (-kp * (q + h * v - goal) - kd * v) / (m + h * kd), 1e-12);
  EXPECT_NEAR(acceleration(false), (-kp * (q + h * v - goal) - kd * v) / (m + h * kd + h * h * kp), 1e-12);
}

TEST(Drives, ModelSpringsAndDampersAreImplicit) {
  const Model model = one_slider(1, 1e9, 1e3);
  EXPECT_LE(growth(model, Drives::none(model), 0.1), 1);
}

TEST(Drives, LogarithmIsAccurateOverTheWholeArc) {
  // A ball drive of unit stiffness at rest gives Q = -Log. Compared with atan2 over all angles up to π, for both signs
  // of q.
  ModelSpec spec;
  BodySpec body("ball");
  body.parent = 0;
  JointSpec ball;
  ball.type = JointType::ball;
  body.joints.push_back(ball);
  body.inertial = InertialSpec{1, {0, 0, 0}, diagonal3(1.0, 1.0, 1.0), {}};
  spec.bodies.push_back(body);
  const Model model = compile(std::move(spec));
  Data data(model);
  Drives drives = Drives::none(model);
  std::fill(drives.kp.begin(), drives.kp.end(), 1.0);
  const std::vector<double> identity{1, 0, 0, 0}, rest(3);
  Random random(3);
  for (int i = 0; i <= 2000; ++i) {
    const double angle = kPi * i / 2000 * (1 - 1e-12), sign = i % 2 ? 1 : -1;
    const Vec3d axis = random.direction();
    const Quatd q = axis_angle(axis, angle);
    std::vector<double> Q(3), K(3);
    drive_terms<double>(model, data, drives, 1e-9, std::vector{sign * q.w, sign * q.x, sign * q.y, sign * q.z}, rest,
                        identity, {}, {}, Q, K);
    EXPECT_NEAR(norm(Vec3d{Q[0], Q[1], Q[2]} + axis * angle), 0, 2e-15) << angle;
  }
}

TEST(Drives, BadGainsAndStepsAreNamed) {
  const Model model = one_slider(1);
  EXPECT_THROW((Drives{{-1}, {0}}.check(model)), ValueError);
  EXPECT_THROW((Drives{{1, 2}, {0}}.check(model)), ShapeError);
  try {
    Drives{{0}, {std::nan("")}}.check(model);
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("kd of joint \"x\""), std::string::npos) << e.what();
  }
  Data data(model);
  std::vector<double> one(1);
  EXPECT_THROW(drive_terms<double>(model, data, Drives::none(model), -1, one, one, one, {}, {}, one, one), ValueError);
}

}  // namespace
}  // namespace tarsus::test
