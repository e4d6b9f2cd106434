// Bounding capsules of shapes, and which pairs of them are near, in SIMD lanes (src/constraint/capsule_around.inl).
#pragma once

#include "tarsus/math/vec.hpp"

namespace tarsus {

/// The kernel reads the members in this order.
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

}  // namespace tarsus
