// Spheres and capsules of links on planes of the world, several side by side (src/constraint/plane_touches.inl).
#pragma once

#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Such a pair. The order of members is that in which the kernel reads them.
struct CapsuleOnPlane {
  Vec3d position, axis;     ///< of the shape: its centre and its axis, in the link's frame
  double radius, half;      ///< half the length of a capsule's axis; 0: a sphere [m]
  Vec3d normal;             ///< of the plane
  double height;            ///< n · x of its points [m]
  double margin, may_fall;  ///< [m]; 1 where a free fall may bring the two together, or 0
  int link;
};

/// Where the two ends of one touch its plane, or may within the step.
struct CapsuleTouches {
  struct End {
    Vec3d position;   ///< midway between the surfaces [m]
    double distance;  ///< between them [m]; infinite: it does not
  } end[2];
};

}  // namespace tarsus
