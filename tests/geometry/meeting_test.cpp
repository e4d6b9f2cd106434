#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>

#include "tarsus/geometry/meeting.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus::test {
namespace {

constexpr double kStep = 1.0 / 60;

Shape box(double x, double y, double z) { return {ShapeType::box, {x, y, z}}; }

/// Shapes of radius 0.1 along z at their positions.
const std::array kRound{Shape{ShapeType::sphere, {0.1, 0, 0}}, Shape{ShapeType::capsule, {0.1, 0.15, 0}},
                        Shape{ShapeType::cylinder, {0.1, 0.1, 0}}, Shape{ShapeType::ellipsoid, {0.15, 0.12, 0.1}},
                        box(0.1, 0.1, 0.1)};

/// A shape that lies on the height of its radius.
ShapePose above(const Shape& shape, double x, double z) {
  ShapePose pose{{x, 0.03, z}};
  if (shape.type == ShapeType::capsule) pose.rotation = rotation(exp_map(Vec3d{M_PI / 2, 0, 0}));
  return pose;
}

struct Touches {
  std::array<ContactPoint, kMaxManifold> points;
  int count = 0;
  const ContactPoint* begin() const { return points.data(); }
  const ContactPoint* end() const { return points.data() + count; }
};

/// Contacts of a and b, within what their motions may close.
Touches contacts(const Shape& a, const ShapePose& at_a, const ShapeMotion& by_a, const Shape& b, const ShapePose& at_b,
                 const ShapeMotion& by_b, double margin = 0, double h = kStep) {
  Touches out;
  const double reach = margin + h * (norm(by_a.velocity - by_b.velocity) + norm(by_a.spin) + norm(by_b.spin));
  out.count = collide(a, at_a, b, at_b, reach, out.points);
  out.count = meet(a, at_a, by_a, b, at_b, by_b, h, margin, out.points, out.count);
  return out;
}

/// Distance that a point would have after the step, along its normal.
double after(const ContactPoint& p, const ShapePose& at_a, const ShapeMotion& by_a, const ShapePose& at_b,
             const ShapeMotion& by_b, double h = kStep) {
  const Vec3d of_a = by_a.velocity + cross(by_a.spin, p.position - at_a.position);
  const Vec3d of_b = by_b.velocity + cross(by_b.spin, p.position - at_b.position);
  return p.distance + h * dot(p.normal, of_a - of_b);
}

/// Over a box whose edge is at x = 0.25 and whose top is at z = 0, from any place before the edge, at any speed.
TEST(Meeting, WhatFliesPastAnEdgeIsNotStruck) {
  const Shape still = box(0.25, 1, 0.1);
  const ShapePose at{{0.5, 0, -0.1}};
  for (const Shape& shape : kRound) {
    for (const double clear : {1e-6, 1e-3, 1e-2}) {
      for (const double speed : {0.5, 2.0, 20.0}) {
        for (double x = -0.3; x < 0.4; x += 0.017) {
          const ShapePose pose = above(shape, x, 0.1 + clear);
          const ShapeMotion motion{{speed, 0, 0}};
          for (const ContactPoint& p : contacts(shape, pose, motion, still, at, {}))
            EXPECT_GE(after(p, pose, motion, at, {}), -1e-9) << int(shape.type) << ", " << clear << ", " << speed;
        }
      }
    }
  }
}

/// On flush boxes, as deep as bodies rest: nothing has to move but by that depth.
TEST(Meeting, WhatSlidesOverASeamIsNotStruck) {
  const Shape tile = box(0.25, 1, 0.1);
  for (const Shape& shape : kRound) {
    for (const double depth : {0.0, 1e-7, 1e-5, 2e-4}) {
      for (const double margin : {0.0, 1e-3}) {
        for (double x = 0.05; x < 0.45; x += 0.02) {  // 0.15: exactly at the seam
          const ShapePose pose = above(shape, x, 0.1 + margin - depth), at{{0.5, 0, -0.1}};
          const ShapeMotion motion{{2, 0, 0}};
          for (const ContactPoint& p : contacts(shape, pose, motion, tile, at, {}, margin)) {
            if (p.distance <= margin) continue;  // overlaps already
            EXPECT_GE(after(p, pose, motion, at, {}), margin - depth - 1e-9) << int(shape.type) << ", " << x;
          }
        }
      }
    }
  }
}

/// What lies on one tile, and by less than its depth beside the next, overlaps that tile least along the floor. It was
/// not there a step before, and slides onto it; before a wall the same overlap is a collision.
TEST(Meeting, OverlapWithTheNextTileIsNoWall) {
  const double depth = 1e-4;
  for (const Shape& shape : {box(0.1, 0.1, 0.1), Shape{ShapeType::cylinder, {0.1, 0.1, 0}}}) {
    for (const double overlap : {1e-5, 5e-5, 9e-5}) {
      for (const double speed : {0.2, 2.0, 5.0}) {
        const ShapePose pose{{0.15 + overlap, 0, 0.1 - depth}};
        const ShapeMotion motion{{speed, 0, 0}};
        const Touches floor = contacts(shape, pose, motion, box(0.25, 1, 0.1), {{0.5, 0, -0.1}}, {});
        EXPECT_GT(floor.count, 0);
        for (const ContactPoint& p : floor) {
          EXPECT_GT(p.normal.z, 0.999) << int(shape.type) << ", " << overlap << ", " << speed;
          EXPECT_NEAR(p.distance, -depth, 1e-9);
        }
        const Touches wall = contacts(shape, pose, motion, box(0.25, 1, 0.5), {{0.5, 0, 0.1}}, {});
        EXPECT_GT(wall.count, 0);
        for (const ContactPoint& p : wall) {
          EXPECT_LT(p.normal.x, -0.999);
          EXPECT_NEAR(p.distance, -overlap, 1e-9);
        }
      }
    }
  }
}

/// A wall is met, by fast bodies too, and where the motion of either shape closes the gap.
TEST(Meeting, WhatFliesIntoAWallMeetsIt) {
  const Shape wall = box(0.01, 1, 1);
  const ShapePose at{{0.01, 0, 0}};
  for (const Shape& shape : kRound) {
    for (const double speed : {2.0, 20.0, 400.0}) {
      for (const double gap : {0.001, 0.01, 0.02}) {
        for (const bool wall_moves : {false, true}) {
          const ShapePose pose = above(shape, 0, 0);
          std::array<ContactPoint, kMaxManifold> nearest;
          ASSERT_GT(collide(shape, pose, wall, {{1.01, 0, 0}}, 2, nearest), 0);
          const ShapePose before{{-(1 - nearest[0].distance) - gap, 0, 0}, pose.rotation};  // gap from the wall
          const ShapeMotion toward{{wall_moves ? 0 : speed, 0, 0}}, back{{wall_moves ? -speed : 0, 0, 0}};
          double least = 1e9;
          for (const ContactPoint& p : contacts(shape, before, toward, wall, at, back)) {
            if (p.normal.x < -0.999) least = std::min(least, p.distance);
          }
          EXPECT_NEAR(least, gap, 1e-9 + 1e-3 * gap) << int(shape.type) << ", " << speed;
        }
      }
    }
  }
}

/// A ball that comes down over the edge of a box meets its top, not the plane between the two at the start.
TEST(Meeting, TheNormalIsThatOfWhereTheyMeet) {
  const Shape ball{ShapeType::sphere, {0.1, 0, 0}}, table = box(0.5, 0.5, 0.1);
  const ShapePose at{{0.55, 0, -0.1}}, pose{{-0.05, 0, 0.15}};
  const ShapeMotion motion{{15, 0, -6}};  // is at x = 0.075, z = 0.1 half way
  const Touches found = contacts(ball, pose, motion, table, at, {});
  ASSERT_EQ(found.count, 1);
  const ContactPoint& p = found.points[0];
  EXPECT_NEAR(p.normal.z, 1, 1e-4);
  EXPECT_NEAR(p.distance, 0.05, 1e-4);
}

/// Swapping the shapes gives the same points with the opposite normals.
TEST(Meeting, DoesNotDependOnTheOrder) {
  const Shape table = box(0.5, 0.5, 0.1);
  const ShapePose at{{0.6, 0, -0.1}};
  for (const Shape& shape : kRound) {
    const ShapePose pose = above(shape, -0.05, 0.16);
    const ShapeMotion motion{{15, 1, -6}, {3, -2, 1}}, other{{-1, 0, 0.5}};
    const Touches ab = contacts(shape, pose, motion, table, at, other),
                  ba = contacts(table, at, other, shape, pose, motion);
    ASSERT_EQ(ab.count, ba.count) << int(shape.type);
    for (const ContactPoint& p : ab) {
      double least = 1e9;
      for (const ContactPoint& q : ba) {
        least = std::min(least,
                         norm(p.position - q.position) + norm(p.normal + q.normal) + std::abs(p.distance - q.distance));
      }
      EXPECT_LT(least, 1e-9) << int(shape.type);
    }
  }
}

/// Capsules of no length are followed, while most spheres need not be.
TEST(Meeting, SpheresMeetAsCapsulesOfNoLengthDo) {
  std::mt19937 random(5);
  const auto between = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  const auto vector = [&](double size) {
    return Vec3d{between(-size, size), between(-size, size), between(-size, size)};
  };
  int kept = 0, moved = 0, removed = 0;
  for (int k = 0; k < 20000; ++k) {
    const double ra = between(0.05, 0.2), rb = between(0.05, 0.2), margin = k % 3 ? 0 : 0.01;
    const ShapePose at_a{vector(0.5)};
    const Vec3d d = vector(1);
    const double gap = between(-0.02, 0.08), speed = k % 2 ? 8 : 1;
    const ShapePose at_b{at_a.position + d * ((ra + rb + gap) / norm(d))};
    const ShapeMotion by_a{vector(speed), vector(3)}, by_b{vector(speed), vector(3)};
    const auto of = [&](ShapeType type) {
      return contacts({type, {ra, 0, 0}}, at_a, by_a, {type, {rb, 0, 0}}, at_b, by_b, margin);
    };
    const Touches balls = of(ShapeType::sphere), capsules = of(ShapeType::capsule);
    ASSERT_EQ(balls.count, capsules.count) << k;
    for (int p = 0; p < balls.count; ++p) {
      const ContactPoint &x = balls.points[std::size_t(p)], &y = capsules.points[std::size_t(p)];
      EXPECT_NEAR(norm(x.position - y.position), 0, 1e-12) << k;
      EXPECT_NEAR(norm(x.normal - y.normal), 0, 1e-12) << k;
      EXPECT_NEAR(x.distance, y.distance, 1e-12) << k;
      const bool same = norm(x.normal + d * (1 / norm(d))) < 1e-12;
      kept += same, moved += !same;
    }
    removed += balls.count == 0;
  }
  EXPECT_GT(kept, 1000);
  EXPECT_GT(moved, 300);
  EXPECT_GT(removed, 500);
}

/// Shapes that touch, that part or that do not close their gap keep their points.
TEST(Meeting, OtherPointsAreAsTheyWere) {
  const Shape table = box(0.5, 0.5, 0.1);
  const ShapePose at{{0, 0, -0.1}};
  for (const Shape& shape : kRound) {
    for (const auto& [height, fall] : {std::pair(-1e-3, -5.0), std::pair(1e-3, 1.0), std::pair(5e-3, -0.1)}) {
      const ShapePose pose = above(shape, 0, 0.1 + height);
      std::array<ContactPoint, kMaxManifold> before, after;
      const int count = collide(shape, pose, table, at, 0.05, before);
      after = before;
      ASSERT_EQ(meet(shape, pose, {{1, 0, fall}}, table, at, {}, kStep, 0, after, count), count);
      for (int k = 0; k < count; ++k) EXPECT_EQ(before[std::size_t(k)].distance, after[std::size_t(k)].distance);
    }
  }
}

}  // namespace
}  // namespace tarsus::test
