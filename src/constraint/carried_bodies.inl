// What friction holds moves with what carries it. Rows of friction between a free body and a link that turns with it,
// or a floating tree and a link of one on the ground, are taken half a step ahead:
//
//     J v⁺ + ½ h s + R (γ - c) = 0,    s = a_a - a_b = d/dt (J v) at q̈ = 0
//
// with the accelerations a of the two sides at the contact point. The sides then stay together to third order in h.
// With J v⁺ alone the body takes the tangent and the link the arc, and it creeps outward by ½ h v²/r. Decision 524.
#pragma once

#include <limits>

#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kTurns = 1e-4;  ///< h|ω| of the fastest link below which nothing changes [rad]
/// Sides of a contact turn together if their angular velocities differ by at most this share of the faster one. Among
/// what floats the share is smaller: in heaps sides turn alike by chance.
inline constexpr double kAlikeOnGround = 0.3, kAlikeAfloat = 0.05;

/// Whether a link's tree moves freely.
template <class R>
bool floats(const ModelView<R>& m, int link) {
  return moves_freely(m.link[m.link[link].root].joint);
}

/// Whether any link turns by more than kTurns in a step of h.
template <class T>
TARSUS_INLINE Mask<T> turns(const LinkState<T>* state, int nlink, Real<T> h) {
  T most = T(Real<T>(0));
  for (int i = 0; i < nlink; ++i) most = maximum(most, dot(state[i].v.w, state[i].v.w));
  const Real<T> least = Real<T>(kTurns) / h;
  return most > T(least * least);
}

/// Accelerations of all links at q̈ = 0, without gravity. Requires their poses and velocities, which are those of qvel.
/// What moves freely goes straight, a free body with its centre of mass (dynamics/free_flight.inl), others with their
/// origin.
template <class T>
void bias_accelerations(const ModelView<Real<T>>& m, const LinkState<T>* state, const T* qvel, Motion<T>* out) {
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const LinkState<T>& s = state[i];
    if (moves_freely(link.joint)) {
      Vec3<T> goes_straight = s.v.v;
      if (link.alone) {
        const RigidInertia<T> I = link_inertia(m, i, s.R);
        const T per_mass = T(Real<T>(1)) / maximum(I.mass, T(std::numeric_limits<Real<T>>::min()));
        goes_straight = cross_add(s.v.w, I.h * per_mass, goes_straight);
      }
      out[i] = {zero3<T>(), cross(goes_straight, s.v.w)};
      continue;
    }
    const Motion<T> joint = joint_motion(link, s.R, qvel + link.qvel);
    const Motion<T> c = {cross(s.v.w, joint.w), cross(s.v.w, joint.v) + cross(s.v.v, joint.w)};
    out[i] = link.parent >= 0 ? shift(out[link.parent], s.r) + c : c;
  }
}

/// Acceleration at q̈ = 0 of the point of a link at `arm` from its origin.
/// @param a of the link, by bias_accelerations()
template <class T>
TARSUS_INLINE Vec3<T> point_acceleration(const Motion<T>& v, const Motion<T>& a, const Vec3<T>& arm) {
  return cross_add(v.w, cross_add(v.w, arm, v.v), cross_add(a.w, arm, a.v));
}

/// Share of ½ h J̇ v: all of it for sides that turn alike, none for others.
/// @param apart (ω_a - ω_b)²  @param turn the faster side's ω²  @param alike kAlikeOnGround or kAlikeAfloat
template <class T>
TARSUS_INLINE T carried_share(T apart, T turn, T alike) {
  const T together = alike * alike * maximum(turn, T(std::numeric_limits<Real<T>>::min()));
  return clamp(T(Real<T>(2)) - apart / together, T(Real<T>(0)), T(Real<T>(1)));
}

/// @return whether a link turns by more than kTurns in the step; if so, `out` gets the accelerations
template <class T>
bool bias_accelerations_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, Real<T> h, const T* qvel,
                               Real<T>* out) {
  if (!any_lane(turns(state, m.nlink, h))) return false;
  bias_accelerations(m, state, qvel, reinterpret_cast<Motion<T>*>(out));
  return true;
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
