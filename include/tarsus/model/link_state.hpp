// Workspace of the kernels: one LinkState per link, in world axes at the link's origin (see spatial.hpp). T is a scalar
// or a pack of worlds. Public code reads results through Data.
#pragma once

#include "tarsus/spatial/spatial.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
struct LinkState {
  // Set by pass 1 (jcalc and the outward recursion). The members up to Minv are in the order in which passes read and
  // write four links at a time.
  Mat3<T> R;    // orientation of the link in the world
  Vec3<T> r;    // from the parent's origin to this origin [m]
  Motion<T> v;  // velocity
  Motion<T> a;  // acceleration, including gravity's -g; after aba() and minv() the part due to q̈
  Vec3<T> o;    // this origin in the world [m]; only after kinematics()
  // Set by pass 2 of aba(). rnea() stores the link's force in pA.
  ArticulatedInertia<T> IA;
  Force<T> pA;
  // Kept for products with M̂⁻¹; aba.inl has the meaning by joint type.
  Force<T> U;          // hinge, slide: IA S
  Sym3<T> Dinv;        // hinge, slide: xx = 1/D. ball: D⁻¹. free: inverse of the angular Schur complement
  Mat3<T> G;           // ball: D⁻¹ H. free: H (M + K_linear)⁻¹
  T k;                 // ball: joint-space inertia added to D
  Vec3<T> u;           // remaining joint force: Q - Sᵀ pA (free: angular part)
  Vec3<T> u_linear;    // free: linear part
  Sym3<T> Minv;        // free: (M + K_linear)⁻¹
  RigidInertia<T> Ic;  // composite inertia of the subtree; set by crba()
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
