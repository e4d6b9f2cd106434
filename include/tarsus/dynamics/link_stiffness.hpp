// Linear stiffness of one link; see stiffened.hpp.
#pragma once

#include "tarsus/math/vec.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Stiffness of one link, world axes. B maps a motion (w, v) of the link's origin to the force that opposes it.
template <class R>
struct LinkStiffness {
  Sym3<R> I;      ///< block of B: moment due to angular motion, symmetric
  Mat3<R> H;      ///< moment due to linear motion
  Sym3<R> M;      ///< force due to linear motion, symmetric
  Vec3<R> n, f;   ///< applied force f_l: moment and force
  Sym3<R> joint;  ///< resistance of its joint: xx for a hinge or slide, about world axes for a ball; unused for a free
                  ///< joint
  Vec3<R> joint_force;  ///< x for a hinge or slide, about world axes for a ball

  void clear() { *this = {}; }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
