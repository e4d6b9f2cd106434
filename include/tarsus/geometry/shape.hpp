// Shapes as the narrow phase uses them, their poses and their bounding boxes.
#pragma once

#include "tarsus/geometry/inertia.hpp"

namespace tarsus {

class ConvexHull;
class HeightField;

/// A shape in its own frame. The hull or height field is not owned and must outlive the shape.
struct Shape {
  ShapeType type = ShapeType::sphere;
  /// MuJoCo's half-sizes [m]: sphere (r, -, -); capsule and cylinder (r, half length, -) along z, the capsule's caps
  /// beyond its half length; ellipsoid and box (x, y, z). A plane is the unbounded half-space z <= 0 regardless of
  /// size.
  Vec3d size{0, 0, 0};
  const ConvexHull* hull = nullptr;    ///< for ShapeType::convex
  const HeightField* field = nullptr;  ///< for ShapeType::height_field
};

/// Pose of the shape's frame: world point = position + rotation · shape point.
struct ShapePose {
  Vec3d position{0, 0, 0};
  Mat3d rotation = identity3<double>();
};

/// @throws ValueError if a size is negative or not finite, or a hull or height field is missing
void check_shape(const Shape& shape);

/// An axis-aligned box [m], edges included.
struct Aabb {
  Vec3d lower{0, 0, 0}, upper{0, 0, 0};
};

/// Whether the boxes overlap or touch.
inline bool overlap(const Aabb& a, const Aabb& b) {
  return a.lower.x <= b.upper.x && b.lower.x <= a.upper.x && a.lower.y <= b.upper.y && b.lower.y <= a.upper.y &&
         a.lower.z <= b.upper.z && b.lower.z <= a.upper.z;
}

/// The smallest world-aligned box around the shape (for a hull or height field: around the box in its own frame),
/// enlarged by `margin` [m] on every side. The box of a plane is infinite, but bounded on the free side if the plane is
/// normal to an axis.
Aabb bounds(const Shape& shape, const ShapePose& pose, double margin = 0);

}  // namespace tarsus
