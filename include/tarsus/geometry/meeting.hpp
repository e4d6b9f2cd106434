// Whether and where two shapes that do not touch yet meet within a step.
//
// A contact point between shapes that are apart stands for a plane through it: the step keeps the bodies on its two
// sides. The plane reaches beyond the shapes. A body that flies past an edge, or slides over the seam between two flush
// boxes, would be struck by a plane where there is no shape. So the shapes are followed along their motion, by
// conservative advancement [Mirtich 1996].
#pragma once

#include "tarsus/geometry/narrow_phase.hpp"

namespace tarsus {

/// Motion of a shape during a step.
struct ShapeMotion {
  Vec3d velocity{0, 0, 0};  ///< of the shape's position [m/s]
  Vec3d spin{0, 0, 0};      ///< [rad/s]
};

/// Replaces points of collide() between shapes that are apart, of which some would close within h seconds, by those of
/// the poses at which the shapes meet, moved back along the motion; if the step leaves them hardly deeper than
/// touching, by those at its end, so that shapes which slide along one another are not caught by edges. If they do not
/// meet, the points that would close are removed. Shapes that touch, and were apart a step before at these velocities,
/// have the points of the end too, if they slide and its normal is another.
/// @param margin [m] distance at which shapes count as touching  @param points as of collide(), its first `count`
/// @return number of points
int meet(const Shape& a, const ShapePose& pose_a, const ShapeMotion& motion_a, const Shape& b, const ShapePose& pose_b,
         const ShapeMotion& motion_b, double h, double margin, std::span<ContactPoint> points, int count);
/// meet() of two spheres with the point of collide_spheres(). @return whether a point remains
bool meet_spheres(const Vec3d& a, double radius_a, const ShapeMotion& motion_a, const Vec3d& b, double radius_b,
                  const ShapeMotion& motion_b, double h, double margin, ContactPoint& point);

}  // namespace tarsus
