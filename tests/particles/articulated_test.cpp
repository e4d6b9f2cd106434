// Particles against the articulated tree, and the particles' constraint solvers on articulated loops, with ABA's mass
// matrix.
#include <gtest/gtest.h>

#include <cmath>

#include "md_reference.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus::md_test {
namespace {

/// Point masses m on massless rods of the given length, with hinges about y; the first link is along +x at angle 0.
Model point_pendulum(int links, double mass, double length, double gravity) {
  ModelSpec spec;
  spec.option.gravity = {0, 0, -gravity};
  for (int i = 1; i <= links; ++i) {
    BodySpec body("link" + std::to_string(i));
    body.parent = i - 1;
    if (i > 1) body.position = {length, 0, 0};
    JointSpec joint;
    joint.name = "hinge" + std::to_string(i), joint.axis = {0, 1, 0};
    body.joints.push_back(joint);
    // A point has no rotational inertia. This value keeps the model valid and changes no result here by 1e-10.
    body.inertial = InertialSpec{mass, {length, 0, 0}, diagonal3(1e-13, 1e-13, 1e-13), {}};
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

/// Positions of the masses from hinge angles.
std::vector<double> tips(const std::vector<double>& q, double length) {
  std::vector<double> out;
  double angle = 0, x = 0, z = 0;
  for (const double turn : q) {
    angle += turn;
    x += length * std::cos(angle), z -= length * std::sin(angle);
    out.insert(out.end(), {x, 0, z});
  }
  return out;
}

// pendulum2 starts with its first link along +x and its second straight up.
TEST(Articulated, DoublePendulumAsParticlesFollowsTheTree) {
  const Model model = point_pendulum(2, 1.0, 1.0, 9.81);
  Data data(model);
  std::vector<double> q{0, -kPi / 2}, v{0, 0};
  const std::vector<double> none(2, 0.0);
  const double time = 1.0;
  const int fine = 20000;
  const auto rate = [&](const std::vector<double>& at_q, const std::vector<double>& at_v) {
    std::vector<double> a(2);
    aba<double>(model, data, at_q, at_v, none, a);
    return a;
  };
  const auto plus = [](std::vector<double> x, const std::vector<double>& y, double s) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] += s * y[i];
    return x;
  };
  for (int k = 0; k < fine; ++k) {
    const double h = time / fine;
    const auto a1 = rate(q, v), v2 = plus(v, a1, h / 2), a2 = rate(plus(q, v, h / 2), v2), v3 = plus(v, a2, h / 2);
    const auto a3 = rate(plus(q, v2, h / 2), v3), v4 = plus(v, a3, h), a4 = rate(plus(q, v3, h), v4);
    for (int i = 0; i < 2; ++i) {
      q[i] += h / 6 * (v[i] + 2 * v2[i] + 2 * v3[i] + v4[i]);
      v[i] += h / 6 * (a1[i] + 2 * a2[i] + 2 * a3[i] + a4[i]);
    }
  }
  const std::vector<double> expected = tips(q, 1.0);
  std::vector<double> errors;
  for (const int steps : {1000, 2000, 4000, 8000}) {
    ParticleSystem system = make_builtin_system("pendulum2");
    VelocityVerlet verlet(system, {.timestep = time / steps, .tolerance = 1e-14});
    run_steps(verlet, steps);
    errors.push_back(largest_difference(std::span<const double>(system.position).subspan(3), expected));
  }
  for (std::size_t k = 1; k < errors.size(); ++k)
    EXPECT_NEAR(std::log2(errors[k - 1] / errors[k]), 2.0, 0.05) << "halving " << k;
  EXPECT_LT(errors.back(), 1e-5);
}

/// M^-1 of a tree by ABA's cached factors.
class TreeMass final : public MassOperator {
 public:
  TreeMass(const Model& model, Data& data) : model_(model), data_(data) {}
  int size() const override { return model_.nv; }
  void apply_inverse(std::span<const double> in, std::span<double> out) const override {
    minv<double>(model_, data_, in, out);
  }

 private:
  const Model& model_;
  Data& data_;
};

/// The last link's end stays at a point of the xz plane: a closed loop.
class TipLoop final : public Problem {
 public:
  TipLoop(int links, double length, double x, double z) : links_(links), length_(length), target_{x, z} {
    for (int row = 0; row < 2; ++row) {
      for (int c = 0; c < links; ++c) pattern_.column.push_back(c);
      pattern_.start.push_back(pattern_.nonzeros());
    }
  }
  int nx() const override { return links_; }
  int nv() const override { return links_; }
  const RowPattern& pattern() const override { return pattern_; }
  double evaluate_row(int row, std::span<const double> q, std::span<double> gradient) const override {
    const std::vector<double> at = tips({q.begin(), q.end()}, length_);
    const double tip[2] = {at[3 * links_ - 3], at[3 * links_ - 1]};
    for (int c = 0; c < links_ && !gradient.empty(); ++c) {
      const double hinge[2] = {c ? at[3 * c - 3] : 0.0, c ? at[3 * c - 1] : 0.0};
      gradient[c] = row == 0 ? tip[1] - hinge[1] : -(tip[0] - hinge[0]);  // rotation about +y
    }
    return tip[row] - target_[row];
  }
  double scale(int) const override { return length_; }
  double rounding_floor(int, std::span<const double>) const override { return 1e-15 * links_; }
  std::string describe(int row) const override { return row == 0 ? "tip x" : "tip z"; }
  double curvature(int) const override { return 0; }

 private:
  int links_;
  double length_, target_[2];
  RowPattern pattern_;
};

TEST(Articulated, LoopsAreClosedByTheSameSolversWithAbaMass) {
  const int links = 5;
  const Model model = point_pendulum(links, 1.0, 0.5, 9.81);
  Data data(model);
  const std::vector<double> q0{0.3, 0.5, -0.4, 0.9, 0.2}, no_inertia(links, 0.0);
  const std::vector<double> closed = tips(q0, 0.5);
  const TipLoop loop(links, 0.5, closed[3 * links - 3], closed[3 * links - 1]);
  factor<double>(model, data, q0, no_inertia);
  const TreeMass mass(model, data);
  for (const std::string_view name : solver_names()) {
    SCOPED_TRACE(std::string(name));
    const auto solver = make_solver(name);
    std::vector<double> q = q0, v{0.3, -0.2, 0.5, 0.1, -0.4}, lambda(2), mu(2);
    for (int i = 0; i < links; ++i) q[i] += 0.02 * v[i];
    const std::vector<double> free_q = q, free_v = v;
    const SolveReport position = solver->solve_positions(loop, mass, q0, q, lambda, {.tolerance = 1e-12});
    ASSERT_TRUE(position.ok()) << describe(position, loop);
    EXPECT_LE(largest_violation_at(loop, q).value, 1e-12);
    const SolveReport velocity = solver->solve_velocities(loop, mass, q, v, mu, {.tolerance = 1e-13});
    ASSERT_TRUE(velocity.ok()) << describe(velocity, loop);
    // Against the dense mass matrix: M (q - q') = J(q0)ᵀ λ̃ and M (v - v') = J(q)ᵀ μ̃.
    std::vector<double> m(links * links);
    crba<double>(model, data, q0, m);
    factor<double>(model, data, q0, no_inertia);
    std::vector<double> sigma(2), j0(2 * links), j(2 * links);
    loop.evaluate(q0, sigma, j0);
    loop.evaluate(q, sigma, j);
    for (int i = 0; i < links; ++i) {
      double moved = 0, kicked = 0;
      for (int k = 0; k < links; ++k)
        moved += m[i * links + k] * (q[k] - free_q[k]), kicked += m[i * links + k] * (v[k] - free_v[k]);
      EXPECT_NEAR(moved, j0[i] * lambda[0] + j0[links + i] * lambda[1], 1e-12);
      EXPECT_NEAR(kicked, j[i] * mu[0] + j[links + i] * mu[1], 1e-12);
    }
  }
}

}  // namespace
}  // namespace tarsus::md_test
