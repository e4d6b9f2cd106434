// Convex shapes as GJK, EPA and clipping see them: a core with a support function, a radius around it, and flat
// features.
#pragma once

#include "geometry/pairs.hpp"

namespace tarsus::narrow {

inline constexpr int kMaxCorners = 32;

/// A flat feature: a point (0 corners), a segment (2) or a polygon, counter-clockwise from outside.
struct Feature {
  std::array<Vec3d, kMaxCorners> corners;
  int count = 0;
  int within = 0;         ///< corners inside the outline, after its own
  Vec3d normal{0, 0, 0};  ///< unit, outward
  std::uint32_t id = 0;
  bool near = false;  ///< with the next faces of a hull, whose corners are not in one plane

  void add(const Vec3d& p) { corners[static_cast<std::size_t>(count++)] = p; }
};

struct Core {
  ShapeType type = ShapeType::sphere;
  Vec3d size{0, 0, 0};
  ShapePose pose;
  const ConvexHull* hull = nullptr;
  std::array<Vec3d, 3> triangle{};  ///< of a height field, counter-clockwise from above; when `is_triangle`
  bool is_triangle = false;
  double radius = 0;  ///< distance of the shape's surface from the core

  explicit Core(const Body& body);
  Core() = default;

  /// The core's point that is farthest along d.
  Vec3d support(const Vec3d& d) const;
  /// The shape's feature that faces the unit vector d.
  void feature(const Vec3d& d, Feature& out) const;
  /// A hull's face together with the next ones.  @return whether there are any; otherwise `out` is left alone
  bool near_feature(const Feature& face, Feature& out) const;
  /// An interior point.
  Vec3d centre() const;
  /// A length of the order of the shape's size [m].
  double scale() const;
};

/// The closest points of two shapes, or those of the deepest overlap.
struct Closest {
  Vec3d normal{0, 0, 1};  ///< from B to A
  double distance = 0;    ///< between the shapes, radii included
  Vec3d on_b{0, 0, 0};
};

inline constexpr double kCertain = 1e-9;  ///< relative to the shapes' size, above the rounding error of a distance

/// Whether an axis separates the bounding boxes of the two, each in its shape's frame, by more than the margin. The
/// axis is stored.
bool boxes_apart(const Body& a, const Body& b, ContactList& out);
/// Whether the stored axis still separates these boxes by more than the margin, and by enough that other tests find
/// them separated despite rounding.
bool boxes_still_parted(const Body& a, const Body& b, const ContactList& out);

/// False if the distance exceeds `limit`; the normal, possibly not of unit length, is then an axis that separates them
/// so.
bool closest_points(const Core& a, const Core& b, double limit, Closest& out);

/// ContactPoint::feature of `closest` in a manifold.
inline constexpr std::uint32_t kClosestPoint = 1;
/// Adds the contact points of two features that face each other at `closest`, which is one of these points.
void add_manifold(const Core& a, const Core& b, const Closest& closest, ContactList& out);
/// Adds the manifold at the closest points if they are within the margin.
void closest_features(const Body& a, const Body& b, ContactList& out);

}  // namespace tarsus::narrow
