#include "tarsus/geometry/inertia.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

namespace {

constexpr double kTiny = 1e-15;  // MuJoCo's mjMINVAL: smallest area or volume

double square(double x) { return x * x; }

void check_sizes(ShapeType type, const Vec3d& size) {
  const int used = type == ShapeType::sphere ? 1 : type == ShapeType::capsule || type == ShapeType::cylinder ? 2 : 3;
  for (int i = 0; i < used; ++i) {
    if (!(size[i] >= 0) || std::isinf(size[i])) {
      throw ValueError("size[" + std::to_string(i) + "]", number_text(size[i]), "a finite length of at least 0 m");
    }
  }
}

/// Mass properties of a body of revolution: `volume`, and the moments perpendicular to and along its axis.
ShapeInertia round_shape(double volume, double across, double along) {
  return {volume, zero3<double>(), diagonal3(across, across, along)};
}

ShapeInertia capsule(double r, double half, bool shell) {
  // Two half balls, whose centres of mass are c beyond the ends, and a cylinder between them.
  const double ends = shell ? 4 * kPi * r * r : 4.0 / 3.0 * kPi * r * r * r;
  const double side = shell ? 4 * kPi * r * half : 2 * kPi * r * r * half;
  const double ball = ends * r * r * (shell ? 2.0 / 3.0 : 0.4);
  const double c = r * (shell ? 0.5 : 0.375);
  const double tube = shell ? side * (r * r / 2 + half * half / 3) : side * (r * r / 4 + half * half / 3);
  return round_shape(ends + side, tube + ball + ends * half * (half + 2 * c), side * r * r * (shell ? 1 : 0.5) + ball);
}

ShapeInertia cylinder(double r, double half, bool shell) {
  if (!shell) {
    const double v = 2 * kPi * r * r * half;
    return round_shape(v, v * (r * r / 4 + half * half / 3), v * r * r / 2);
  }
  const double side = 4 * kPi * r * half, disks = 2 * kPi * r * r;
  return round_shape(side + disks, side * (r * r / 2 + half * half / 3) + disks * (r * r / 4 + half * half),
                     side * r * r + disks * r * r / 2);
}

Sym3d ellipsoid_moments(double mass, const Vec3d& s) {
  return diagonal3(s.y * s.y + s.z * s.z, s.x * s.x + s.z * s.z, s.x * s.x + s.y * s.y) * (mass / 5);
}

ShapeInertia ellipsoid(const Vec3d& s, bool shell) {
  const double volume = 4 * kPi * s.x * s.y * s.z / 3;
  if (!shell) return {volume, zero3<double>(), ellipsoid_moments(volume, s)};
  constexpr double kPower = 1.6075, kLayer = 1e-6;  // Thomsen's exponent; the layer's thickness along the axes
  const double sum =
      elementary::pow(s.x * s.y, kPower) + elementary::pow(s.y * s.z, kPower) + elementary::pow(s.z * s.x, kPower);
  const double area = 4 * kPi * elementary::pow(sum / 3, 1 / kPower);
  const Vec3d outer{s.x + kLayer, s.y + kLayer, s.z + kLayer};
  const double outer_volume = 4 * kPi * outer.x * outer.y * outer.z / 3;
  const double density = area / (outer_volume - volume);
  return {area, zero3<double>(),
          ellipsoid_moments(outer_volume * density, outer) - ellipsoid_moments(volume * density, s)};
}

ShapeInertia box(const Vec3d& s, bool shell) {
  const double xx = square(s.x), yy = square(s.y), zz = square(s.z);
  if (!shell) {
    const double v = 8 * s.x * s.y * s.z;
    return {v, zero3<double>(), diagonal3(yy + zz, xx + zz, xx + yy) * (v / 3)};
  }
  // Second moments ∫ x² dA: the two faces normal to x have all their area at x = ±s.x, the others spread evenly.
  const double ax = 8 * s.y * s.z, ay = 8 * s.x * s.z, az = 8 * s.x * s.y;
  const double mx = xx * (ax + (ay + az) / 3), my = yy * (ay + (ax + az) / 3), mz = zz * (az + (ax + ay) / 3);
  return {ax + ay + az, zero3<double>(), diagonal3(my + mz, mx + mz, mx + my)};
}

// One triangle: area, unit normal (zero for a degenerate one) and centre.
struct Face {
  double area;
  Vec3d normal, centre;
};

Face face(const Vec3d& a, const Vec3d& b, const Vec3d& c) {
  const Vec3d n = cross(b - a, c - a);
  const double length = norm(n);
  return {length / 2, length > 0 ? n * (1 / length) : zero3<double>(), (a + b + c) * (1.0 / 3)};
}

void check_mesh(std::span<const Vec3d> vertices, std::span<const Triangle> triangles) {
  for (const Vec3d& v : vertices) {
    if (!std::isfinite(v.x) || !std::isfinite(v.y) || !std::isfinite(v.z)) {
      throw ValueError("mesh vertex", "nan or inf", "finite coordinates [m]");
    }
  }
  for (const Triangle& t : triangles) {
    for (int i : t) {
      if (i < 0 || static_cast<std::size_t>(i) >= vertices.size()) {
        throw ValueError("mesh index", std::to_string(i),
                         "at least 0 and below " + std::to_string(vertices.size()) + ", the number of vertices");
      }
    }
  }
}

/// @throws ValueError if two triangles share an edge in the same direction
void check_turned_alike(std::span<const Triangle> triangles) {
  std::vector<std::array<int, 2>> edges;
  for (const Triangle& t : triangles) {
    for (int k = 0; k < 3; ++k) edges.push_back({t[std::size_t(k)], t[std::size_t((k + 1) % 3)]});
  }
  std::sort(edges.begin(), edges.end());
  if (const auto twice = std::adjacent_find(edges.begin(), edges.end()); twice != edges.end())
    throw ValueError(
        "mesh edge",
        "from vertex " + std::to_string((*twice)[0]) + " to " + std::to_string((*twice)[1]) + " of two triangles",
        "one of one triangle only: exact inertia needs triangles that are all turned the same way");
}

/// ∫ x xᵀ over a triangle (weight = area, parts = 12) or the tetrahedron that it spans with the origin (20).
Sym3d second_moment(const Vec3d& a, const Vec3d& b, const Vec3d& c, double weight, double parts) {
  const Vec3d s = a + b + c;
  const auto product = [&](int i, int j) { return a[i] * a[j] + b[i] * b[j] + c[i] * c[j] + s[i] * s[j]; };
  return Sym3d{product(0, 0), product(0, 1), product(0, 2), product(1, 1), product(1, 2), product(2, 2)} *
         (weight / parts);
}

}  // namespace

const char* name(ShapeType type) {
  static constexpr const char* kNames[] = {"plane",    "sphere", "capsule", "ellipsoid",
                                           "cylinder", "box",    "convex",  "height_field"};
  return kNames[static_cast<int>(type)];
}

ShapeInertia shape_inertia(ShapeType type, const Vec3d& size, bool shell) {
  check_sizes(type, size);
  switch (type) {
    case ShapeType::sphere: return capsule(size.x, 0, shell);
    case ShapeType::capsule: return capsule(size.x, size.y, shell);
    case ShapeType::cylinder: return cylinder(size.x, size.y, shell);
    case ShapeType::ellipsoid: return ellipsoid(size, shell);
    case ShapeType::box: return box(size, shell);
    case ShapeType::plane:
    case ShapeType::convex:
    case ShapeType::height_field: break;
  }
  throw ValueError("shape", name(type), "sphere, capsule, cylinder, ellipsoid or box");
}

ShapeInertia mesh_inertia(std::span<const Vec3d> vertices, std::span<const Triangle> triangles, MeshInertia kind) {
  check_mesh(vertices, triangles);
  if (kind == MeshInertia::exact) check_turned_alike(triangles);
  const bool shell = kind == MeshInertia::shell;
  // The apex of the first sum: the surface's centroid, computed from the mesh as in MuJoCo.
  Vec3d apex = zero3<double>();
  double area = 0;
  for (const Triangle& t : triangles) {
    const Face f = face(vertices[t[0]], vertices[t[1]], vertices[t[2]]);
    apex += f.centre * f.area;
    area += f.area;
  }
  if (!(area >= kTiny)) throw ValueError("mesh surface area", number_text(area), "at least 1e-15 m²");
  apex = apex * (1 / area);

  std::vector<Triangle> hull;
  if (kind == MeshInertia::convex) triangles = hull = convex_hull(vertices);

  const auto pyramid = [&](const Face& f, const Vec3d& from) {
    const double volume = dot(f.centre - from, f.normal) * f.area / 3;
    return shell ? f.area : kind == MeshInertia::legacy ? std::abs(volume) : volume;
  };
  ShapeInertia out;
  Vec3d com = zero3<double>();
  double volume = 0;
  for (const Triangle& t : triangles) {
    const Face f = face(vertices[t[0]], vertices[t[1]], vertices[t[2]]);
    const double v = pyramid(f, apex);
    volume += v;
    com += (f.centre * 0.75 + apex * 0.25) * v;
  }
  if (!shell && !(volume >= kTiny)) {
    throw ValueError("mesh volume", number_text(volume),
                     volume < 0 ? "more than 0 m³; the triangles are turned inside out"
                                : "at least 1e-15 m³; a thin mesh needs shell inertia");
  }
  out.com = shell ? apex : com * (1 / volume);

  Sym3d moment{0, 0, 0, 0, 0, 0};
  for (const Triangle& t : triangles) {
    const Vec3d a = vertices[t[0]] - out.com, b = vertices[t[1]] - out.com, c = vertices[t[2]] - out.com;
    const double v = pyramid(face(a, b, c), zero3<double>());
    out.volume += v;  // legacy: differs from `volume` because its pyramids start at the centre of mass
    moment += second_moment(a, b, c, v, shell ? 12 : 20);
  }
  out.inertia = {moment.yy + moment.zz, -moment.xy, -moment.xz,
                 moment.xx + moment.zz, -moment.yz, moment.xx + moment.yy};
  return out;
}

InertiaBox equivalent_box(double mass, const Sym3d& inertia) {
  const Eigen3 e = eigen(inertia);
  const Vec3d& d = e.values;
  const auto half = [&](double a, double b, double c) { return std::sqrt(std::max(0.0, 1.5 * (a + b - c) / mass)); };
  return {{half(d.y, d.z, d.x), half(d.x, d.z, d.y), half(d.x, d.y, d.z)}, e.vectors, e.orientation};
}

Sym3d shifted_inertia(const Sym3d& inertia, double mass, const Vec3d& offset) {
  const Vec3d& o = offset;
  return inertia + Sym3d{o.y * o.y + o.z * o.z, -o.x * o.y, -o.x * o.z,
                         o.x * o.x + o.z * o.z, -o.y * o.z, o.x * o.x + o.y * o.y} *
                       mass;
}

}  // namespace tarsus
