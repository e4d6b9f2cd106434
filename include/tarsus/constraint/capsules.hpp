// Spheres and capsules of links on planes of the world, and which bounding capsules are near, in SIMD lanes
// (src/constraint/capsules.inl).
#pragma once

#include "tarsus/math/vec.hpp"

namespace tarsus {

/// A capsule, or with half = 0 a sphere. The kernels read the members in this order.
struct CapsuleAround {
  Vec3d position, axis;         ///< centre and axis in the carrier's frame
  double radius = 0, half = 0;  ///< half: half the length of the segment [m]
  int link = -1;                ///< the carrier: ContactShape::carrier(); -1: the world
};

/// A pair, which is near if the capsules are at most `reach` [m] apart.
struct CapsulePair {
  int first, second;
  double reach;
};

/// A link's sphere or capsule and a plane of the world. The kernel reads the members in this order.
struct CapsuleOnPlane {
  CapsuleAround round;
  Vec3d normal;             ///< of the plane
  double height;            ///< n · x of the plane's points [m]
  double margin, may_fall;  ///< [m]; may_fall: 1 if a free fall may bring the two together, else 0
};

/// Where the two ends of a shape touch its plane, or may touch within the step.
struct CapsuleTouches {
  struct End {
    Vec3d position;   ///< midway between the surfaces [m]
    double distance;  ///< between the surfaces [m]; infinite: no contact
  } end[2];
};

}  // namespace tarsus
