// Convex hulls: faces, supports and refused input; and the bounding boxes of all shapes.
#include "tarsus/geometry/convex_hull.hpp"
#include "support/numbers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "tarsus/base/error.hpp"
#include "tarsus/geometry/height_field.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

using test::uniform;

using Random = std::mt19937_64;

std::vector<Vec3d> sphere_points(int n, Random& random) {
  std::normal_distribution<double> normal;
  std::vector<Vec3d> points;
  for (int k = 0; k < n; ++k) {
    const Vec3d p{normal(random), normal(random), normal(random)};
    points.push_back(p * (1 / norm(p)));
  }
  return points;
}

/// Euler's formula holds, faces are flat and convex, and the hull is behind every face.
void expect_sound(const ConvexHull& hull) {
  std::size_t corners = 0;
  for (const auto& face : hull.faces()) {
    corners += static_cast<std::size_t>(face.count);
    EXPECT_NEAR(norm(face.normal), 1, 1e-12);
    EXPECT_GE(face.count, 3);
    for (const Vec3d& v : hull.vertices()) EXPECT_LE(dot(face.normal, v), face.offset + 1e-6);
    const auto loop = hull.corners(face);
    for (std::size_t k = 0; k < loop.size(); ++k) {
      const auto at = [&](std::size_t i) { return hull.vertices()[static_cast<std::size_t>(loop[i % loop.size()])]; };
      EXPECT_NEAR(dot(face.normal, at(k)), face.offset, 1e-6);
      EXPECT_GT(dot(cross(at(k + 1) - at(k), at(k + 2) - at(k + 1)), face.normal), -1e-6) << "counter-clockwise";
    }
  }
  EXPECT_EQ(hull.vertices().size() + hull.faces().size(), corners / 2 + 2);
}

TEST(ConvexHull, ACubeHasSixFacesAndAPrismTwoMore) {
  std::vector<Vec3d> cube, prism;
  for (int i = 0; i < 8; ++i) cube.push_back({i & 1 ? 1.0 : -1.0, i & 2 ? 1.0 : -1.0, i & 4 ? 1.0 : -1.0});
  cube.push_back({0, 0, 0});
  cube.push_back({0.3, 0.2, 0.1});  // inside
  const ConvexHull box(cube);
  EXPECT_EQ(box.vertices().size(), 8u);
  EXPECT_EQ(box.faces().size(), 6u);
  expect_sound(box);
  for (int k = 0; k < 10; ++k) {
    for (const double z : {-0.5, 0.5}) prism.push_back({std::cos(k * kPi / 5), std::sin(k * kPi / 5), z});
  }
  const ConvexHull decagon(prism);
  EXPECT_EQ(decagon.faces().size(), 12u);
  expect_sound(decagon);
}

TEST(ConvexHull, TheTableHasTheFarthestVertexOfEveryDirection) {
  Random random(1);
  std::vector<std::vector<Vec3d>> clouds;
  for (const int n : {4, 10, 50, 300, 2000}) clouds.push_back(sphere_points(n, random));
  clouds.emplace_back();  // the rim of a coin, all of which is farthest along its axis
  for (int k = 0; k < 400; ++k) {
    for (const double z : {-0.01, 0.01}) clouds.back().push_back({std::cos(k * kPi / 200), std::sin(k * kPi / 200), z});
  }
  const std::size_t round = clouds.size();
  clouds.push_back(clouds[3]);  // a needle, far from the origin
  for (Vec3d& p : clouds.back()) p = {1e-3 * p.x + 5, p.y - 7, 1e-4 * p.z};
  std::vector<Vec3d> directions = sphere_points(300, random);
  for (int x = -32; x <= 32; x += 4) {  // edges of the table's cells, next to them, and the axes
    for (int y = -32; y <= 32; ++y) {
      for (const double off : {0.0, 1e-15, -1e-15, 1e-7}) {
        const Vec3d d{x / 32.0 + off, y / 32.0 - off, 1};
        for (const Vec3d& e : {d, Vec3d{d.y, -d.z, d.x}, Vec3d{d.z, d.x, d.y}, -d}) directions.push_back(e);
      }
    }
  }
  for (std::size_t k = 0; k < clouds.size(); ++k) {
    const std::vector<Vec3d>& cloud = clouds[k];
    const ConvexHull hull(cloud);
    expect_sound(hull);
    for (const Vec3d& d : directions) {
      double most = -1e9, facing = -1e9;
      for (const Vec3d& v : hull.vertices()) most = std::max(most, dot(v, d));
      const int found = hull.support(d);
      ASSERT_EQ(dot(hull.vertices()[static_cast<std::size_t>(found)], d), most);
      for (const auto& face : hull.faces()) facing = std::max(facing, dot(face.normal, d));
      const auto& towards = hull.faces()[static_cast<std::size_t>(hull.face_towards(d))];
      ASSERT_GE(dot(towards.normal, d), cloud.size() > 100 && k < round ? facing - 0.1 * norm(d) : -norm(d));
      bool at_vertex = false;
      for (const int c : hull.corners(towards)) at_vertex |= c == found;
      ASSERT_TRUE(at_vertex);
    }
  }
}

// A table that is subdivided as far as possible for each of these vertices would take a hundred megabytes.
TEST(ConvexHull, VerticesInOnePlaceAreNotToldApart) {
  Random random(4);
  std::vector<Vec3d> points{{1, 0, 0}, {-1, 0, 0}, {0, 1, 0}, {0, -1, 0}};
  for (const Vec3d& p : sphere_points(60, random)) points.push_back(Vec3d{0, 0, 1} + p * 1e-13);
  const ConvexHull hull(points);
  for (const Vec3d& d : sphere_points(3000, random)) {
    double most = -1e9;
    for (const Vec3d& v : hull.vertices()) most = std::max(most, dot(v, d));
    ASSERT_EQ(dot(hull.vertices()[static_cast<std::size_t>(hull.support(d))], d), most);
  }
}

TEST(ConvexHull, DirectionsOfNoNumberHaveAVertex) {
  Random random(2);
  const ConvexHull hull(sphere_points(200, random));
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const Vec3d& d : {Vec3d{kNaN, 0, 0}, Vec3d{0, kNaN, 1}, Vec3d{kInf, 1, 0}, Vec3d{-kInf, kInf, kNaN},
                         Vec3d{0, 0, 0}, Vec3d{1e300, -1e308, 1e308}}) {
    EXPECT_LT(std::size_t(hull.support(d)), hull.vertices().size());
  }
}

TEST(ConvexHull, WhoeverAsksForOneOfTheSamePointsSharesIt) {
  Random random(3);
  const std::vector<Vec3d> points = sphere_points(300, random), others = sphere_points(300, random);
  std::vector<std::shared_ptr<const ConvexHull>> found(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < found.size(); ++i) {
    threads.emplace_back([&, i] {
      const std::vector<Vec3d> copy = points;
      found[i] = shared_hull(copy);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& hull : found) EXPECT_EQ(hull, found[0]);
  EXPECT_NE(shared_hull(others), found[0]);
  EXPECT_EQ(shared_hull(others)->vertices().size(), ConvexHull(others).vertices().size());
  std::vector<Vec3d> moved = points;
  moved[7].x *= 1 + 1e-15;
  EXPECT_NE(shared_hull(moved), found[0]);
  const std::weak_ptr<const ConvexHull> first = found[0];
  found.clear();
  for (int i = 0; i < 600; ++i) shared_hull(sphere_points(5, random));  // far more than are kept
  EXPECT_TRUE(first.expired());
  const std::vector<Vec3d> flat(4, Vec3d{1, 1, 1});
  EXPECT_THROW(shared_hull(flat), ValueError);
}

TEST(ConvexHull, NearlyFlatPointsAreOneFaceOrARefusal) {
  Random random(2);
  // A plate of 1 m whose upper side is rough by 10 nm: one face, not hundreds.
  std::vector<Vec3d> plate;
  for (int k = 0; k < 200; ++k) {
    plate.push_back({uniform(random, -0.5, 0.5), uniform(random, -0.5, 0.5), uniform(random, 0, 1e-8)});
    plate.push_back({plate.back().x, plate.back().y, -0.1});
  }
  const ConvexHull hull(plate);
  int up = 0;
  for (const auto& face : hull.faces()) up += face.normal.z > 0.9;
  EXPECT_LE(up, 3);
}

/// A disk of 12 corners, 0.2 x 0.1 x 0.04 m, whose lower corners are off by up to `rough`.
std::vector<Vec3d> sole(double rough, Random& random) {
  std::vector<Vec3d> points;
  for (int k = 0; k < 12; ++k) {
    const double x = 0.1 * std::cos(k * kPi / 6), y = 0.05 * std::sin(k * kPi / 6);
    points.push_back({x, y, -0.02 + uniform(random, -rough, rough)});
    points.push_back({x, y, 0.02});
  }
  return points;
}

TEST(ConvexHull, SidesThatAreFlatToAFewDigitsAreFlat) {
  Random random(3);
  for (const double rough : {0.0, 1e-12, 1e-9, 1e-7, 1e-6, 3e-6}) {
    for (int trial = 0; trial < 20; ++trial) {
      const std::vector<Vec3d> points = sole(rough, random);
      const ConvexHull hull(points);
      EXPECT_EQ(hull.faces().size(), 14u) << rough;
      EXPECT_EQ(hull.vertices().size(), 24u) << rough;
      expect_sound(hull);
      for (const auto& face : hull.faces()) {
        EXPECT_EQ(face.next, 0);
        for (const int v : hull.corners(face)) {
          EXPECT_NEAR(dot(face.normal, hull.vertices()[std::size_t(v)]), face.offset, 1e-11);
        }
      }
      for (const Vec3d& v : hull.vertices()) {  // the plane of a triangle of neighbours, far away from them
        const auto to = [&](const Vec3d& p) { return norm(p - v); };
        double nearest = 1;
        for (const Vec3d& p : points) nearest = std::min(nearest, to(p));
        EXPECT_LE(nearest, rough < 1e-10 ? 1e-11 : 100 * rough);
      }
    }
  }
  // A side of many triangles that is bowed by less than its digits.
  std::vector<Vec3d> bowed;
  for (int i = 0; i < 64; ++i) {
    const double x = (i % 8 - 3.5) / 3.5, y = (i / 8 - 3.5) / 3.5;
    for (const double side : {-1.0, 1.0}) bowed.push_back({0.05 * x, 0.04 * y, side * (0.02 - 5e-6 * (x * x + y * y))});
  }
  EXPECT_EQ(ConvexHull(bowed).faces().size(), 6u);
  // Thin plates and needles stay what they are.
  std::vector<Vec3d> plate;
  for (int k = 0; k < 8; ++k) plate.push_back({k & 1 ? 1.0 : -1.0, k & 2 ? 1.0 : -1.0, k & 4 ? 1e-5 * k * k : 0.0});
  EXPECT_GT(ConvexHull(plate).faces().size(), 6u) << "0.16 to 0.49 mm thick, twisted by 0.04 mm";
}

/// Boxes, prisms and wedges with corners that are off by some digits, thin and long ones among them: the hull stays
/// where its points are.
TEST(ConvexHull, MadeFlatItIsWhereItsPointsAre) {
  Random random(6);
  for (int trial = 0; trial < 2000; ++trial) {
    const int sides = 3 + trial % 9;
    const double rough = std::pow(10, uniform(random, -9, -3)), taper = trial % 4 ? 1 : uniform(random, 0, 1);
    const Vec3d scale{1, std::pow(10, uniform(random, -2, 0)), std::pow(10, uniform(random, -3, 0.5))};
    std::vector<Vec3d> points;
    for (int k = 0; k < sides; ++k) {
      const double at = 2 * kPi * (k + uniform(random, -0.4, 0.4)) / sides;
      for (const double end : {-1.0, 1.0}) {
        const double r = end > 0 ? taper : 1;
        const auto off = [&] { return uniform(random, -rough, rough); };
        points.push_back(
            {scale.x * r * std::cos(at) + off(), scale.y * r * std::sin(at) + off(), scale.z * end + off()});
      }
    }
    const ConvexHull hull(points);
    const double size = norm(hull.box().upper - hull.box().lower);
    for (int k = 0; k < 60; ++k) {
      const Vec3d d = sphere_points(1, random)[0];
      double before = -1e9;
      for (const Vec3d& p : points) before = std::max(before, dot(p, d));
      EXPECT_NEAR(dot(hull.vertices()[static_cast<std::size_t>(hull.support(d))], d), before, 3e-4 * size) << trial;
    }
  }
}

/// The rim is convex and around all near corners; next faces lean little and share a corner.
TEST(ConvexHull, NearCornersAreThoseOfTheNextFaces) {
  Random random(4);
  std::vector<std::vector<Vec3d>> clouds{sphere_points(300, random), sphere_points(2000, random), sole(3e-4, random)};
  for (const auto& cloud : clouds) {
    const ConvexHull hull(cloud);
    int with_next = 0;
    for (const auto& face : hull.faces()) {
      const auto near = hull.near_corners(face);
      const auto at = [&](int v) { return hull.vertices()[static_cast<std::size_t>(v)]; };
      const auto has = [](std::span<const int> all, int v) {
        return std::find(all.begin(), all.end(), v) != all.end();
      };
      std::vector<int> expected(hull.corners(face).begin(), hull.corners(face).end());
      for (const auto& other : hull.faces()) {
        const auto theirs = hull.corners(other);
        const bool meet = &other != &face &&
                          std::any_of(theirs.begin(), theirs.end(), [&](int v) { return has(hull.corners(face), v); });
        const bool next = meet && dot(other.normal, face.normal) >= 0.97;
        EXPECT_EQ(has(hull.next_faces(face), int(&other - hull.faces().data())), next);
        if (next) expected.insert(expected.end(), theirs.begin(), theirs.end());
      }
      with_next += face.next > 0;
      for (const int v : expected) EXPECT_TRUE(has(near, v));
      for (const int v : near) EXPECT_TRUE(has(expected, v));
      EXPECT_EQ(std::set<int>(near.begin(), near.end()).size(), near.size()) << "no corner twice";
      for (int k = 0; k < face.rim; ++k) {
        const Vec3d from = at(near[std::size_t(k)]), to = at(near[std::size_t((k + 1) % face.rim)]);
        for (const int v : near) EXPECT_GT(dot(cross(to - from, at(v) - from), face.normal), -1e-6);
      }
    }
    EXPECT_GT(with_next, 8);
  }
}

/// In a shallow cone every side is next to every other.
TEST(ConvexHull, NextFacesAreBounded) {
  std::vector<Vec3d> cone{{0, 0, 0.1}};
  for (int k = 0; k < 1000; ++k) cone.push_back({std::cos(k * kPi / 500), std::sin(k * kPi / 500), 0});
  const ConvexHull hull(cone);
  ASSERT_EQ(hull.faces().size(), 1001u);
  for (const auto& face : hull.faces()) {
    EXPECT_LE(face.next, 32);
    EXPECT_LE(face.near, 1001);
    EXPECT_LE(face.near, face.count + 3 * 32);
  }
}

TEST(ConvexHull, DegeneratePointsAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  EXPECT_THROW(ConvexHull({}), ValueError);
  const auto refused = [](std::vector<Vec3d> points, const std::string& message = "") {
    try {
      const ConvexHull hull(points);
      ADD_FAILURE() << message;
    } catch (const ValueError& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
    }
  };
  refused(std::vector<Vec3d>(20, Vec3d{1, 2, 3}), "convex hull points: is all the same, expected points that span");
  std::vector<Vec3d> line, plane, good = {{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (int k = 0; k < 20; ++k) {
    line.push_back({1.0 * k, 2.0 * k, 3.0 * k});
    plane.push_back({std::cos(k), std::sin(k), 0.5});
  }
  refused(line, "is in a plane or on a line");
  refused(plane, "is in a plane or on a line");
  for (const double bad : {nan, inf, -inf}) {
    auto points = good;
    points[2].y = bad;
    refused(points);
  }
  // Given these points qhull crashes.
  for (const double huge : {1e60, 1e160, 1e300, -1e308}) {
    auto points = good;
    points[1].x = huge;
    refused(points);
  }
  refused({{0, 0, 0}, {1e-300, 0, 0}, {0, 1e-300, 0}, {0, 0, 1e-300}});
  for (const double scale : {1e-6, 1e6}) {
    auto points = good;
    for (Vec3d& p : points) p = p * scale;
    EXPECT_EQ(ConvexHull(points).faces().size(), 4u);
  }
}

TEST(Bounds, HoldTheShapeAndTouchIt) {
  Random random(3);
  const ConvexHull hull(sphere_points(30, random));
  std::vector<double> heights(12);
  for (double& h : heights) h = uniform(random, -1, 1);
  const HeightField field(3, 4, heights, 2, 1, 2);
  for (const ShapeType type : {ShapeType::sphere, ShapeType::capsule, ShapeType::ellipsoid, ShapeType::cylinder,
                               ShapeType::box, ShapeType::convex, ShapeType::height_field}) {
    for (int trial = 0; trial < 50; ++trial) {
      const Vec3d s{uniform(random, 0, 1), uniform(random, 0, 1), uniform(random, 0, 1)};
      const Shape shape{type, s, &hull, &field};
      const Mat3d r = rotation(exp_map({uniform(random, -2, 2), uniform(random, -2, 2), uniform(random, -2, 2)}));
      const ShapePose pose{{1, 2, 3}, r};
      const Aabb box = bounds(shape, pose, 0.1);
      // Points of the surface for sampled directions.
      Vec3d low{9, 9, 9}, high{-9, -9, -9};
      for (const Vec3d& d : sphere_points(4000, random)) {
        Vec3d p{0, 0, 0};
        const double across = std::hypot(d.x, d.y);
        switch (type) {
          case ShapeType::sphere: p = d * s.x; break;
          case ShapeType::capsule: p = d * s.x + Vec3d{0, 0, std::copysign(s.y, d.z)}; break;
          case ShapeType::ellipsoid: p = {d.x * s.x, d.y * s.y, d.z * s.z}; break;
          case ShapeType::cylinder: p = {d.x / across * s.x, d.y / across * s.x, std::copysign(s.y, d.z)}; break;
          case ShapeType::box: p = {std::copysign(s.x, d.x), std::copysign(s.y, d.y), std::copysign(s.z, d.z)}; break;
          case ShapeType::convex: p = hull.vertices()[static_cast<std::size_t>(hull.support(d))]; break;
          default:
            p = field.point(std::abs(d.x) < 0.3 ? 1 : d.x < 0 ? 0 : 2, static_cast<int>(std::abs(d.y) * 3.99));
            break;
        }
        p = pose.position + r * p;
        for (int i = 0; i < 3; ++i) low[i] = std::min(low[i], p[i]), high[i] = std::max(high[i], p[i]);
      }
      const bool loose = type == ShapeType::convex || type == ShapeType::height_field;
      for (int i = 0; i < 3; ++i) {
        EXPECT_LE(box.lower[i], low[i] - 0.1 + 1e-12) << name(type);
        EXPECT_GE(box.upper[i], high[i] + 0.1 - 1e-12) << name(type);
        if (!loose) {
          EXPECT_NEAR(box.lower[i], low[i] - 0.1, 0.02) << name(type);
          EXPECT_NEAR(box.upper[i], high[i] + 0.1, 0.02) << name(type);
        }
      }
    }
  }
  const Shape plane{ShapeType::plane, {0, 0, 0}, nullptr, nullptr};
  EXPECT_EQ(bounds(plane, {{0, 0, 2}, identity3<double>()}, 0.5).upper.z, 2.5);
  EXPECT_TRUE(std::isinf(bounds(plane, {{0, 0, 2}, rotation(exp_map({0.3, 0, 0}))}, 0.5).upper.z));
}

TEST(CheckShape, BadSizesAreNamed) {
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(check_shape({ShapeType::box, {1, bad, 1}}), ValueError);
    EXPECT_NO_THROW(check_shape({ShapeType::plane, {bad, bad, bad}}));
  }
  EXPECT_NO_THROW(check_shape({ShapeType::sphere, {0, 0, 0}}));
  EXPECT_THROW(check_shape({ShapeType::convex, {0, 0, 0}}), ValueError);
}

}  // namespace
}  // namespace tarsus
