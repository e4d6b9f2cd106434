// What GJK, EPA and clipping see of a convex shape: a core with a support function, perhaps a radius around it, and
// flat features.
#pragma once

#include "geometry/pairs.hpp"

namespace tarsus::narrow {

inline constexpr int kMaxCorners = 32;

/// A flat feature: a point (0 corners), a segment (2) or a polygon, counter-clockwise from outside.
struct Feature {
  std::array<Vec3d, kMaxCorners> corners;
  int count = 0;
  Vec3d normal{0, 0, 0};  ///< unit, outward
  std::uint32_t id = 0;

  void add(const Vec3d& p) { corners[static_cast<std::size_t>(count++)] = p; }
};

struct Core {
  ShapeType type = ShapeType::sphere;
  Vec3d size{0, 0, 0};
  ShapePose pose;
  const ConvexHull* hull = nullptr;
  std::array<Vec3d, 3> triangle{};  ///< of a height field, counter-clockwise from above; when `is_triangle`
  bool is_triangle = false;
  double radius = 0;  ///< around the core; the shape's surface is so far outside of it

  explicit Core(const Body& body);
  Core() = default;

  /// The core's point farthest along d.
  Vec3d support(const Vec3d& d) const;
  /// The shape's feature that faces d, unit.
  void feature(const Vec3d& d, Feature& out) const;
  /// A point inside.
  Vec3d centre() const;
  /// A length of the shape's order [m].
  double scale() const;
};

/// The closest points of two shapes, or of the deepest overlap.
struct Closest {
  Vec3d normal{0, 0, 1};  ///< from B to A
  double distance = 0;    ///< of the shapes, radii included
  Vec3d on_b{0, 0, 0};
};

inline constexpr double kCertain = 1e-9;  ///< of the shapes' size, more than rounding makes of a distance

/// An axis parts the boxes around the two, each in its shape's frame, by more than the margin. It is kept.
bool boxes_apart(const Body& a, const Body& b, ContactList& out);
/// The axis that parted the two parts these boxes still, by more than the margin and by enough for others to find them
/// apart beyond rounding.
bool boxes_still_parted(const Body& a, const Body& b, const ContactList& out);

/// False if they are further apart than `limit`; the normal, perhaps not a unit, is then an axis that parts them so.
bool closest_points(const Core& a, const Core& b, double limit, Closest& out);

/// ContactPoint::feature of `closest` itself in a manifold.
inline constexpr std::uint32_t kClosestPoint = 1;
/// Contact points of two features that face each other across `closest`, which is one of them.
void add_manifold(const Core& a, const Core& b, const Closest& closest, ContactList& out);
/// The manifold at the closest points, if they are within the margin.
void closest_features(const Body& a, const Body& b, ContactList& out);

}  // namespace tarsus::narrow
