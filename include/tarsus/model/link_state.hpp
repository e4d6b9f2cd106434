// The kernels' workspace: one LinkState for each link, in world axes at the link's origin (see spatial.hpp).
// T is a scalar or a pack of worlds. Public code sees results through Data; only kernels look in here.
#pragma once

#include "tarsus/spatial/spatial.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
struct LinkState {
  // By pass 1 (jcalc and the recursion outward). The order of members, up to Minv, is that in which passes read and
  // write four links side by side.
  Mat3<T> R;    // orientation of the link in the world
  Vec3<T> r;    // from the parent's origin to this origin [m]
  Motion<T> v;  // velocity
  Motion<T> a;  // acceleration, gravity's -g included; after aba() and minv() what q̈ adds to it
  Vec3<T> o;    // this origin in the world [m]; by kinematics() only
  // By pass 2 of aba(). rnea() keeps the link's force in pA.
  ArticulatedInertia<T> IA;
  Force<T> pA;
  // What M̂⁻¹ products need again: see aba.inl for the meaning by joint type.
  Force<T> U;          // hinge, slide: IA S
  Sym3<T> Dinv;        // hinge, slide: xx = 1/D. ball: D⁻¹. free: inverse of the angular Schur complement
  Mat3<T> G;           // ball: D⁻¹ H. free: H (M + K_linear)⁻¹
  T k;                 // ball: joint-space inertia added to D
  Vec3<T> u;           // joint force left over: Q - Sᵀ pA (free: angular part)
  Vec3<T> u_linear;    // free: linear part
  Sym3<T> Minv;        // free: (M + K_linear)⁻¹
  RigidInertia<T> Ic;  // composite inertia of the subtree; by crba()
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
