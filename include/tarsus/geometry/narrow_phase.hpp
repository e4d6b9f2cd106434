// Contact points between two shapes.
//
// Supports every pair of plane, sphere, capsule, ellipsoid, cylinder, box, convex hull and height field, except
// plane-plane, plane-height field and height field-height field, which never touch (as in MuJoCo). Closed forms: all
// pairs with a plane; spheres with spheres, capsules, cylinders and boxes; capsules with capsules; overlapping boxes
// (separating axes). Other pairs use GJK on the cores of the shapes (a sphere's core is a point, a capsule's a segment)
// if these are apart, and EPA if they overlap. Clipping then gives several points on flat features. [Gilbert, Johnson,
// Keerthi 1988; van den Bergen 2001; Gottschalk, Lin, Manocha 1996]
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "tarsus/geometry/shape.hpp"

namespace tarsus {

struct ContactPoint {
  Vec3d position{0, 0, 0};    ///< midway between the two surfaces [m], world frame
  Vec3d normal{0, 0, 1};      ///< unit, from shape B to shape A: a positive impulse along it pushes A away from B
  double distance = 0;        ///< between the surfaces along `normal` [m]; negative: penetration
  std::uint32_t feature = 0;  ///< the features in contact; constant while they touch, for warm starts
  bool next = false;          ///< of the faces next to those that touch, onto which a hull may turn
};

/// Whether none of the first `count` points is within the margin.
inline bool all_apart(std::span<const ContactPoint> points, int count, double margin) {
  const auto touches = [&](const ContactPoint& p) { return p.distance <= margin; };
  return std::none_of(points.begin(), points.begin() + count, touches);
}

/// Largest number of contact points of a pair.
inline constexpr int kMaxManifold = 8;
/// Centres of spheres, and axes of capsules, this near to one another have no direction from one to the other. Relative
/// to sizes and coordinates.
template <class R>
inline constexpr R kCoincide = sizeof(R) == 8 ? R(1e-12) : R(1e-5);

/// Writes the contact points of A and B whose distance is at most `margin` [m, >= 0] to the front of `out` and returns
/// their number. If there are too many, the deepest and the most widely spread ones remain. Swapping A and B gives the
/// same points with the opposite normals. The function never throws, always terminates and writes only finite numbers.
/// Poses, sizes or margins that are not finite, and pairs that never touch, give no contact. Neither do lengths whose
/// fourth powers no double holds, so that no normal results (beyond some 1e75 m or under 1e-75 m). If shapes overlap so
/// deeply that EPA reaches its iteration limit, the distance is that along some separating direction, which may not be
/// the shortest.
/// @param parting state of an earlier call for these two shapes, zero before the first: an axis that separated them by
/// more than the margin. If it still does, the test ends at once; the contact points do not depend on it.
int collide(const Shape& a, const ShapePose& pose_a, const Shape& b, const ShapePose& pose_b, double margin,
            std::span<ContactPoint> out, Vec3d* parting = nullptr);
/// collide() of two spheres, with centres a and b and finite radii >= 0. @return whether there is a contact
bool collide_spheres(const Vec3d& a, double radius_a, const Vec3d& b, double radius_b, double margin,
                     ContactPoint& out);

}  // namespace tarsus
