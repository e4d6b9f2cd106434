// The distance of an ellipsoid from a point, a line or a plane: the root of one equation [Eberly 2013], where GJK
// closes in on a round side by a digit in two steps.
#pragma once

#include "geometry/core.hpp"

namespace tarsus::narrow {

class Ellipsoid {
 public:
  explicit Ellipsoid(const Core& core);

  /// Where it and the corners' point, segment or triangle are nearest to one another.
  /// @param corners one to three
  /// @param apart the way from them to the ellipsoid: a guess, which becomes exact. It is no difference of two points,
  /// of which few digits would be left where the two are close.
  /// @return the nearest point of what they span, `theirs`, lies within them
  bool nearest(std::span<const Vec3d> corners, Vec3d& apart, Vec3d& theirs) const;

 private:
  Vec3d centre_;
  Sym3d shape_;  ///< Σ (half axis) (half axis)ᵀ
};

}  // namespace tarsus::narrow
