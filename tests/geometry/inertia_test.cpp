// Mass properties against independently computed integrals: fine tessellations, affine maps, closed forms of solids
// that the code does not know, and additivity.
#include "tarsus/geometry/inertia.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "tarsus/base/error.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {
namespace {

struct Mesh {
  std::vector<Vec3d> vertices;
  std::vector<Triangle> triangles;
};

/// A surface of revolution about z through the profile (radius, z), from the lowest pole to the highest.
Mesh revolve(const std::vector<std::array<double, 2>>& profile, int around, const Vec3d& scale = {1, 1, 1}) {
  Mesh m;
  for (const auto& p : profile) {
    for (int j = 0; j < around; ++j) {
      const double a = 2 * kPi * j / around;
      m.vertices.push_back({scale.x * p[0] * std::cos(a), scale.y * p[0] * std::sin(a), scale.z * p[1]});
    }
  }
  for (int i = 0; i + 1 < static_cast<int>(profile.size()); ++i) {
    for (int j = 0; j < around; ++j) {
      const int a = i * around + j, b = i * around + (j + 1) % around;
      m.triangles.push_back({a, b, b + around});
      m.triangles.push_back({a, b + around, a + around});
    }
  }
  return m;
}

/// The profile of a capsule of radius r, with n rings for each cap.
std::vector<std::array<double, 2>> capsule_profile(double r, double half, int n) {
  std::vector<std::array<double, 2>> p;
  for (int i = 0; i <= n; ++i)
    p.push_back({r * std::cos(kPi / 2 * (i - n) / n), -half + r * std::sin(kPi / 2 * (i - n) / n)});
  for (int i = 0; i <= n; ++i) p.push_back({r * std::cos(kPi / 2 * i / n), half + r * std::sin(kPi / 2 * i / n)});
  return p;
}

Mesh box_mesh(const Vec3d& s) {
  Mesh m;
  for (int i = 0; i < 8; ++i) m.vertices.push_back({i & 1 ? s.x : -s.x, i & 2 ? s.y : -s.y, i & 4 ? s.z : -s.z});
  const int quads[6][4] = {{0, 4, 6, 2}, {1, 3, 7, 5}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 2, 3, 1}, {4, 5, 7, 6}};
  for (const auto& q : quads) {
    m.triangles.push_back({q[0], q[1], q[2]});
    m.triangles.push_back({q[0], q[2], q[3]});
  }
  return m;
}

void expect_near(const ShapeInertia& a, const ShapeInertia& b, double relative) {
  const double size = b.inertia.xx + b.inertia.yy + b.inertia.zz, length = std::sqrt(size / b.volume);
  EXPECT_NEAR(a.volume, b.volume, relative * b.volume);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(a.com[i], b.com[i], relative * length);
  const Mat3d f = a.inertia.full(), g = b.inertia.full();
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(f(i, j), g(i, j), relative * size) << i << j;
  }
}

/// Largest relative difference of volume and moments, for slopes.
double difference(const ShapeInertia& a, const ShapeInertia& b) {
  const Sym3d d = a.inertia - b.inertia;
  const double size = b.inertia.xx + b.inertia.yy + b.inertia.zz;
  return std::max(
      {std::abs(a.volume / b.volume - 1), std::abs(d.xx) / size, std::abs(d.yy) / size, std::abs(d.zz) / size});
}

struct Tessellated {
  const char* name;
  ShapeType type;
  Vec3d size;
  std::function<Mesh(int)> mesh;  // of n rings to a quarter turn
};

std::vector<Tessellated> tessellated() {
  return {
      {"sphere", ShapeType::sphere, {0.3, 0, 0}, [](int n) { return revolve(capsule_profile(0.3, 0, n), 4 * n); }},
      {"capsule",
       ShapeType::capsule,
       {0.3, 0.7, 0},
       [](int n) { return revolve(capsule_profile(0.3, 0.7, n), 4 * n); }},
      {"cylinder",
       ShapeType::cylinder,
       {0.4, 0.9, 0},
       [](int n) {
         return revolve({{0, -0.9}, {0.4, -0.9}, {0.4, 0.9}, {0, 0.9}}, 4 * n);
       }},
      {"ellipsoid",
       ShapeType::ellipsoid,
       {0.3, 0.7, 0.5},
       [](int n) {
         return revolve(capsule_profile(1, 0, n), 4 * n, {0.3, 0.7, 0.5});
       }},
  };
}

TEST(ShapeInertia, TessellationsConvergeToTheClosedFormWithSecondOrder) {
  for (const Tessellated& s : tessellated()) {
    for (bool shell : {false, true}) {
      if (shell && s.type == ShapeType::ellipsoid) continue;  // an approximation, tested below
      SCOPED_TRACE(std::string(s.name) + (shell ? " shell" : ""));
      const MeshInertia kind = shell ? MeshInertia::shell : MeshInertia::exact;
      const ShapeInertia closed = shape_inertia(s.type, s.size, shell);
      double error[2];
      for (int k = 0; k < 2; ++k) {
        const Mesh m = s.mesh(24 << k);
        error[k] = difference(mesh_inertia(m.vertices, m.triangles, kind), closed);
      }
      EXPECT_LT(error[1], 1e-3);
      EXPECT_NEAR(std::log2(error[0] / error[1]), 2, 0.05);  // chords lie h²/8 inside an arc
    }
  }
}

TEST(ShapeInertia, BoxEqualsItsTwelveTrianglesExactly) {
  const Vec3d s{0.3, 0.7, 0.5};
  const Mesh m = box_mesh(s);
  expect_near(mesh_inertia(m.vertices, m.triangles, MeshInertia::exact), shape_inertia(ShapeType::box, s), 1e-14);
  expect_near(mesh_inertia(m.vertices, m.triangles, MeshInertia::shell), shape_inertia(ShapeType::box, s, true), 1e-14);
}

TEST(ShapeInertia, EllipsoidShellIsTheStatedApproximation) {
  // For a sphere the only approximation is the layer's thickness, 1e-6 over a radius of 0.3.
  expect_near(shape_inertia(ShapeType::ellipsoid, {0.3, 0.3, 0.3}, true),
              shape_inertia(ShapeType::sphere, {0.3, 0, 0}, true), 2e-5);
  // Otherwise Thomsen's area is within 1.1 % of the true one, which a tessellation gives.
  for (const Vec3d& s : {Vec3d{0.3, 0.7, 0.5}, Vec3d{0.1, 1, 1}, Vec3d{0.1, 0.1, 1}}) {
    const Mesh m = revolve(capsule_profile(1, 0, 96), 384, s);
    const ShapeInertia fine = mesh_inertia(m.vertices, m.triangles, MeshInertia::shell);
    EXPECT_NEAR(shape_inertia(ShapeType::ellipsoid, s, true).volume / fine.volume, 1, 0.0115);
  }
}

TEST(ShapeInertia, CapsuleIsAdditive) {
  // A capsule is a cylinder and two halves of a sphere. Along z this is a plain sum, and a capsule of zero length is a
  // sphere.
  for (bool shell : {false, true}) {
    const double r = 0.3, h = 0.7;
    const auto whole = shape_inertia(ShapeType::capsule, {r, h, 0}, shell),
               ball = shape_inertia(ShapeType::sphere, {r, 0, 0}, shell);
    auto tube = shape_inertia(ShapeType::cylinder, {r, h, 0}, shell);
    if (shell) {
      tube.volume -= 2 * kPi * r * r;  // without the discs
      tube.inertia.zz -= kPi * r * r * r * r;
    }
    EXPECT_NEAR(whole.volume, tube.volume + ball.volume, 1e-14);
    EXPECT_NEAR(whole.inertia.zz, tube.inertia.zz + ball.inertia.zz, 1e-14);
    expect_near(shape_inertia(ShapeType::capsule, {r, 0, 0}, shell), ball, 1e-15);
  }
}

TEST(ShapeInertia, RefusesWhatIsNoLength) {
  EXPECT_THROW(shape_inertia(ShapeType::sphere, {-1, 0, 0}), ValueError);
  EXPECT_THROW(shape_inertia(ShapeType::box, {1, 1, NAN}), ValueError);
  EXPECT_THROW(shape_inertia(ShapeType::capsule, {1, INFINITY, 0}), ValueError);
  EXPECT_NO_THROW(shape_inertia(ShapeType::sphere, {1, -5, NAN}));  // sizes that a sphere does not use
  EXPECT_EQ(shape_inertia(ShapeType::box, {0, 1, 1}).volume, 0);
}

// ∫ x xᵀ about the origin, which transforms as |det A| A M Aᵀ.
Sym3d second_moment(const ShapeInertia& s) {
  const double half = (s.inertia.xx + s.inertia.yy + s.inertia.zz) / 2;
  const Vec3d& c = s.com;
  return diagonal3(half, half, half) - s.inertia +
         Sym3d{c.x * c.x, c.x * c.y, c.x * c.z, c.y * c.y, c.y * c.z, c.z * c.z} * s.volume;
}

TEST(MeshInertia, AffineImagesOfTheUnitTetrahedronFollowTheClosedForm) {
  // Unit simplex: volume 1/6, centre 1/4, ∫ x² = 1/60, ∫ x y = 1/120.
  const std::vector<Triangle> faces{{0, 2, 1}, {0, 1, 3}, {0, 3, 2}, {1, 2, 3}};
  const Sym3d unit{1 / 60., 1 / 120., 1 / 120., 1 / 60., 1 / 120., 1 / 60.};
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  for (int round = 0; round < 200; ++round) {
    Mat3d a;
    for (int i = 0; i < 9; ++i) (&a.xx)[i] = normal(random);
    const double det = dot(cross(a.column_x(), a.column_y()), a.column_z());
    if (std::abs(det) < 0.05) continue;
    const Vec3d o{normal(random), normal(random), normal(random)};
    const std::vector<Vec3d> v{o, o + a.column_x(), o + a.column_y(), o + a.column_z()};
    std::vector<Triangle> t = faces;
    if (det < 0) {
      for (Triangle& f : t) std::swap(f[0], f[1]);
    }
    const Vec3d centre = o + a * Vec3d{0.25, 0.25, 0.25};
    // About the origin: A M Aᵀ |det| + o sᵀ + s oᵀ + o oᵀ V, s = A ∫x = A (1/24) |det|.
    const double volume = std::abs(det) / 6;
    const Vec3d s = a * Vec3d{1 / 24., 1 / 24., 1 / 24.} * std::abs(det);
    Sym3d expected = rotate(a, unit) * std::abs(det);
    expected += Sym3d{2 * o.x * s.x, o.x * s.y + s.x * o.y, o.x * s.z + s.x * o.z,
                      2 * o.y * s.y, o.y * s.z + s.y * o.z, 2 * o.z * s.z};
    expected += Sym3d{o.x * o.x, o.x * o.y, o.x * o.z, o.y * o.y, o.y * o.z, o.z * o.z} * volume;
    for (MeshInertia kind : {MeshInertia::exact, MeshInertia::convex, MeshInertia::legacy}) {  // convex: all the same
      const ShapeInertia got = mesh_inertia(v, t, kind);
      EXPECT_NEAR(got.volume, volume, 1e-12 * volume + 1e-14);
      for (int i = 0; i < 3; ++i) EXPECT_NEAR(got.com[i], centre[i], 1e-11);
      const Sym3d m = second_moment(got);
      for (int i = 0; i < 6; ++i) EXPECT_NEAR((&m.xx)[i], (&expected.xx)[i], 1e-10 * (1 + std::abs((&expected.xx)[i])));
    }
  }
}

/// Two boxes side by side with a gap: `exact` counts both, `convex` fills the gap.
Mesh two_boxes() {
  Mesh m = box_mesh({0.5, 0.5, 0.5}), other = box_mesh({0.5, 0.5, 0.5});
  for (Vec3d& v : m.vertices) v.x -= 2;
  for (Triangle t : other.triangles) m.triangles.push_back({t[0] + 8, t[1] + 8, t[2] + 8});
  for (Vec3d v : other.vertices) m.vertices.push_back({v.x + 2, v.y, v.z});
  return m;
}

TEST(MeshInertia, KindsDifferAsNamed) {
  const Mesh m = two_boxes();
  EXPECT_NEAR(mesh_inertia(m.vertices, m.triangles, MeshInertia::exact).volume, 2, 1e-13);
  expect_near(mesh_inertia(m.vertices, m.triangles, MeshInertia::convex),
              shape_inertia(ShapeType::box, {2.5, 0.5, 0.5}), 1e-13);
  EXPECT_GT(mesh_inertia(m.vertices, m.triangles, MeshInertia::legacy).volume, 2.1);
  EXPECT_NEAR(mesh_inertia(m.vertices, m.triangles, MeshInertia::shell).volume, 12, 1e-13);
}

TEST(MeshInertia, ExactNeedsTrianglesThatAreAllTurnedTheSameWay) {
  const Mesh cube = box_mesh({1, 1, 1});
  for (std::size_t i = 0; i < cube.triangles.size(); ++i) {
    Mesh flipped = cube, doubled = cube;
    std::swap(flipped.triangles[i][1], flipped.triangles[i][2]);
    doubled.triangles.push_back(cube.triangles[i]);
    for (const Mesh& m : {flipped, doubled})
      EXPECT_THROW(mesh_inertia(m.vertices, m.triangles, MeshInertia::exact), ValueError) << i;
    EXPECT_NEAR(mesh_inertia(flipped.vertices, flipped.triangles, MeshInertia::legacy).volume, 8, 1e-14) << i;
  }
}

TEST(MeshInertia, RefusesWhatHasNoMass) {
  Mesh m = box_mesh({1, 1, 1});
  Mesh flipped = m;
  for (Triangle& t : flipped.triangles) std::swap(t[1], t[2]);
  EXPECT_THROW(mesh_inertia(flipped.vertices, flipped.triangles, MeshInertia::exact), ValueError);
  EXPECT_NO_THROW(mesh_inertia(flipped.vertices, flipped.triangles, MeshInertia::convex));
  EXPECT_THROW(mesh_inertia({}, {}, MeshInertia::exact), ValueError);
  const std::vector<Vec3d> flat{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {1, 1, 0}};
  const std::vector<Triangle> two{{0, 1, 2}, {2, 1, 3}};
  EXPECT_THROW(mesh_inertia(flat, two, MeshInertia::exact), ValueError);
  EXPECT_THROW(mesh_inertia(flat, two, MeshInertia::convex), ValueError);
  EXPECT_NEAR(mesh_inertia(flat, two, MeshInertia::shell).volume, 1, 1e-15);
  m.triangles[3][1] = 8;
  EXPECT_THROW(mesh_inertia(m.vertices, m.triangles, MeshInertia::exact), ValueError);
  m.triangles[3][1] = 3;
  m.vertices[2].y = NAN;
  EXPECT_THROW(mesh_inertia(m.vertices, m.triangles, MeshInertia::exact), ValueError);
  EXPECT_THROW(convex_hull(m.vertices), ValueError);
}

TEST(ConvexHull, PointsInsideDoNotCountAndEveryPointIsOnOrBelowEveryFace) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<Vec3d> points(500);
  for (Vec3d& p : points) p = {normal(random), normal(random), 0.3 * normal(random)};
  for (const Vec3d& corner : box_mesh({0.5, 0.5, 0.5}).vertices) points.push_back(corner);
  const std::vector<Triangle> hull = convex_hull(points);
  EXPECT_GE(hull.size(), 8u);
  for (const Triangle& t : hull) {
    const Vec3d n = cross(points[t[1]] - points[t[0]], points[t[2]] - points[t[0]]);
    for (const Vec3d& p : points) EXPECT_LE(dot(n, p - points[t[0]]), 1e-12 * norm(n));
  }
}

TEST(EquivalentBox, GivesTheBoxBack) {
  const Vec3d s{0.5, 0.3, 0.2};  // moments descend as the sizes do, reversed
  const ShapeInertia b = shape_inertia(ShapeType::box, s);
  const Mat3d r = rotation(axis_angle({1, 2, 3}, 0.7));
  const InertiaBox got = equivalent_box(b.volume, rotate(r, b.inertia));
  EXPECT_NEAR(got.half_size.x, 0.2, 1e-13);
  EXPECT_NEAR(got.half_size.y, 0.3, 1e-13);
  EXPECT_NEAR(got.half_size.z, 0.5, 1e-13);
  const Sym3d moved = shifted_inertia(b.inertia, 2, {0, 0, 3});
  EXPECT_NEAR(moved.xx - b.inertia.xx, 18, 1e-13);
  EXPECT_NEAR(moved.zz - b.inertia.zz, 0, 1e-13);
}

}  // namespace
}  // namespace tarsus
