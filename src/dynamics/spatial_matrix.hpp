// Converts a rigid inertia to a dense matrix.
#pragma once

#include <Eigen/Core>

#include "tarsus/spatial/spatial.hpp"

namespace tarsus {

/// Maps a motion (w, v) to a force (n, f), angular first.
inline Eigen::Matrix<double, 6, 6> spatial_matrix(const RigidInertia<double>& inertia) {
  const ArticulatedInertia<double> whole = articulated(inertia);
  Eigen::Matrix<double, 6, 6> matrix;
  for (int k = 0; k < 6; ++k) {
    Motion<double> unit{{0, 0, 0}, {0, 0, 0}};
    (k < 3 ? unit.w[k] : unit.v[k - 3]) = 1;
    const Force<double> f = whole * unit;
    matrix.col(k) << f.n.x, f.n.y, f.n.z, f.f.x, f.f.y, f.f.z;
  }
  return matrix;
}

}  // namespace tarsus
