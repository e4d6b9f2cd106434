// Numbers of a model that each world of a pack has of its own. Kernels take a lane's number in the place of the
// model's.
#pragma once

#include <vector>

#include "tarsus/base/aligned.hpp"

namespace tarsus {

/// Each array is [n][lane], or empty: as in the model.
template <class R>
struct WorldTable {
  AlignedVector<R> inertia;        ///< [nlink][10] mass, h, I as in LinkConstants
  AlignedVector<R> row_mass;       ///< [nlink][5] ReferenceMass of `inertia`
  AlignedVector<R> spring_rate2;   ///< [nlink] LinkConstants' with `inertia`
  AlignedVector<R> damping;        ///< [nlink] of joints
  AlignedVector<R> gravity;        ///< [3]
  AlignedVector<R> kp, kd, force;  ///< [nv] factors on drives' gains and force limits
  AlignedVector<R> friction;       ///< [pair] sliding friction of ContactGeometry::pairs()
  AlignedVector<R> mass_scale;     ///< [nbody] factors that `inertia` was made with; of one world alone
  // World by world, as passive forces are computed.
  std::vector<double> carried_inertia;  ///< [lane][nv] Model's with `inertia`
  std::vector<double> damping_scale;    ///< [lane][nlink] factors that `damping` was made with
};

}  // namespace tarsus
