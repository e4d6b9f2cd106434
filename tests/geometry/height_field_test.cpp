// Height fields: a tilted plane of triangles must behave as a plane, ridges and valleys as their closed forms.
#include "tarsus/geometry/height_field.hpp"
#include "support/numbers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <random>

#include "tarsus/base/error.hpp"
#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/geometry/narrow_phase.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

using test::uniform;

using Random = std::mt19937_64;

template <class F>
HeightField field(int rows, int columns, double half_x, double half_y, const F& height) {
  std::vector<double> heights;
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      heights.push_back(height((2.0 * c / (columns - 1) - 1) * half_x, (2.0 * r / (rows - 1) - 1) * half_y));
    }
  }
  return HeightField(rows, columns, heights, half_x, half_y, 5);
}

Shape terrain(const HeightField& f) { return {ShapeType::height_field, {0, 0, 0}, nullptr, &f}; }

struct Contacts {
  std::array<ContactPoint, kMaxManifold> points;
  int count = 0;
  const ContactPoint& deepest() const {
    return *std::min_element(points.begin(), points.begin() + count,
                             [](const auto& p, const auto& q) { return p.distance < q.distance; });
  }
};

Contacts contacts(const Shape& a, const ShapePose& pa, const Shape& b, const ShapePose& pb, double margin) {
  Contacts c;
  c.count = collide(a, pa, b, pb, margin, c.points);
  return c;
}

const ConvexHull& rock() {
  static const ConvexHull kRock = [] {
    Random random(5);
    std::vector<Vec3d> points;
    for (int k = 0; k < 30; ++k) {
      const Quatd q = exp_map({uniform(random, -2, 2), uniform(random, -2, 2), uniform(random, -2, 2)});
      points.push_back(rotate(q, {0.25, 0, 0}));
    }
    return ConvexHull(points);
  }();
  return kRock;
}

TEST(HeightFieldContact, ATiltedPlaneFeelsLikeAPlane) {
  Random random(1);
  const double slope_x = 0.3, slope_y = -0.2;
  for (const int cells : {2, 9, 40}) {
    const HeightField f = field(cells, cells + 1, 3, 4, [&](double x, double y) { return slope_x * x + slope_y * y; });
    const Vec3d n = Vec3d{-slope_x, -slope_y, 1} * (1 / std::sqrt(1 + slope_x * slope_x + slope_y * slope_y));
    const Shape ground = terrain(f), plane{ShapeType::plane, {0, 0, 0}, nullptr, nullptr};
    const ShapePose plane_pose{{0, 0, 0}, rotation(between({0, 0, 1}, n))};
    for (const ShapeType type : {ShapeType::sphere, ShapeType::capsule, ShapeType::ellipsoid, ShapeType::cylinder,
                                 ShapeType::box, ShapeType::convex}) {
      for (int k = 0; k < 60; ++k) {
        SCOPED_TRACE(std::string(name(type)) + " " + std::to_string(k) + " cells " + std::to_string(cells));
        const Shape shape{type,
                          {uniform(random, 0.1, 0.3), uniform(random, 0.1, 0.3), uniform(random, 0.1, 0.3)},
                          type == ShapeType::convex ? &rock() : nullptr,
                          nullptr};
        ShapePose pose{{uniform(random, -1.5, 1.5), uniform(random, -1.5, 1.5), 0}, identity3<double>()};
        if (k % 3)
          pose.rotation = rotation(exp_map({uniform(random, -2, 2), uniform(random, -2, 2), uniform(random, -2, 2)}));
        else
          pose.rotation = plane_pose.rotation;
        pose.position += n * 2;
        const double drop = contacts(shape, pose, plane, plane_pose, 20).deepest().distance;
        pose.position += n * (uniform(random, -0.05, 0.02) - drop);
        const Contacts expected = contacts(shape, pose, plane, plane_pose, 0.1),
                       got = contacts(shape, pose, ground, {}, 0.1);
        ASSERT_GT(expected.count, 0);
        ASSERT_GT(got.count, 0);
        EXPECT_NEAR(got.deepest().distance, expected.deepest().distance, 1e-6);
        for (int i = 0; i < got.count; ++i) {
          EXPECT_GT(dot(got.points[static_cast<std::size_t>(i)].normal, n), 0.9999);
        }
      }
    }
  }
}

TEST(HeightFieldContact, ASphereRollsOverAFlatFieldWithoutStumbling) {
  const HeightField f = field(20, 20, 2, 2, [](double, double) { return 0.5; });
  const Shape ball{ShapeType::sphere, {0.3, 0, 0}, nullptr, nullptr};
  for (int k = 0; k <= 1000; ++k) {
    const ShapePose pose{{-1.5 + 3e-3 * k, 0.4 - 1e-3 * k, 0.79}, identity3<double>()};
    const Contacts c = contacts(ball, pose, terrain(f), {}, 0);
    ASSERT_EQ(c.count, 1) << k;
    EXPECT_NEAR(c.points[0].distance, -0.01, 1e-12);
    EXPECT_NEAR(c.points[0].normal.z, 1, 1e-12);
    EXPECT_NEAR(c.points[0].position.x, pose.position.x, 1e-9);
  }
}

TEST(HeightFieldContact, RidgeAndValley) {
  const Shape ball{ShapeType::sphere, {0.2, 0, 0}, nullptr, nullptr};
  const HeightField ridge = field(3, 3, 1, 1, [](double x, double) { return 1 - std::abs(x); });
  const Contacts top = contacts(ball, {{0, 0.1, 1.19}, identity3<double>()}, terrain(ridge), {}, 0);
  ASSERT_EQ(top.count, 1);
  EXPECT_NEAR(top.points[0].distance, -0.01, 1e-9);
  EXPECT_NEAR(top.points[0].normal.z, 1, 1e-9);

  const HeightField valley = field(3, 3, 1, 1, [](double x, double) { return std::abs(x); });
  const double touching = 0.2 * std::sqrt(2.0);
  const Contacts both = contacts(ball, {{0, 0.1, touching - 0.01}, identity3<double>()}, terrain(valley), {}, 0);
  ASSERT_EQ(both.count, 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(both.points[static_cast<std::size_t>(i)].distance, -0.01 / std::sqrt(2.0), 1e-9);
    EXPECT_NEAR(both.points[static_cast<std::size_t>(i)].normal.z, std::sqrt(0.5), 1e-9);
  }
  EXPECT_NEAR(both.points[0].normal.x + both.points[1].normal.x, 0, 1e-9);
}

TEST(HeightFieldContact, ABoxOnAPeakAndOnFlatGround) {
  const Shape box{ShapeType::box, {0.6, 0.6, 0.2}, nullptr, nullptr};
  const HeightField flat = field(9, 9, 2, 2, [](double, double) { return 0.0; });
  const Contacts lying = contacts(box, {{0.03, 0.04, 0.199}, identity3<double>()}, terrain(flat), {}, 0);
  EXPECT_GE(lying.count, 4);
  double widest = 0;
  for (int i = 0; i < lying.count; ++i) {
    const ContactPoint& p = lying.points[static_cast<std::size_t>(i)];
    EXPECT_NEAR(p.distance, -0.001, 1e-9);
    EXPECT_NEAR(p.normal.z, 1, 1e-9);
    for (int j = 0; j < i; ++j)
      widest = std::max(widest, norm(p.position - lying.points[static_cast<std::size_t>(j)].position));
  }
  EXPECT_GT(widest, 1.2);
  // Only the middle of the box rests on the terrain: none of its corners is over the peak.
  const HeightField peak = field(9, 9, 2, 2, [](double x, double y) { return x == 0 && y == 0 ? 0.5 : 0.0; });
  const Contacts poked = contacts(box, {{0.03, 0.04, 0.69}, identity3<double>()}, terrain(peak), {}, 0);
  ASSERT_EQ(poked.count, 1);
  EXPECT_NEAR(poked.points[0].distance, -0.01, 1e-9);
  EXPECT_NEAR(poked.points[0].normal.z, 1, 1e-9);
  EXPECT_NEAR(poked.points[0].position.x, 0, 1e-9);
}

TEST(HeightFieldContact, WhatIsUnderTheSurfaceIsLifted) {
  const HeightField flat = field(5, 5, 2, 2, [](double, double) { return 1.0; });
  for (const ShapeType type : {ShapeType::sphere, ShapeType::box, ShapeType::capsule}) {
    const Shape shape{type, {0.1, 0.1, 0.1}, nullptr, nullptr};
    const Contacts c = contacts(shape, {{0.1, 0.2, 0.3}, identity3<double>()}, terrain(flat), {}, 0);
    ASSERT_GT(c.count, 0) << name(type);
    EXPECT_NEAR(c.deepest().normal.z, 1, 1e-12);
    EXPECT_LT(c.deepest().distance, -0.7);
    EXPECT_EQ(contacts(shape, {{0.1, 0.2, -7}, identity3<double>()}, terrain(flat), {}, 0).count, 0)
        << "below its base";
    EXPECT_EQ(contacts(shape, {{5, 0.2, 1}, identity3<double>()}, terrain(flat), {}, 0).count, 0) << "beside it";
  }
}

/// Height of the field's triangles at (x, y) in its frame.
double height_at(const HeightField& f, double x, double y) {
  const int r = f.row_at(y), c = f.column_at(x);
  const Vec3d a = f.point(r, c), b = f.point(r + 1, c + 1);
  const double u = (x - a.x) / (b.x - a.x), v = (y - a.y) / (b.y - a.y);
  const double third = u > v ? f.height(r, c + 1) : f.height(r + 1, c);
  return u > v ? a.z + u * (third - a.z) + v * (b.z - third) : a.z + v * (third - a.z) + u * (b.z - third);
}

/// The lowest point along each triangle's normal may be under another triangle.
TEST(HeightFieldContact, WhatIsAllUnderTheSurfaceIsLifted) {
  Random random(7);
  const HeightField rough = field(7, 9, 1.5, 1.5, [&](double, double) { return uniform(random, 0, 0.25); });
  const Shape shapes[] = {{ShapeType::sphere, {0.06, 0, 0}, nullptr, nullptr},
                          {ShapeType::ellipsoid, {0.1, 0.08, 0.06}, nullptr, nullptr},
                          {ShapeType::capsule, {0.03, 0.03, 0}, nullptr, nullptr},
                          {ShapeType::cylinder, {0.06, 0.06, 0}, nullptr, nullptr},
                          {ShapeType::box, {0.06, 0.06, 0.06}, nullptr, nullptr}};
  for (const Shape& shape : shapes) {
    for (int trial = 0; trial < 1000; ++trial) {
      ShapePose pose;
      pose.position = {uniform(random, -1.2, 1.2), uniform(random, -1.2, 1.2), 0};
      const double top = height_at(rough, pose.position.x, pose.position.y);
      pose.position.z = uniform(random, -1, top);
      const Contacts c = contacts(shape, pose, terrain(rough), {}, 0);
      ASSERT_GT(c.count, 0) << name(shape.type) << " " << trial;
      EXPECT_GT(c.deepest().normal.z, 0) << name(shape.type) << " " << trial;
      EXPECT_LT(c.deepest().distance, 0) << name(shape.type) << " " << trial;
    }
  }
}

TEST(HeightFieldContact, ABoxThatIsUnderTheSurfaceSomewhereIsPushedOut) {
  // Steep for its size: edges descend from a peak, and neighbours rise above a contact's tangent plane.
  const HeightField hill = field(5, 5, 1, 1, [](double x, double y) {
    const double r = std::abs(x) + std::abs(y);
    return r < 0.1 ? 0.2 : std::max(std::abs(x), std::abs(y)) > 0.6 ? 0.0 : r < 0.6 ? 0.06 : 0.04;
  });
  const Vec3d half{0.2, 0.2, 0.05};
  const Shape box{ShapeType::box, half, nullptr, nullptr};
  Random random(5);
  for (int trial = 0; trial < 500; ++trial) {
    const Vec3d turn{uniform(random, -0.3, 0.3), uniform(random, -0.3, 0.3), uniform(random, -3, 3)};
    ShapePose pose{{uniform(random, -0.6, 0.6), uniform(random, -0.6, 0.6), 0}, rotation(exp_map(turn))};
    double deepest = -1;  // of the bottom, vertically
    for (int i = 0; i <= 40; ++i) {
      for (int j = 0; j <= 40; ++j) {
        const Vec3d p =
            pose.position + pose.rotation * Vec3d{half.x * (i / 20.0 - 1), half.y * (j / 20.0 - 1), -half.z};
        deepest = std::max(deepest, height_at(hill, p.x, p.y) - p.z);
      }
    }
    pose.position.z = deepest - 0.01;  // now a centimetre
    const Contacts c = contacts(box, pose, terrain(hill), {}, 0.01);
    ASSERT_GT(c.count, 0) << trial;
    EXPECT_LT(c.deepest().distance, -0.004) << trial;
    EXPECT_GT(c.deepest().normal.z, 0.3) << trial;
  }
}

TEST(HeightFieldContact, RigidMotionSwapAndSlope) {
  Random random(2);
  const HeightField hills =
      field(12, 15, 2, 2, [](double x, double y) { return 0.3 * std::sin(3 * x) * std::cos(2 * y); });
  int off = 0, touching = 0;
  for (int k = 0; k < 2000; ++k) {
    const Shape shape{
        k % 2 ? ShapeType::sphere : ShapeType::capsule, {uniform(random, 0.02, 0.2), 0.2, 0}, nullptr, nullptr};
    ShapePose pose{{uniform(random, -1.5, 1.5), uniform(random, -1.5, 1.5), uniform(random, 0, 0.6)},
                   rotation(exp_map({uniform(random, -2, 2), uniform(random, -2, 2), uniform(random, -2, 2)}))};
    const Contacts c = contacts(shape, pose, terrain(hills), {}, 0.05);
    if (c.count == 0) continue;
    ++touching;
    const Contacts back = contacts(terrain(hills), {}, shape, pose, 0.05);
    ASSERT_EQ(back.count, c.count);
    EXPECT_NEAR(norm(back.deepest().normal + c.deepest().normal), 0, 1e-14);
    const Mat3d r = rotation(exp_map({uniform(random, -2, 2), uniform(random, -2, 2), uniform(random, -2, 2)}));
    const Vec3d t{1, 2, 3};
    const Contacts moved = contacts(shape, {r * pose.position + t, r * pose.rotation}, terrain(hills), {t, r}, 0.05);
    ASSERT_GT(moved.count, 0);
    EXPECT_NEAR(moved.deepest().distance, c.deepest().distance, 1e-7);
    constexpr double kStep = 1e-5;
    ShapePose lifted = pose;
    lifted.position += c.deepest().normal * kStep;
    const Contacts after = contacts(shape, lifted, terrain(hills), {}, 0.06);
    ASSERT_GT(after.count, 0);
    if (std::abs(after.deepest().distance - c.deepest().distance - kStep) > 0.02 * kStep) ++off;
  }
  EXPECT_GT(touching, 300);
  EXPECT_LT(off, touching / 20);
}

TEST(HeightFieldContact, BadFields) {
  const std::vector<double> four(4, 0.0);
  EXPECT_THROW(HeightField(1, 4, four, 1, 1, 1), ValueError);
  EXPECT_THROW(HeightField(2, 3, four, 1, 1, 1), ShapeError);
  EXPECT_THROW(HeightField(2, 2, four, 0, 1, 1), ValueError);
  EXPECT_THROW(HeightField(2, 2, four, 1, 1, std::numeric_limits<double>::infinity()), ValueError);
  std::vector<double> bad = four;
  bad[2] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(HeightField(2, 2, bad, 1, 1, 1), ValueError);
  const Shape none{ShapeType::height_field, {0, 0, 0}, nullptr, nullptr},
      ball{ShapeType::sphere, {1, 0, 0}, nullptr, nullptr};
  EXPECT_THROW(check_shape(none), ValueError);
  EXPECT_EQ(contacts(ball, {}, none, {}, 1).count, 0);
}

}  // namespace
}  // namespace tarsus
