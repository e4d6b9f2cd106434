#include "tarsus/geometry/shape.hpp"

#include <cmath>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/geometry/convex_hull.hpp"
#include "tarsus/geometry/height_field.hpp"

namespace tarsus {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Vec3d absolute(const Vec3d& v) { return {std::abs(v.x), std::abs(v.y), std::abs(v.z)}; }

/// Half-widths in world axes of a box of these half-sizes.
Vec3d turned(const Mat3d& r, const Vec3d& half) {
  return {dot(absolute(r.row_x()), half), dot(absolute(r.row_y()), half), dot(absolute(r.row_z()), half)};
}

Aabb plane_bounds(const ShapePose& pose, double margin) {
  Aabb box{{-kInf, -kInf, -kInf}, {kInf, kInf, kInf}};
  const Vec3d n = pose.rotation.column_z();
  for (int i = 0; i < 3; ++i) {
    if (std::abs(n[i]) < 1 - 1e-15) continue;
    if (n[i] > 0)
      box.upper[i] = pose.position[i] + margin;
    else
      box.lower[i] = pose.position[i] - margin;
  }
  return box;
}

}  // namespace

void check_shape(const Shape& shape) {
  if (shape.type == ShapeType::plane) return;
  for (int i = 0; i < 3; ++i) {
    if (!(shape.size[i] >= 0) || std::isinf(shape.size[i])) {
      throw ValueError(fmt::format("{} size[{}]", name(shape.type), i), number_text(shape.size[i]),
                       "a finite length of at least 0 m");
    }
  }
  if (shape.type == ShapeType::convex && !shape.hull) throw ValueError("shape hull", "none", "a ConvexHull");
  if (shape.type == ShapeType::height_field && !shape.field) throw ValueError("shape field", "none", "a HeightField");
}

Aabb bounds(const Shape& shape, const ShapePose& pose, double margin) {
  const Vec3d& s = shape.size;
  const Vec3d axis = absolute(pose.rotation.column_z());
  Vec3d half{0, 0, 0}, centre = pose.position;
  switch (shape.type) {
    case ShapeType::plane: return plane_bounds(pose, margin);
    case ShapeType::sphere: half = {s.x, s.x, s.x}; break;
    case ShapeType::capsule: half = axis * s.y + Vec3d{s.x, s.x, s.x}; break;
    case ShapeType::cylinder:
      for (int i = 0; i < 3; ++i) half[i] = axis[i] * s.y + s.x * std::sqrt(std::max(0.0, 1 - axis[i] * axis[i]));
      break;
    case ShapeType::ellipsoid: {
      const auto width = [&](const Vec3d& row) { return norm(Vec3d{row.x * s.x, row.y * s.y, row.z * s.z}); };
      half = {width(pose.rotation.row_x()), width(pose.rotation.row_y()), width(pose.rotation.row_z())};
      break;
    }
    case ShapeType::box: half = turned(pose.rotation, s); break;
    case ShapeType::convex:
    case ShapeType::height_field: {
      const Aabb& own = shape.type == ShapeType::convex ? shape.hull->box() : shape.field->box();
      half = turned(pose.rotation, (own.upper - own.lower) * 0.5);
      centre += pose.rotation * ((own.lower + own.upper) * 0.5);
      break;
    }
  }
  const Vec3d reach = half + Vec3d{margin, margin, margin};
  return {centre - reach, centre + reach};
}

}  // namespace tarsus
