// Our elementary functions against the C library's in extended precision, and values that the C standard specifies.
#include "tarsus/math/elementary.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tarsus/math/trig.hpp"

namespace tarsus {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Distance from the exact result in units in the last place.
double ulps(double ours, long double exact) {
  const double rounded = static_cast<double>(exact);
  const double unit = std::nextafter(std::abs(rounded), kInfinity) - std::abs(rounded);
  return static_cast<double>(std::abs((static_cast<long double>(ours) - exact) / unit));
}

class Elementary : public testing::Test {
 protected:
  static_assert(std::numeric_limits<long double>::digits >= 64);
  std::mt19937_64 engine_{7};
  double between(double low, double high) { return std::uniform_real_distribution<double>(low, high)(engine_); }
  /// A number of either sign, over all magnitudes from 2^-e to 2^e.
  double of_any_size(int e) { return std::ldexp(between(1, 2) * (between(-1, 1) < 0 ? -1 : 1), int(between(-e, e))); }
};

TEST_F(Elementary, ErrorsAreWithinTheStatedUnits) {
  double sin = 0, cos = 0, atan2 = 0, acos = 0, exp = 0, log = 0, hypot = 0, whole = 0, real = 0;
  for (int i = 0; i < 200000; ++i) {
    const double angle = i % 2 ? between(-10, 10) : between(-1e5, 1e5);
    sin = std::max(sin, ulps(elementary::sin(angle), std::sin(static_cast<long double>(angle))));
    cos = std::max(cos, ulps(elementary::cos(angle), std::cos(static_cast<long double>(angle))));
    const double y = of_any_size(i % 3 ? 3 : 300), x = of_any_size(i % 3 ? 3 : 300);
    atan2 = std::max(atan2, ulps(elementary::atan2(y, x), std::atan2(static_cast<long double>(y), x)));
    hypot = std::max(hypot, ulps(elementary::hypot(x, y), std::hypot(static_cast<long double>(x), y)));
    const double c = between(-1, 1 - 1e-12);
    acos = std::max(acos, ulps(elementary::acos(c), std::acos(static_cast<long double>(c))));
    const double p = i % 2 ? between(-700, 709) : between(-1, 1);
    exp = std::max(exp, ulps(elementary::exp(p), std::exp(static_cast<long double>(p))));
    const double positive = i % 2 ? std::abs(of_any_size(1000)) : between(0.5, 2);
    log = std::max(log, ulps(elementary::log(positive), std::log(static_cast<long double>(positive))));
    const int n = int(between(-64, 65));
    const double base = between(0.1, 10), power = between(-20, 20);
    whole = std::max(
        whole, ulps(elementary::pow(base, n), std::pow(static_cast<long double>(base), n)) / std::max(std::abs(n), 1));
    real = std::max(real, ulps(elementary::pow(base, power), std::pow(static_cast<long double>(base), power)) /
                              (2 + 2 * std::abs(power * std::log(base))));
  }
  EXPECT_LE(sin, 3);
  EXPECT_LE(cos, 3);
  EXPECT_LE(atan2, 2);
  EXPECT_LE(acos, 3);
  EXPECT_LE(exp, 1);
  EXPECT_LE(log, 1);
  EXPECT_LE(hypot, 1.5);
  EXPECT_LE(whole, 1);
  EXPECT_LE(real, 1);
}

TEST_F(Elementary, TheKernelsExponentialOfNegativeNumbers) {
  double most = 0, most_float = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = i % 2 ? between(-708, 0) : between(-1, 0);
    most = std::max(most, ulps(exp_of_negative(x), std::exp(static_cast<long double>(x))));
    const float f = float(i % 2 ? between(-87, 0) : x);
    const double exact = std::exp(double(f));
    most_float = std::max(most_float, std::abs(double(exp_of_negative(f)) / exact - 1));
  }
  EXPECT_LE(most, 2);
  EXPECT_LE(most_float, 1.5e-7);
  EXPECT_EQ(exp_of_negative(0.0), 1);
  EXPECT_EQ(exp_of_negative(-0.0f), 1);
  EXPECT_EQ(exp_of_negative(-709.0), 0);
  EXPECT_EQ(exp_of_negative(-1e300), 0);
  EXPECT_EQ(exp_of_negative(-kInfinity), 0);
  EXPECT_EQ(exp_of_negative(-88.0f), 0);
  EXPECT_TRUE(std::isnan(exp_of_negative(kNaN)));
}

TEST_F(Elementary, AnglesBeyondTheKernelsRangeAreReduced) {
  for (const double angle : {1e6, -3e9, 1e12, 1e15}) {
    EXPECT_NEAR(elementary::sin(angle), std::sin(angle), 4e-17 * std::abs(angle) + 1e-15);
    EXPECT_NEAR(elementary::cos(angle), std::cos(angle), 4e-17 * std::abs(angle) + 1e-15);
  }
  EXPECT_LE(std::abs(elementary::sin(1e300)), 1);
  EXPECT_TRUE(std::isnan(elementary::sin(kInfinity)));
  EXPECT_TRUE(std::isnan(elementary::cos(kNaN)));
}

// The result is the standard's to the bit, including the signs of zeros.
void expect_same(double ours, double standard) {
  if (std::isnan(standard)) {
    EXPECT_TRUE(std::isnan(ours));
  } else {
    EXPECT_EQ(ours, standard);
    EXPECT_EQ(std::signbit(ours), std::signbit(standard));
  }
}

TEST_F(Elementary, EdgesAreTheStandards) {
  const double edges[] = {0.0, -0.0, 1, -1, kInfinity, -kInfinity, kNaN};
  for (const double y : edges) {
    for (const double x : edges) {
      expect_same(elementary::atan2(y, x), std::atan2(y, x));
      if (!std::isnan(x) && !std::isnan(y)) expect_same(elementary::hypot(x, y), std::hypot(x, y));
    }
    if (std::abs(y) != 1) expect_same(elementary::exp(y), std::exp(y));
    expect_same(elementary::log(y), std::log(y));
    expect_same(elementary::pow(y, 0), 1);
    expect_same(elementary::pow(y, 2), std::pow(y, 2));
    expect_same(elementary::pow(y, -3), std::pow(y, -3));
  }
  expect_same(elementary::pow(0, 0.5), 0);
  expect_same(elementary::pow(-8, 1.0 / 3), kNaN);
  expect_same(elementary::exp(710), kInfinity);
  expect_same(elementary::exp(-746), 0);
  EXPECT_NEAR(elementary::exp(-745), std::exp(-745.0), 0x1p-1074);
  EXPECT_EQ(elementary::hypot(3e300, 4e300), 5e300);
  EXPECT_EQ(elementary::hypot(3 * 0x1p-1060, 4 * 0x1p-1060), 5 * 0x1p-1060);
  EXPECT_EQ(elementary::log(0x1p-1074), std::log(0x1p-1074));
}

TEST_F(Elementary, CubeRootsAreWhole) {
  for (const auto& [n, root] : {std::pair{0, 0}, {1, 1}, {7, 1}, {8, 2}, {26, 2}, {27, 3}, {2147483647, 1290}})
    EXPECT_EQ(elementary::cube_root(n), root);
}

}  // namespace
}  // namespace tarsus
