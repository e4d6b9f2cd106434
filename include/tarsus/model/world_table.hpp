// Parameters that differ between the worlds of a pack. Kernels use the lane's numbers instead of the model's.
#pragma once

#include <vector>

#include "tarsus/base/aligned.hpp"

namespace tarsus {

/// Each array is [n][lane], or empty: as in the model. See fill().
template <class R>
struct WorldTable {
  AlignedVector<R> inertia;        ///< [nlink][10] mass, h, I as in LinkConstants
  AlignedVector<R> row_mass;       ///< [nlink][5] ReferenceMass computed from `inertia` and `armature`
  AlignedVector<R> spring_rate2;   ///< [nlink] as LinkConstants', computed with them
  AlignedVector<R> round;          ///< [nlink] 1: kRoundLink of spinning_links() with `inertia` too, else 0
  AlignedVector<R> light;          ///< [nlink] 1: holds_light_link() with `inertia`, else 0
  AlignedVector<R> hanging;        ///< [nlink][5] HangingLink computed with `inertia`, `armature` and `gravity`
  bool hangs = false;              ///< what hangs on some joint may be too heavy for it
  AlignedVector<R> damping;        ///< [nlink] damping of joints
  AlignedVector<R> armature;       ///< [nv]
  AlignedVector<R> friction_loss;  ///< [nlink] dry friction of joints
  AlignedVector<R> gravity;        ///< [3]
  AlignedVector<R> kp, kd, force;  ///< [nv] factors on gains and force limits of drives, or of servos that are drives
  AlignedVector<R> friction;       ///< [pair] sliding friction of ContactGeometry::pairs()
  AlignedVector<R> mass_scale;     ///< [nbody] factors contained in `inertia`; only for a single world
  AlignedVector<R> com_offset;     ///< [nbody][3] offsets contained in `inertia`; only for a single world
  // World-major, as passive forces need them.
  std::vector<double> carried_inertia;  ///< [lane][nv] as Model's, computed with `inertia` and `armature`
  std::vector<double> damping_scale;    ///< [lane][nlink] factors contained in `damping`
  std::vector<double> actuator_gain, actuator_damping, actuator_force;  ///< [lane][actuator] factors
};

}  // namespace tarsus
