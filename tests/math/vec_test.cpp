// Inverses of small symmetric matrices of any size.
#include "tarsus/math/vec.hpp"
#include "tarsus/math/rotation.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tarsus {
namespace {

/// Positive definite, with a trace of about `size` and a condition number of up to 100.
Sym3d random_moments(std::mt19937& random, double size) {
  std::uniform_real_distribution<double> number(-1, 1), moment(0.01, 1);
  const Quatd turn = normalized(Quatd{number(random), number(random), number(random), number(random)});
  return rotate(rotation(turn), diagonal3(moment(random), moment(random), moment(random)) * size);
}

template <class R>
double worst_product(double size) {
  std::mt19937 random(3);
  double worst = 0;
  for (int i = 0; i < 100; ++i) {
    using P = Pack<R, 16 / sizeof(R)>;
    Sym3<P> s;
    for (int l = 0; l < kWidth<P>; ++l) {
      const Sym3d m = random_moments(random, l % 2 ? size : 1);
      for (int k = 0; k < 6; ++k) (&s.xx)[k].set(l, R((&m.xx)[k]));
    }
    const Sym3<P> inverted = inverse(s);
    for (int l = 0; l < kWidth<P>; ++l) {
      const auto in_double = [l](const Sym3<P>& of) {
        return Sym3d{of.xx[l], of.xy[l], of.xz[l], of.yy[l], of.yz[l], of.zz[l]}.full();
      };
      const Mat3d rest = in_double(s) * in_double(inverted) - identity3<double>();
      for (int k = 0; k < 9; ++k) {
        const double miss = std::abs((&rest.xx)[k]);
        worst = std::isfinite(miss) ? std::max(worst, miss) : 1;
      }
    }
  }
  return worst;
}

TEST(Inverse, OfMomentsOfAnySize) {
  for (const double size : {1e-16, 1e-13, 1e-6, 1.0, 1e6, 1e13, 1e18}) {
    EXPECT_LT(worst_product<float>(size), 2e-4) << size;
    EXPECT_LT(worst_product<double>(size), 4e-13) << size;
  }
}

TEST(Between, TurnsOneDirectionIntoTheOther) {
  const Vec3d from{0.6, 0, 0.8};
  for (const Vec3d& to : {Vec3d{0, 1, 0}, from, -from, Vec3d{-0.6, 1e-5, -0.8}}) {
    const Vec3d miss = rotate(between(from, to * 3), from) - to * (1 / norm(to));
    EXPECT_LT(norm(miss), 1e-14);
  }
  EXPECT_TRUE(std::isnan(between(from, {NAN, 0, 1}).w));
  EXPECT_TRUE(std::isnan(between({0, 0, 0}, from).w));
}

}  // namespace
}  // namespace tarsus
