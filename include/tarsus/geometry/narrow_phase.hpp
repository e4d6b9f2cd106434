// Contact points between two shapes.
//
// Every pair of plane, sphere, capsule, ellipsoid, cylinder, box, convex hull and height field, but for plane-plane,
// plane-height field and height field-height field, which never touch (as in MuJoCo).
// Closed forms: whatever involves a plane, spheres with spheres, capsules, cylinders and boxes, capsules with capsules,
// overlapping boxes (separating axes). The others: GJK on the shapes' cores (a sphere's core is a point, a capsule's a
// segment) when those are apart, EPA when they overlap; flat features then give several points by clipping.
// [Gilbert, Johnson, Keerthi 1988; van den Bergen 2001; Gottschalk, Lin, Manocha 1996]
#pragma once

#include <cstdint>
#include <span>

#include "tarsus/geometry/shape.hpp"

namespace tarsus {

struct ContactPoint {
  Vec3d position{0, 0, 0};    ///< midway between the two surfaces [m], world frame
  Vec3d normal{0, 0, 1};      ///< unit, from shape B to shape A: a positive impulse along it pushes A away from B
  double distance = 0;        ///< between the surfaces along `normal` [m]; negative: penetration
  std::uint32_t feature = 0;  ///< which features touch: the same from step to step while they do, for warm starts
};

/// Points that one pair can have at most.
inline constexpr int kMaxManifold = 8;

/// Contact points of A and B no further apart than `margin` [m, >= 0]; returns how many were written to the front of
/// `out`. When there are more than fit, the deepest and the most widely spread stay. Swapping A and B gives the same
/// points with the opposite normals.
/// Never throws, loops without a bound or writes what is not finite: poses, sizes or margins that are not finite and
/// pairs that never touch give no contact, nor do lengths of which no normal comes because no double holds their fourth
/// powers (beyond some 1e75 m or under 1e-75 m). Where shapes overlap so deeply that EPA runs out of iterations, the
/// distance is that of a direction along which they can be parted, perhaps not the shortest.
/// @param parting of these two shapes, what an earlier call left there, zero before the first: an axis that parted them
/// by more than the margin. Most that still do so are told apart by it at once; the points do not depend on it.
int collide(const Shape& a, const ShapePose& pose_a, const Shape& b, const ShapePose& pose_b, double margin,
            std::span<ContactPoint> out, Vec3d* parting = nullptr);

}  // namespace tarsus
