// Capsules around shapes, and which pairs of them are near, several side by side (src/constraint/capsule_around.inl).
#pragma once

#include "tarsus/math/vec.hpp"

namespace tarsus {

/// The order of members is that in which the kernel reads them.
struct CapsuleAround {
  Vec3d position, axis;         ///< its centre and its axis, in the frame of what it rides on
  double radius = 0, half = 0;  ///< half: of the segment [m]
  int link = -1;                ///< whose LinkState has that frame: ContactShape::carrier(); -1: the world
};

/// Two of them, which may be so far apart [m].
struct CapsulePair {
  int first, second;
  double reach;
};

}  // namespace tarsus
