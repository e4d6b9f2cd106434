// The natural map of a term's law against its definition: N = y - P(z), z = y - (u + R (y - c) - b)/ρ.
#include "solver/law.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>

namespace tarsus::test {
namespace {

using Numbers = std::array<double, kTermRows>;

struct Case {
  Term term;
  std::array<TermRow, kTermRows> rows;
  Numbers u{}, y{};
};

double length(const double* v, int n) {
  double sum = 0;
  for (int k = 0; k < n; ++k) sum += v[k] * v[k];
  return std::sqrt(sum);
}

/// ρ of each row; rows that are projected together share their largest.
/// @param share factor on the scale of a contact's first three rows
Numbers metric(const Case& c, double share) {
  Numbers rho{};
  for (int k = 0; k < c.term.nrow; ++k)
    rho[k] = c.rows[k].scale * (c.term.law == Law::contact && k < 3 ? share : 1) + c.rows[k].compliance;
  const auto join = [&](int first, int count) {
    if (c.term.nrow < first + count) return;
    std::fill_n(&rho[first], count, *std::max_element(&rho[first], &rho[first] + count));
  };
  if (c.term.law == Law::ball) join(0, 3);
  if (c.term.law == Law::contact) join(1, 2), join(4, 2);
  return rho;
}

/// @param normal the impulse that bounds friction; negative: that of P itself
Numbers natural(const Case& c, const Numbers& rho, const Numbers& u, const Numbers& y, double normal = -1) {
  Numbers z{}, N{};
  const int n = c.term.nrow;
  for (int k = 0; k < n; ++k) {
    const TermRow& row = c.rows[k];
    z[k] = y[k] - (u[k] + row.compliance * (y[k] - row.centre) - row.target) / rho[k];
  }
  Numbers P = z;
  const auto within = [&](int first, int count, double bound) {
    if (n < first + count) return;
    const double size = length(&z[first], count);
    for (int k = first; k < first + count && size > bound; ++k) P[k] = z[k] * (bound > 0 ? bound / size : 0);
  };
  switch (c.term.law) {
    case Law::interval: P[0] = std::clamp(z[0], c.term.lower, c.term.upper); break;
    case Law::ball: within(0, 3, c.term.upper); break;
    case Law::contact:
      P[0] = std::max(0.0, z[0]);
      if (normal < 0) normal = P[0];
      within(1, 2, c.term.friction * normal), within(3, 1, c.term.torsional * normal);
      within(4, 2, c.term.rolling * normal);
  }
  for (int k = 0; k < n; ++k) N[k] = y[k] - P[k];
  return N;
}

class NaturalMap : public testing::TestWithParam<std::pair<Law, int>> {
 protected:
  double normal() { return normal_(engine_); }
  double uniform(double a, double b) { return std::uniform_real_distribution<double>(a, b)(engine_); }

  Case draw(bool directional) {
    Case c;
    std::tie(c.term.law, c.term.nrow) = GetParam();
    c.term.friction = uniform(0.1, 1.5), c.term.torsional = uniform(0.1, 1), c.term.rolling = uniform(0.1, 1);
    c.term.lower = c.term.law == Law::interval ? -uniform(0.1, 1) : 0, c.term.upper = uniform(0.1, 2);
    for (int k = 0; k < c.term.nrow; ++k)
      c.rows[k] = {std::exp(uniform(-6, 1)), normal(), normal() * 0.1, std::exp(uniform(-1, 1))};
    if (c.term.law == Law::ball) c.rows[1].compliance = c.rows[2].compliance = c.rows[0].compliance;
    if (c.term.nrow >= 3 && !directional) c.rows[2].compliance = c.rows[1].compliance;
    if (c.term.nrow >= 6) c.rows[5].compliance = c.rows[4].compliance;
    for (int k = 0; k < c.term.nrow; ++k) c.u[k] = normal(), c.y[k] = normal() + (k == 0);
    return c;
  }

 private:
  std::mt19937 engine_{3};
  std::normal_distribution<double> normal_;
};

/// y' = base - G (u' - u) is where N + ∂N/∂y (y' - y) + ∂N/∂u (u' - u) is zero.
TEST_P(NaturalMap, StepsOfNewtonsSolveItsDerivative) {
  int smooth = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    SCOPED_TRACE(trial);
    const Case c = draw(trial % 4 == 0);
    const int n = c.term.nrow;
    const Numbers rho = metric(c, kSlidingShare), whole = metric(c, 1), N = natural(c, rho, c.u, c.y);
    Tangent G{};
    Numbers base{};
    const double sum = natural_map(c.term, c.rows.data(), kSlidingShare, c.u.data(), c.y.data(), &G, base.data());
    double expected = 0, worst = 0;
    for (int k = 0; k < n; ++k) expected += N[k] * rho[k] * N[k] * rho[k];
    EXPECT_NEAR(sum, expected, 1e-12 * (1 + expected));
    EXPECT_EQ(sum, natural_map(c.term, c.rows.data(), kSlidingShare, c.u.data(), c.y.data(), nullptr, nullptr));
    const Numbers felt = natural(c, whole, c.u, c.y, std::max(0.0, c.y[0]));
    for (int k = 0; k < n; ++k) worst = std::max(worst, std::abs(felt[k]) * whole[k]);
    EXPECT_NEAR(natural_residual(c.term, c.rows.data(), c.u.data(), c.y.data()), worst, 1e-12 * (1 + worst));

    Numbers to{}, by{};  // u' and the residual of the linear equation
    for (int k = 0; k < n; ++k) to[k] = c.u[k] + normal();
    Numbers next = base;
    for (int r = 0; r < n; ++r) {
      for (int k = 0; k < n; ++k) next[r] -= G.at[r][k] * (to[k] - c.u[k]);
    }
    const double h = 1e-6;
    bool kink = false;
    for (int k = 0; k < n; ++k) by[k] = N[k];
    double size = 1;
    for (int k = 0; k < 2 * n; ++k) {
      const bool of_y = k < n;
      const int at = k % n;
      Numbers plus = of_y ? c.y : c.u, minus = plus;
      plus[at] += h, minus[at] -= h;
      const Numbers up = of_y ? natural(c, rho, c.u, plus) : natural(c, rho, plus, c.y);
      const Numbers down = of_y ? natural(c, rho, c.u, minus) : natural(c, rho, minus, c.y);
      const double moved = of_y ? next[at] - c.y[at] : to[at] - c.u[at];
      size = std::max(size, std::abs(moved));
      for (int r = 0; r < n; ++r) {
        kink |= std::abs(up[r] - 2 * N[r] + down[r]) > 1e-9;  // P has a kink here
        by[r] += (up[r] - down[r]) / (2 * h) * moved;
      }
    }
    if (kink) continue;
    ++smooth;
    for (int r = 0; r < n; ++r) EXPECT_NEAR(by[r], 0, 1e-7 * size) << r;
  }
  EXPECT_GT(smooth, 1500);
}

/// With a velocity that is not a number the natural map is not a number, so that no step counts as solved.
TEST_P(NaturalMap, IsNoNumberWhereAVelocityIsNone) {
  for (int trial = 0; trial < 200; ++trial) {
    for (int k = 0; k < GetParam().second; ++k) {
      Case c = draw(trial % 2 == 0);
      c.u[k] = std::numeric_limits<double>::quiet_NaN(), c.y[0] = 0.1 + std::abs(c.y[0]);  // so that friction matters
      EXPECT_TRUE(std::isnan(natural_residual(c.term, c.rows.data(), c.u.data(), c.y.data())))
          << trial << ", row " << k;
    }
  }
}

class OpenContact : public NaturalMap {};

TEST_P(OpenContact, MissesNothing) {
  Case c = draw(false);
  c.y = {}, c.u[0] = c.rows[0].target + c.rows[0].compliance * c.rows[0].centre + 0.1;
  Tangent G{};
  Numbers base{};
  EXPECT_EQ(natural_map(c.term, c.rows.data(), kSlidingShare, c.u.data(), c.y.data(), &G, base.data()), 0);
  EXPECT_TRUE(G.open);
  EXPECT_FALSE(acts(c.term, c.rows.data(), c.u.data(), c.y.data()));
  c.u[0] -= 0.2;
  EXPECT_TRUE(acts(c.term, c.rows.data(), c.u.data(), c.y.data()));
}

const auto kContacts = testing::Values(std::pair(Law::contact, 1), std::pair(Law::contact, 3),
                                       std::pair(Law::contact, 4), std::pair(Law::contact, 6));
INSTANTIATE_TEST_SUITE_P(Joints, NaturalMap, testing::Values(std::pair(Law::interval, 1), std::pair(Law::ball, 3)));
INSTANTIATE_TEST_SUITE_P(Contacts, NaturalMap, kContacts);
INSTANTIATE_TEST_SUITE_P(Contacts, OpenContact, kContacts);

}  // namespace
}  // namespace tarsus::test
