// Every kind of row: gradients, errors, and every solver on each kind.
#include "tarsus/particles/constraint_set.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "tarsus/base/error.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/particles/particle_newton.hpp"
#include "tarsus/particles/system.hpp"
#include "tarsus/solver/redundancy.hpp"

namespace tarsus {
namespace {

double saddle(std::span<const double> x, std::span<double> gradient) {
  if (!gradient.empty()) gradient[0] = 2 * x[0], gradient[1] = -2 * x[1], gradient[2] = -1;
  return x[0] * x[0] - x[1] * x[1] - x[2];
}

double triple_product(std::span<const double> x, std::span<double> gradient) {
  const Vec3d a{x[0], x[1], x[2]}, b{x[3], x[4], x[5]}, c{x[6], x[7], x[8]};
  if (!gradient.empty()) {
    const Vec3d parts[3] = {cross(b, c), cross(c, a), cross(a, b)};
    for (int k = 0; k < 9; ++k) gradient[k] = parts[k / 3][k % 3];
  }
  return dot(a, cross(b, c));
}

/// Seven particles at arbitrary places with one row of each kind, all of which hold at the start.
struct Zoo {
  std::vector<double> x, inverse;
  ConstraintSet set{7};

  Zoo() {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> value(-1, 1);
    for (int k = 0; k < 21; ++k) x.push_back(value(random) + k / 3 % 2);
    for (int i = 0; i < 7; ++i) inverse.push_back(1 / (1.0 + i));
    const auto at = [&](int i) { return Vec3d{x[3 * i], x[3 * i + 1], x[3 * i + 2]}; };
    set.add_distance(0, 1, norm(at(0) - at(1)));
    set.add_angle(1, 2, 3, bond_angle(std::span<const double, 9>(x.data() + 3, 9), {}));
    set.add_dihedral(2, 3, 4, 5, torsion_angle(std::span<const double, 12>(x.data() + 6, 12), {}));
    set.add_plane(0, at(0), {1, 2, 3}, 1.0);
    set.add_sphere(6, {0.1, 0.2, 0.3}, norm(at(6) - Vec3d{0.1, 0.2, 0.3}));
    const double height = saddle(std::span<const double>(x.data() + 15, 3), {});
    set.add_surface(
        5, [height](std::span<const double> p, std::span<double> g) { return saddle(p, g) - height; }, 1.0);
    set.add_linear({1, 4}, {{1, 0, 2}, {0, -1, 0.5}}, dot(Vec3d{1, 0, 2}, at(1)) + dot(Vec3d{0, -1, 0.5}, at(4)), 1.0);
    std::vector<double> packed;
    for (const int i : {3, 4, 6}) packed.insert(packed.end(), x.begin() + 3 * i, x.begin() + 3 * i + 3);
    const double volume = triple_product(packed, {});
    set.add_user(
        {3, 4, 6}, [volume](std::span<const double> p, std::span<double> g) { return triple_product(p, g) - volume; },
        1.0, "volume");
  }
  DiagonalMass mass() const {
    std::vector<double> thrice;
    for (const double w : inverse) thrice.insert(thrice.end(), 3, w);
    return DiagonalMass(thrice);
  }
};

TEST(ConstraintSet, GradientsAreThoseOfFiniteDifferences) {
  Zoo zoo;
  for (int row = 0; row < zoo.set.nrow(); ++row) {
    const int from = zoo.set.pattern().start[row], to = zoo.set.pattern().start[row + 1];
    std::vector<double> gradient(to - from);
    EXPECT_NEAR(zoo.set.evaluate_row(row, zoo.x, gradient), 0.0, 1e-14) << zoo.set.describe(row);
    for (int p = from; p < to; ++p) {
      const double h = 1e-6;
      std::vector<double> up = zoo.x, down = zoo.x;
      up[zoo.set.pattern().column[p]] += h, down[zoo.set.pattern().column[p]] -= h;
      const double slope = (zoo.set.evaluate_row(row, up, {}) - zoo.set.evaluate_row(row, down, {})) / (2 * h);
      EXPECT_NEAR(gradient[p - from], slope, 1e-8 * (1 + std::abs(slope))) << zoo.set.describe(row);
    }
  }
}

TEST(ConstraintSet, EverySolverSolvesEveryKind) {
  for (const char* name : {"newton", "newton_general", "m_shake", "shake", "shake_matrix"}) {
    SCOPED_TRACE(name);
    Zoo zoo;
    const DiagonalMass mass = zoo.mass();
    const auto solver = make_particle_solver(name, zoo.set, zoo.inverse);
    std::mt19937 random(7);
    std::uniform_real_distribution<double> value(-0.02, 0.02);
    std::vector<double> x = zoo.x, v(21), lambda(zoo.set.nrow()), mu(zoo.set.nrow());
    for (double& c : x) c += value(random);
    for (double& c : v) c = value(random);
    const std::vector<double> free_x = x, free_v = v;
    const SolveReport position = solver->solve_positions(zoo.set, mass, zoo.x, x, lambda, {.tolerance = 1e-12});
    ASSERT_TRUE(position.ok()) << describe(position, zoo.set);
    EXPECT_LE(largest_violation_at(zoo.set, x).value, 1e-12);
    const SolveReport velocity = solver->solve_velocities(zoo.set, mass, x, v, mu, {.tolerance = 1e-12});
    ASSERT_TRUE(velocity.ok()) << describe(velocity, zoo.set);
    // The multipliers give the changes: x - x' = M^-1 J(x0)ᵀ λ̃, v - v' = M^-1 J(x)ᵀ μ̃, and J v = 0.
    std::vector<double> moved(21, 0.0), kicked(21, 0.0);
    for (int row = 0; row < zoo.set.nrow(); ++row) {
      const int from = zoo.set.pattern().start[row], to = zoo.set.pattern().start[row + 1];
      std::vector<double> old_gradient(to - from), gradient(to - from);
      zoo.set.evaluate_row(row, zoo.x, old_gradient);
      zoo.set.evaluate_row(row, x, gradient);
      double rate = 0;
      for (int p = from; p < to; ++p) {
        const int c = zoo.set.pattern().column[p];
        moved[c] += zoo.inverse[c / 3] * old_gradient[p - from] * lambda[row];
        kicked[c] += zoo.inverse[c / 3] * gradient[p - from] * mu[row];
        rate += gradient[p - from] * v[c];
      }
      EXPECT_NEAR(rate, 0.0, 1e-11) << zoo.set.describe(row);
    }
    for (int c = 0; c < 21; ++c) {
      EXPECT_NEAR(x[c] - free_x[c], moved[c], 1e-12);
      EXPECT_NEAR(v[c] - free_v[c], kicked[c], 1e-12);
    }
  }
}

TEST(ConstraintSet, PinnedParticlesDoNotMove) {
  for (const char* name : {"newton", "newton_general", "m_shake", "shake"}) {
    ConstraintSet set(4);
    set.add_distance(0, 1, 1), set.add_distance(1, 2, 1), set.add_distance(2, 3, 1);
    const std::vector<double> inverse{0, 1, 1, 0}, x0{0, 0, 0, 0.8, 0.6, 0, 1.8, 0.6, 0, 2.6, 0, 0};
    std::vector<double> thrice;
    for (const double w : inverse) thrice.insert(thrice.end(), 3, w);
    const DiagonalMass mass(thrice);
    std::vector<double> x = x0, lambda(3);
    x[4] += 0.05, x[8] += 0.02;
    const SolveReport report = make_particle_solver(name, set, inverse)->solve_positions(set, mass, x0, x, lambda, {});
    ASSERT_TRUE(report.ok()) << name << ": " << describe(report, set);
    EXPECT_LE(largest_violation_at(set, x).value, 1e-12);
    for (const int c : {0, 1, 2, 9, 10, 11}) EXPECT_EQ(x[c], x0[c]);
  }
}

TEST(ConstraintSet, CentreOfMassStays) {
  ConstraintSet set(3);
  const std::vector<double> mass_list{1, 2, 3};
  set.add_distance(0, 1, 1);
  const int first = set.add_centre_of_mass(mass_list, {0.5, 0, 0}, 1.0);
  EXPECT_EQ(first, 1);
  const std::vector<double> x0{0, 0, 0, 1, 0, 0, 0.3333333333333333, 0, 0};
  EXPECT_LT(largest_violation_at(set, x0).value, 1e-15);
}

TEST(ConstraintSet, RefusesWhatMakesNoSense) {
  ConstraintSet set(3);
  EXPECT_THROW(set.add_distance(0, 0, 1), ValueError);
  EXPECT_THROW(set.add_distance(0, 3, 1), ValueError);
  EXPECT_THROW(set.add_distance(-1, 1, 1), ValueError);
  for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(set.add_distance(0, 1, bad), ValueError) << bad;
    EXPECT_THROW(set.add_sphere(0, {0, 0, 0}, bad), ValueError) << bad;
    EXPECT_THROW(set.add_plane(0, {0, 0, 0}, {0, 0, 1}, bad), ValueError) << bad;
  }
  EXPECT_THROW(set.add_angle(0, 1, 2, kPi), ValueError);
  EXPECT_THROW(set.add_angle(0, 1, 2, 0), ValueError);
  EXPECT_THROW(set.add_dihedral(0, 1, 2, 1, 0), ValueError);
  EXPECT_THROW(set.add_plane(0, {0, 0, 0}, {0, 0, 0}, 1), ValueError);
  EXPECT_THROW(set.add_surface(0, nullptr, 1), ValueError);
  EXPECT_EQ(set.nrow(), 0);
  set.add_distance(0, 1, 1);
  for (const int row : {-1, 1, 5}) EXPECT_THROW(set.remove(std::array{row}), ValueError) << row;
  EXPECT_EQ(set.nrow(), 1);
  EXPECT_THROW(make_solver("lincs"), ValueError);
}

TEST(ConstraintSet, TheFastPathsTakeWhatTheyShould) {
  // A bond, a triangle, a chain of 4, a ring of 4, a star of 3, an angle with its bonds.
  ConstraintSet set(24);
  set.add_distance(0, 1, 1);
  set.add_distance(2, 3, 1), set.add_distance(3, 4, 1), set.add_distance(4, 2, 1);
  for (int i = 5; i < 9; ++i) set.add_distance(i, i + 1, 1);
  for (int i = 0; i < 4; ++i) set.add_distance(10 + i, 10 + (i + 1) % 4, 1);
  for (int i = 1; i < 4; ++i) set.add_distance(14, 14 + i, 1);
  set.add_distance(18, 19, 1), set.add_distance(19, 20, 1), set.add_angle(18, 19, 20, 1.0);
  const std::vector<double> inverse(24, 1.0);
  const ParticleNewtonPlan plan = ParticleNewton(set, inverse).plan();
  EXPECT_EQ(plan.bonds, 1);
  EXPECT_EQ(plan.triangles, 1);
  EXPECT_EQ(plan.chains, 1);
  EXPECT_EQ(plan.chain_rows, 4);
  EXPECT_EQ(plan.general_rows, 4 + 3 + 3);
}

// Many random molecules of each shape: the fast paths and the general solver give the same result.
TEST(ConstraintSet, FastPathsEqualTheGeneralSolver) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> value(-1, 1);
  for (int round = 0; round < 20; ++round) {
    std::vector<double> x;
    std::vector<std::array<int, 2>> pairs;
    int n = 0;
    for (int molecule = 0; molecule < 7; ++molecule) {
      const int kind = static_cast<int>(random() % 4), size = kind == 0   ? 2
                                                              : kind == 1 ? 3
                                                                          : 3 + static_cast<int>(random() % 12);
      for (int a = 0; a < size; ++a) {
        for (int c = 0; c < 3; ++c) x.push_back(value(random) + (c == 0 ? a : 0) + 30 * molecule);
        if (a > 0) pairs.push_back({n + a - 1, n + a});
      }
      if (kind == 1) pairs.push_back({n, n + 2});
      n += size;
    }
    ConstraintSet set(n);
    std::vector<double> inverse;
    for (const auto& [i, j] : pairs) {
      double d2 = 0;
      for (int c = 0; c < 3; ++c) d2 += (x[3 * i + c] - x[3 * j + c]) * (x[3 * i + c] - x[3 * j + c]);
      set.add_distance(i, j, std::sqrt(d2));
    }
    for (int i = 0; i < n; ++i) inverse.push_back(random() % 10 == 0 ? 0.0 : 0.1 + std::abs(value(random)));
    std::vector<double> thrice;
    for (const double w : inverse) thrice.insert(thrice.end(), 3, w);
    std::vector<int> dead;
    for (int k = 0; k < set.nrow(); ++k) {
      if (inverse[set.row_particles(k)[0]] == 0 && inverse[set.row_particles(k)[1]] == 0) dead.push_back(k);
    }
    set.remove(dead);
    const DiagonalMass mass(thrice);
    std::vector<double> free_x = x, free_v(x.size());
    for (std::size_t c = 0; c < x.size(); ++c) {
      if (thrice[c] != 0) free_x[c] += 0.03 * value(random), free_v[c] = value(random);
    }
    std::vector<double> xa = free_x, xb = free_x, va = free_v, vb = free_v;
    std::vector<double> la(set.nrow()), lb = la, ma = la, mb = la;
    const auto fast = make_particle_solver("newton", set, inverse),
               general = make_particle_solver("newton_general", set, inverse);
    const SolveOptions options{.tolerance = 1e-14};
    ASSERT_TRUE(fast->solve_positions(set, mass, x, xa, la, options).ok());
    ASSERT_TRUE(general->solve_positions(set, mass, x, xb, lb, options).ok());
    ASSERT_TRUE(fast->solve_velocities(set, mass, xa, va, ma, options).ok());
    ASSERT_TRUE(general->solve_velocities(set, mass, xb, vb, mb, options).ok());
    for (std::size_t c = 0; c < x.size(); ++c) {
      ASSERT_NEAR(xa[c], xb[c], 1e-10) << "round " << round;
      ASSERT_NEAR(va[c], vb[c], 1e-9) << "round " << round;
    }
    for (int k = 0; k < set.nrow(); ++k) {
      ASSERT_NEAR(la[k], lb[k], 1e-8 * (1 + std::abs(lb[k]))) << "round " << round << " row " << k;
      ASSERT_NEAR(ma[k], mb[k], 1e-8 * (1 + std::abs(mb[k]))) << "round " << round << " row " << k;
    }
  }
}

}  // namespace
}  // namespace tarsus
