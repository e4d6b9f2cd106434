// Contacts against certificates that are independent of the code: support functions written here. For convex shapes a
// distance d along the unit vector n is right when the two shapes' supports along n are d apart (nothing is closer) and
// no other direction separates them better.
#include "tarsus/geometry/narrow_phase.hpp"
#include "support/numbers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

using test::uniform;

using Random = std::mt19937_64;

Vec3d unit(Random& random) {
  for (;;) {
    const Vec3d v{uniform(random, -1, 1), uniform(random, -1, 1), uniform(random, -1, 1)};
    const double length = norm(v);
    if (length > 0.1 && length < 1) return v * (1 / length);
  }
}
Vec3d vector(Random& random, double least, double most) {
  const double length = uniform(random, least, most);  // drawn first: the order of evaluation differs among compilers
  return unit(random) * length;
}
Mat3d turn(Random& random) { return rotation(exp_map(vector(random, 0, 3))); }

/// The largest x·d over the shape.
double support(const Shape& shape, const ShapePose& pose, const Vec3d& d) {
  const Vec3d e = transpose_mul(pose.rotation, d), &s = shape.size;
  const double at = dot(pose.position, d);
  switch (shape.type) {
    case ShapeType::plane:
      return e.x * e.x + e.y * e.y < 1e-24 && e.z > 0 ? at : std::numeric_limits<double>::infinity();
    case ShapeType::sphere: return at + s.x * norm(d);
    case ShapeType::capsule: return at + s.x * norm(d) + s.y * std::abs(e.z);
    case ShapeType::ellipsoid: return at + norm(Vec3d{s.x * e.x, s.y * e.y, s.z * e.z});
    case ShapeType::cylinder: return at + s.x * std::hypot(e.x, e.y) + s.y * std::abs(e.z);
    case ShapeType::box: return at + s.x * std::abs(e.x) + s.y * std::abs(e.y) + s.z * std::abs(e.z);
    case ShapeType::convex: {
      double most = -std::numeric_limits<double>::infinity();
      for (const Vec3d& v : shape.hull->vertices()) most = std::max(most, dot(v, e));
      return at + most;
    }
    default: return std::numeric_limits<double>::quiet_NaN();
  }
}

/// The separation along n, from B to A; negative: the overlap along n.
double separation(const Shape& a, const ShapePose& pa, const Shape& b, const ShapePose& pb, const Vec3d& n) {
  return -support(a, pa, -n) - support(b, pb, n);
}

struct Scene {
  Shape a, b;
  ShapePose pa, pb;
};

/// Hulls from a tetrahedron to one with 200 vertices, and a prism with two large flat faces.
const std::vector<ConvexHull>& hulls() {
  static const std::vector<ConvexHull> kHulls = [] {
    std::vector<ConvexHull> out;
    Random random(11);
    for (const int n : {4, 5, 8, 20, 60, 200}) {
      std::vector<Vec3d> points;
      for (int k = 0; k < n; ++k) points.push_back(vector(random, 0.4, 0.5) + Vec3d{0.1, 0, 0});
      out.emplace_back(points);
    }
    std::vector<Vec3d> prism;
    for (int k = 0; k < 12; ++k) {
      const double x = 0.5 * std::cos(k * kPi / 6), y = 0.5 * std::sin(k * kPi / 6);
      prism.push_back({x, y, -0.2});
      prism.push_back({x, y, 0.2});
    }
    out.emplace_back(prism);
    return out;
  }();
  return kHulls;
}

Shape random_shape(ShapeType type, Random& random) {
  const auto length = [&] { return std::exp(uniform(random, std::log(0.05), std::log(1.0))); };
  if (type == ShapeType::convex) return {type, {0, 0, 0}, &hulls()[random() % hulls().size()], nullptr};
  return {type, {length(), length(), length()}, nullptr, nullptr};
}

/// Two shapes whose surfaces are within a few centimetres of each other along a random direction.
Scene random_scene(ShapeType ta, ShapeType tb, Random& random) {
  Scene s{random_shape(ta, random), random_shape(tb, random), {{0, 0, 0}, turn(random)}, {{0, 0, 0}, turn(random)}};
  s.pb.position = vector(random, 0, 5);
  s.pa.position = s.pb.position;
  const Vec3d n = tb == ShapeType::plane ? s.pb.rotation.column_z() : unit(random);
  const double gap = separation(s.a, s.pa, s.b, s.pb, n);
  s.pa.position += n * (uniform(random, -0.03, 0.04) - gap);
  s.pa.position += vector(random, 0, 0.2);
  return s;
}

struct Contacts {
  std::array<ContactPoint, kMaxManifold> points;
  int count = 0;
  const ContactPoint& deepest() const {
    return *std::min_element(points.begin(), points.begin() + count,
                             [](const auto& p, const auto& q) { return p.distance < q.distance; });
  }
};

Contacts contacts(const Scene& s, double margin) {
  Contacts c;
  c.count = collide(s.a, s.pa, s.b, s.pb, margin, c.points);
  return c;
}

Scene swapped(const Scene& s) { return {s.b, s.a, s.pb, s.pa}; }

struct PairCase {
  ShapeType a, b;
};

std::string pair_name(const testing::TestParamInfo<PairCase>& info) {
  return std::string(name(info.param.a)) + "_" + name(info.param.b);
}

class NarrowPhase : public testing::TestWithParam<PairCase> {
 protected:
  static constexpr int kScenes = 3000;
  static constexpr double kMargin = 10;

  template <class F>
  void for_scenes(const F& check) {
    Random random(20260521);
    for (int k = 0; k < kScenes && !HasFailure(); ++k) {
      SCOPED_TRACE("scene " + std::to_string(k));
      check(random_scene(GetParam().a, GetParam().b, random), random);
    }
  }
};

TEST_P(NarrowPhase, DeepestPointHasTheDistanceAlongItsNormal) {
  int touching = 0, apart = 0;
  for_scenes([&](const Scene& s, Random& random) {
    const Contacts c = contacts(s, kMargin);
    ASSERT_GT(c.count, 0);
    const ContactPoint& p = c.deepest();
    EXPECT_NEAR(norm(p.normal), 1, 1e-12);
    EXPECT_NEAR(p.distance, separation(s.a, s.pa, s.b, s.pb, p.normal), 2e-7);
    // The two surface points lie in the shapes: no support is exceeded in any direction. Together with the line above
    // this makes the distance exact when it is positive.
    const Vec3d on_a = p.position + p.normal * (p.distance / 2), on_b = p.position - p.normal * (p.distance / 2);
    for (int k = 0; k < 20; ++k) {
      const Vec3d d = unit(random);
      EXPECT_LE(dot(on_a, d), support(s.a, s.pa, d) + 1e-5);
      EXPECT_LE(dot(on_b, d), support(s.b, s.pb, d) + 1e-5);
      EXPECT_GE(p.distance, separation(s.a, s.pa, s.b, s.pb, d) - 1e-6);
    }
    (p.distance < 0 ? touching : apart) += 1;
  });
  EXPECT_GT(touching, kScenes / 20);
  EXPECT_GT(apart, kScenes / 20);
}

TEST_P(NarrowPhase, MovingAlongTheNormalChangesTheDistanceAtSlopeOne) {
  int off = 0;
  for_scenes([&](Scene s, Random& random) {
    const Contacts c = contacts(s, kMargin);
    ASSERT_GT(c.count, 0);
    constexpr double kStep = 1e-4;
    const ContactPoint p = c.deepest();
    s.pa.position += p.normal * kStep;
    const double moved = contacts(s, kMargin).deepest().distance;
    // Where two directions separate the shapes equally well the other one may take over: rare.
    if (std::abs(moved - p.distance - kStep) > 0.01 * kStep) ++off;
    // Across the normal the change is of second order.
    Vec3d side = cross(p.normal, unit(random));
    s.pa.position += side * kStep - p.normal * kStep;
    if (std::abs(contacts(s, kMargin).deepest().distance - p.distance) > 0.05 * kStep) ++off;
  });
  EXPECT_LT(off, kScenes / 50);
}

/// Two shapes that pass each other. The separating axis that an earlier call left may only speed up the decision that a
/// pair is beyond the margin.
TEST_P(NarrowPhase, PointsDoNotDependOnTheAxisThatPartedThem) {
  int beyond = 0, near = 0;
  Vec3d parting{0, 0, 0};
  for_scenes([&](const Scene& scene, Random& random) {
    Scene s = scene;
    const Vec3d step = unit(random) * 0.02;
    if (random() % 4 > 0) parting = {0, 0, 0};  // else the axis of other shapes
    s.pa.position -= step * 5;
    for (int k = 0; k < 10; ++k, s.pa.position += step) {
      const Contacts fresh = contacts(s, 0.01);
      Contacts again;
      again.count = collide(s.a, s.pa, s.b, s.pb, 0.01, again.points, &parting);
      ASSERT_EQ(again.count, fresh.count);
      for (int i = 0; i < fresh.count; ++i) {
        const ContactPoint &p = fresh.points[i], &q = again.points[i];
        EXPECT_EQ(norm(p.position - q.position) + norm(p.normal - q.normal), 0);
        EXPECT_EQ(p.distance, q.distance);
        EXPECT_EQ(p.feature, q.feature);
      }
      (fresh.count ? near : beyond) += 1;
    }
  });
  EXPECT_GT(near, kScenes / 2);
  EXPECT_GT(beyond, kScenes / 2);
}

TEST_P(NarrowPhase, SwappingTurnsTheNormalRound) {
  for_scenes([&](const Scene& s, Random&) {
    const Contacts c = contacts(s, kMargin), d = contacts(swapped(s), kMargin);
    if (GetParam().a == GetParam().b) {  // either of the two may be clipped
      EXPECT_NEAR(c.deepest().distance, d.deepest().distance, 1e-6);
      return;
    }
    ASSERT_EQ(c.count, d.count);
    for (int i = 0; i < c.count; ++i) {
      const ContactPoint &p = c.points[static_cast<std::size_t>(i)], &q = d.points[static_cast<std::size_t>(i)];
      EXPECT_EQ(p.feature, q.feature);
      EXPECT_NEAR(p.distance, q.distance, 1e-14);
      EXPECT_NEAR(norm(p.normal + q.normal), 0, 1e-14);
      EXPECT_NEAR(norm(p.position - q.position), 0, 1e-14);
    }
  });
}

TEST_P(NarrowPhase, MovesWithTheShapes) {
  int other = 0;
  for_scenes([&](const Scene& s, Random& random) {
    const Mat3d r = turn(random);
    const Vec3d t = unit(random) * 3;
    Scene moved = s;
    moved.pa = {r * s.pa.position + t, r * s.pa.rotation};
    moved.pb = {r * s.pb.position + t, r * s.pb.rotation};
    const Contacts c = contacts(s, kMargin), d = contacts(moved, kMargin);
    EXPECT_NEAR(c.deepest().distance, d.deepest().distance, 1e-6);
    // Different points may be kept where points tie, but the deepest one's normal rotates with the shapes.
    if (norm(r * c.deepest().normal - d.deepest().normal) > 1e-3) ++other;
  });
  EXPECT_LT(other, kScenes / 50);
}

TEST_P(NarrowPhase, RespectsTheMarginAndTheRoomGiven) {
  for_scenes([&](const Scene& s, Random& random) {
    const double margin = uniform(random, 0, 0.05);
    std::array<ContactPoint, kMaxManifold> points;
    const int all = collide(s.a, s.pa, s.b, s.pb, margin, points);
    for (int i = 0; i < all; ++i) EXPECT_LE(points[static_cast<std::size_t>(i)].distance, margin);
    const double least = contacts(s, kMargin).deepest().distance;
    if (std::abs(least - margin) > 1e-6) {
      EXPECT_EQ(all > 0, least < margin);
    }
    ContactPoint one;
    const int single = collide(s.a, s.pa, s.b, s.pb, margin, {&one, 1});
    ASSERT_EQ(single, all > 0 ? 1 : 0);
    if (single) {
      EXPECT_NEAR(one.distance, least, 1e-6);
    }
    EXPECT_EQ(collide(s.a, s.pa, s.b, s.pb, margin, {}), 0);
  });
}

TEST_P(NarrowPhase, NotFiniteInputGivesNoContact) {
  Random random(3);
  const Scene s = random_scene(GetParam().a, GetParam().b, random);
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    for (int k = 0; k < 4; ++k) {
      Scene t = s;
      double margin = kMargin;
      if (k == 0) t.pa.position.y = bad;
      if (k == 1) t.pb.rotation.zx = bad;
      if (k == 2) t.a.size.x = bad;
      if (k == 3) margin = bad;
      EXPECT_EQ(contacts(t, margin).count, 0) << k;
      if (k < 3) {
        EXPECT_EQ(contacts(swapped(t), margin).count, 0) << k;
      }
    }
  }
}

TEST_P(NarrowPhase, LengthsWithoutFourthPowersGiveUnitNormalsOrNone) {
  Random random(5);
  for (const double scale : {1e-160, 1e-100, 1e80, 1e140, 1e286}) {
    for (int k = 0; k < 100; ++k) {
      Scene s = random_scene(GetParam().a, GetParam().b, random);
      if (k & 1) s.a.size = scale * s.a.size;
      if (k & 2) s.b.size = scale * s.b.size;
      if (k & 4) s.pa.position = scale * s.pa.position, s.pb.position = scale * s.pb.position;
      const double margin = k & 8 ? scale : kMargin;
      const Contacts c = contacts(s, margin);
      for (int i = 0; i < c.count; ++i) {
        const ContactPoint& p = c.points[static_cast<std::size_t>(i)];
        EXPECT_TRUE(std::isfinite(norm(1 / std::max(scale, 1.0) * p.position)) && p.distance <= margin)
            << scale << ' ' << k;
        EXPECT_NEAR(norm(p.normal), 1, 1e-6) << scale << ' ' << k;
      }
    }
  }
}

TEST_P(NarrowPhase, ZeroSizesAndCoincidentCentresStayFinite) {
  Random random(4);
  for (int k = 0; k < 200; ++k) {
    Scene s = random_scene(GetParam().a, GetParam().b, random);
    if (k % 2) s.pa.position = s.pb.position;
    if (k % 3 == 0) s.pa.rotation = s.pb.rotation;
    for (int i = 0; i < 3; ++i) {
      if ((k >> i) & 4) s.a.size[i] = 0;
      if ((k >> i) & 8) s.b.size[i] = 0;
    }
    const Contacts c = contacts(s, kMargin);
    for (int i = 0; i < c.count; ++i) {
      const ContactPoint& p = c.points[static_cast<std::size_t>(i)];
      EXPECT_TRUE(std::isfinite(p.distance) && std::isfinite(norm(p.position)));
      EXPECT_NEAR(norm(p.normal), 1, 1e-9);
    }
  }
}

/// Two shapes that lie flat on each other, A on top, 1 mm deep, and the number of points that support A.
struct Resting {
  const char* name;
  Scene scene;
  int least;
};

std::vector<Resting> resting_scenes() {
  const Mat3d lying = rotation(exp_map({kPi / 2, 0, 0})), turned = rotation(exp_map({0, 0, 0.3}));
  const Shape slab{ShapeType::box, {1, 1, 0.1}}, box{ShapeType::box, {0.2, 0.3, 0.25}},
      rod{ShapeType::capsule, {0.1, 0.3, 0}}, can{ShapeType::cylinder, {0.2, 0.25, 0}},
      prism{ShapeType::convex, {0, 0, 0}, &hulls().back(), nullptr}, plane{ShapeType::plane};
  const auto on = [&](const char* name, const Shape& a, const Mat3d& turn, double half, const Shape& b, int least) {
    const double top = b.type == ShapeType::plane ? 0 : b.type == ShapeType::convex ? 0.2 : 0.1;
    return Resting{name, {a, b, {{0.05, -0.03, top + half - 1e-3}, turn}, {{0, 0, 0}, identity3<double>()}}, least};
  };
  return {on("box on plane", box, turned, 0.25, plane, 4),     on("can on plane", can, turned, 0.25, plane, 4),
          on("rod on plane", rod, lying, 0.1, plane, 2),       on("prism on plane", prism, turned, 0.2, plane, 8),
          on("lying can on plane", can, lying, 0.2, plane, 2), on("box on box", box, turned, 0.25, slab, 4),
          on("can on box", can, turned, 0.25, slab, 8),        on("rod on box", rod, lying, 0.1, slab, 2),
          on("prism on box", prism, turned, 0.2, slab, 8),     on("lying can on box", can, lying, 0.2, slab, 2),
          on("box on prism", box, turned, 0.25, prism, 4),     on("prism on prism", prism, turned, 0.2, prism, 8),
          on("rod on prism", rod, lying, 0.1, prism, 2),       on("can on prism", can, turned, 0.25, prism, 8)};
}

TEST(Manifold, FlatFeaturesTouchInSeveralPointsAllAroundTheWeight) {
  for (const Resting& r : resting_scenes()) {
    SCOPED_TRACE(std::string("resting: ") + r.name);
    const Contacts c = contacts(r.scene, 0);
    EXPECT_GE(c.count, r.least);
    double left = 1, right = -1;
    for (int i = 0; i < c.count; ++i) {
      const ContactPoint& p = c.points[static_cast<std::size_t>(i)];
      EXPECT_NEAR(p.distance, -1e-3, 1e-9);
      EXPECT_NEAR(p.normal.z, 1, 1e-9);
      // Along the direction in which the narrowest support still extends: the axis of a lying capsule.
      left = std::min(left, p.position.y + 0.03), right = std::max(right, p.position.y + 0.03);
    }
    EXPECT_LT(left, -0.09);
    EXPECT_GT(right, 0.09);
  }
}

/// A box below a plane stands on the corners of its lower face, as in MuJoCo.
TEST(Manifold, ABoxWhollyBelowAPlaneHasFourPoints) {
  Random random(8);
  const Shape box{ShapeType::box, {0.1, 0.05, 0.002}}, plane{ShapeType::plane, {0, 0, 0}};
  for (int trial = 0; trial < 100; ++trial) {
    const Mat3d tilt = rotation(exp_map(unit(random) * uniform(random, 0, 0.015)));
    ContactPoint points[kMaxManifold];
    ASSERT_EQ(collide(box, {{0, 0, -0.2}, tilt}, plane, {{0, 0, 0}, identity3<double>()}, 0.01, points), 4);
    for (int k = 0; k < 4; ++k) {
      const Vec3d corner = points[k].position + Vec3d{0, 0, points[k].distance / 2} - Vec3d{0, 0, -0.2};
      EXPECT_LT(transpose_mul(tilt, corner).z, 0);
    }
  }
}

/// Boxes that lie on one another with aligned edges, up to rounding: four points, not two at each corner.
TEST(Manifold, CornersOnASideAreOnePointEach) {
  Random random(5);
  const Shape box{ShapeType::box, {0.1, 0.07, 0.05}};
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(trial);
    const double size = trial % 2 ? 1e-12 : 1e-16;
    const ShapePose below{{0, 0, 0}, turn(random)};
    const Mat3d tilt = rotation(exp_map(unit(random) * size));
    const ShapePose above{below.rotation * Vec3d{0, 0, 0.0999} + unit(random) * size, below.rotation * tilt};
    ContactPoint points[kMaxManifold];
    EXPECT_EQ(collide(box, above, box, below, 0.01, points), 4);
  }
}

TEST(Manifold, FeaturesStayWhileAShapeRocksALittle) {
  Random random(21);
  for (const Resting& r : resting_scenes()) {
    SCOPED_TRACE(std::string("resting: ") + r.name);
    const auto features = [](const Contacts& c) {
      std::vector<std::uint32_t> out;
      for (int i = 0; i < c.count; ++i) out.push_back(c.points[static_cast<std::size_t>(i)].feature);
      std::sort(out.begin(), out.end());
      return out;
    };
    const auto first = features(contacts(r.scene, 0.01));
    EXPECT_EQ(std::adjacent_find(first.begin(), first.end()), first.end()) << "each point has a feature of its own";
    for (int k = 0; k < 100; ++k) {
      Scene s = r.scene;
      s.pa.position += unit(random) * 1e-6;
      s.pa.rotation = rotation(exp_map(unit(random) * 1e-6)) * s.pa.rotation;
      EXPECT_EQ(features(contacts(s, 0.01)), first);
    }
  }
}

/// Both ends of a capsule or a cylinder that leans towards a face, each with its distance from the face's plane: the
/// farther end may be the faster one.
TEST(Manifold, WhatLeansTowardsAFaceHasBothItsEnds) {
  Random random(5);
  const Shape wall{ShapeType::box, {3, 3, 0.01}};
  const Mat3d at = turn(random);
  for (const ShapeType type : {ShapeType::capsule, ShapeType::cylinder}) {
    for (int run = 0; run < 200; ++run) {
      const double lean = uniform(random, 0.02, type == ShapeType::capsule ? 1.4 : 0.7),
                   high = uniform(random, 0.5, 0.8);
      const Mat3d R = at * rotation(axis_angle({0, 0, 1}, uniform(random, -3, 3))) *
                      rotation(axis_angle({0, 1, 0}, std::numbers::pi / 2 - lean));
      const Shape rod{type, {0.03, 0.3, 0}};
      std::array<ContactPoint, kMaxManifold> points;
      const int count = collide(rod, {at * Vec3d{0.2, 0.1, high}, R}, wall, {{0, 0, 0}, at}, 1.2, points);
      ASSERT_EQ(count, 2) << lean;
      const double round = type == ShapeType::capsule ? 0.03 : 0.03 * std::cos(lean);
      const double apart = high - 0.01 - round, rise = 0.3 * std::sin(lean);
      const auto [near, far] = std::minmax(points[0].distance, points[1].distance);
      EXPECT_NEAR(near, apart - rise, 1e-9) << lean;
      EXPECT_NEAR(far, apart + rise, 1e-9) << lean;
    }
  }
}

/// Axes that cross, and a centre on an axis: the direction from one to the other is rounding. Moved out by the reported
/// depth along the normal, the shapes must be apart.
TEST(Manifold, WhatCoincidesPartsAcrossTheAxes) {
  Random random(11);
  const Shape a{ShapeType::capsule, {0.05, 0.3, 0}, nullptr, nullptr},
      b{ShapeType::capsule, {0.04, 0.3, 0}, nullptr, nullptr}, ball{ShapeType::sphere, {0.04, 0, 0}, nullptr, nullptr};
  for (int trial = 0; trial < 2000; ++trial) {
    const auto turned = [&] {
      const Vec3d turn{uniform(random, -3, 3), uniform(random, -3, 3), uniform(random, -3, 3)};
      return ShapePose{{uniform(random, -1, 1), uniform(random, -1, 1), uniform(random, -1, 1)},
                       rotation(exp_map(turn))};
    };
    ShapePose pa = turned(), pb = turned();
    const bool crossing = trial % 2 == 0;
    const Vec3d u = pa.rotation.column_z(), v = pb.rotation.column_z();
    if (crossing && norm(cross(u, v)) < 0.1) continue;
    pb.position = pa.position + u * uniform(random, -0.2, 0.2);
    if (crossing) pb.position += v * uniform(random, -0.2, 0.2);
    std::array<ContactPoint, kMaxManifold> points;
    const Shape& second = crossing ? b : ball;
    ASSERT_EQ(collide(a, pa, second, pb, 0, points), 1) << trial;
    const ContactPoint first = points[0];
    EXPECT_NEAR(dot(first.normal, u), 0, 1e-9) << trial;
    pa.position += first.normal * (-first.distance * 1.001);
    EXPECT_EQ(collide(a, pa, second, pb, 0, points), 0) << trial;
  }
}

TEST(Manifold, NearlyParallelCapsulesAreAsFarApartAsTheirSegments) {
  Random random(22);
  int several = 0;
  for (int k = 0; k < 3000; ++k) {
    const double angle = std::pow(10, uniform(random, -9, -1));
    Scene s{{ShapeType::capsule, {0.1, 0.5, 0}}, {ShapeType::capsule, {0.15, 0.4, 0}}, {}, {}};
    s.pa.rotation = rotation(exp_map(unit(random) * angle));
    s.pa.position = {0.24, uniform(random, -0.02, 0.02), uniform(random, -0.5, 0.5)};
    const Contacts c = contacts(s, 0.1);
    ASSERT_GT(c.count, 0);
    several += c.count > 1;
    const ContactPoint& p = c.deepest();
    EXPECT_NEAR(p.distance, separation(s.a, s.pa, s.b, s.pb, p.normal), 1e-8) << angle;
  }
  EXPECT_GT(several, 1000);
}

/// Gaps down to a tenth of a nanometre, at which a difference of two points has few digits. The distance is that along
/// the normal, whichever corners define it.
TEST(Ellipsoid, IsExactNextToCornersEdgesAndFaces) {
  Random random(23);
  for (const ShapeType other : {ShapeType::box, ShapeType::convex}) {
    int seen = 0;
    double worst = 0;
    for (int k = 0; k < 3000; ++k) {
      Scene s = random_scene(ShapeType::ellipsoid, other, random);
      const ContactPoint p = contacts(s, 10).deepest();
      const double gap = std::pow(10, uniform(random, -10, -3));
      s.pb.position = s.pb.position - s.pa.position, s.pa.position = {0, 0, 0};  // for small rounding errors
      s.pb.position += p.normal * (p.distance - gap);
      const ContactPoint q = contacts(s, 10).deepest();
      if (!(q.distance > 0)) continue;  // another direction separated them less
      worst = std::max(worst, std::abs(q.distance - separation(s.a, s.pa, s.b, s.pb, q.normal)));
      seen += q.distance < 1.1 * gap;
    }
    EXPECT_LT(worst, 1e-14);
    EXPECT_GT(seen, 2500);
  }
}

constexpr ShapeType kPlane = ShapeType::plane, kSphere = ShapeType::sphere, kCapsule = ShapeType::capsule,
                    kEllipsoid = ShapeType::ellipsoid, kCylinder = ShapeType::cylinder, kBox = ShapeType::box,
                    kConvex = ShapeType::convex;

INSTANTIATE_TEST_SUITE_P(Pairs, NarrowPhase, testing::ValuesIn([] {
                           const ShapeType types[] = {kPlane, kSphere, kCapsule, kEllipsoid, kCylinder, kBox, kConvex};
                           std::vector<PairCase> pairs;
                           for (const ShapeType a : types) {
                             for (const ShapeType b : types) {
                               if (a >= b && a != kPlane) pairs.push_back({a, b});
                             }
                           }
                           return pairs;
                         }()),
                         pair_name);

}  // namespace
}  // namespace tarsus
