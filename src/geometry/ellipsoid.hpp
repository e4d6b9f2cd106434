// The distance of an ellipsoid from a point, a line or a plane as the root of one equation [Eberly 2013]. On a round
// side GJK gains only one digit in two steps.
#pragma once

#include "geometry/core.hpp"

namespace tarsus::narrow {

class Ellipsoid {
 public:
  explicit Ellipsoid(const Core& core);

  /// Finds the points at which the ellipsoid and a point, segment or triangle are nearest to each other.
  /// @param corners one to three
  /// @param apart vector from the corners' span to the ellipsoid: a guess in, exact out. It is not computed as a
  /// difference of two points, which would lose digits if they are close.
  /// @return whether `theirs`, the nearest point of the span, lies within the corners
  bool nearest(std::span<const Vec3d> corners, Vec3d& apart, Vec3d& theirs) const;

 private:
  Vec3d centre_;
  Sym3d shape_;  ///< Σ (half axis) (half axis)ᵀ
};

}  // namespace tarsus::narrow
