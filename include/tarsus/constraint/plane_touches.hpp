// Spheres and capsules of links on planes of the world, in SIMD lanes (src/constraint/plane_touches.inl).
#pragma once

#include "tarsus/math/vec.hpp"

namespace tarsus {

/// A pair. The kernel reads the members in this order.
struct CapsuleOnPlane {
  Vec3d position, axis;     ///< of the shape: centre and axis in the link's frame
  double radius, half;      ///< half: half the length of a capsule's axis; 0: a sphere [m]
  Vec3d normal;             ///< of the plane
  double height;            ///< n · x of the plane's points [m]
  double margin, may_fall;  ///< [m]; may_fall: 1 if a free fall may bring the two together, else 0
  int link;
};

/// Where the two ends of a shape touch its plane, or may touch within the step.
struct CapsuleTouches {
  struct End {
    Vec3d position;   ///< midway between the surfaces [m]
    double distance;  ///< between the surfaces [m]; infinite: no contact
  } end[2];
};

}  // namespace tarsus
