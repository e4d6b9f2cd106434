// The velocity of a free joint belongs to the pose with it, and motion does not depend on where its frame is.
//
// A step finds v⁺ with the masses and rows of the pose q at its start, and moves to q⁺ = q ⊞ h v⁺. The linear velocity
// of a free joint is that of its frame's origin. If the centre of mass of its link is elsewhere, at c(q) from the
// origin, the numbers of v⁺ at q⁺ mean another velocity of the centre, by h ω² c, and the centre leaves its straight
// line by half of that times h. Both depend on the frame alone. Therefore the centre of mass keeps its velocity from q
// to q⁺, and moves by h times it, as with the frame at the centre. Decision 419.
//
// Within a step v belongs to q ⊟ h v, as energy_bound.inl says. The step begins by finding that v.
#pragma once

#include <limits>

#include "dynamics/integrate.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kMoves = 1e-3;  ///< h|ω| of a free joint above which its velocity changes [rad]

/// Where the centre of mass of a free joint's link is seen from the frame's origin, in world axes.
template <class T>
TARSUS_INLINE Vec3<T> arm_of(const ModelView<Real<T>>& m, int i, const Quat<T>& q) {
  const RigidInertia<T> I = link_inertia(m, i, rotation(q));
  return I.h * (T(Real<T>(1)) / maximum(I.mass, T(std::numeric_limits<Real<T>>::min())));
}

/// Calls f(link, lanes in which it turns by more than kMoves) for the `bodies` with a centre of mass off the origin.
template <class T, class F>
TARSUS_INLINE void for_each_off_centre(const ModelView<Real<T>>& m, Real<T> h, const int* bodies, int count,
                                       const T* qvel, const F& f) {
  const Mat3<T> same = identity3<T>();
  for (int k = 0; k < count; ++k) {
    const int i = bodies[k];
    const Vec3<T> w = get3(qvel + m.link[i].qvel + 3), c = link_inertia(m, i, same).h;
    const Mask<T> turns = dot(w, w) * T(h * h) > T(Real<T>(kMoves * kMoves)), off = dot(c, c) > T(Real<T>(0));
    const Mask<T> both = turns & off;
    if (any_lane(both)) f(i, both);
  }
}

/// Changes `qvel` from the velocity at qpos to that of the step's start, which belongs to qpos ⊟ h qvel.
/// @param bodies [count] links on free joints that carry no others
template <class T>
void leave_pose_kernel(const ModelView<Real<T>>& m, Real<T> h, const int* bodies, int count, const T* qpos, T* qvel) {
  for_each_off_centre(m, h, bodies, count, qvel, [&](int i, Mask<T> turns) {
    T* const to = qvel + m.link[i].qvel;
    const Vec3<T> v = get3(to), w = get3(to + 3);
    const Quat<T> here = unit(get_quat(qpos + m.link[i].qpos + 3)), there = normalized(here * exponential(w * T(-h)));
    const Vec3<T> change = cross(rotation(here) * w, arm_of(m, i, here) - arm_of(m, i, there));
    put3(to, select<T>(turns, v + change, v));
  });
}

/// Changes the state that a step from qpos led to: next_qvel to the velocity at next_qpos, next_qpos by the way of the
/// centre of mass.
template <class T>
void reach_pose_kernel(const ModelView<Real<T>>& m, Real<T> h, const int* bodies, int count, const T* qpos,
                       T* next_qpos, T* next_qvel) {
  for_each_off_centre(m, h, bodies, count, next_qvel, [&](int i, Mask<T> turns) {
    T *const to = next_qvel + m.link[i].qvel, *const at = next_qpos + m.link[i].qpos;
    const Quat<T> here = unit(get_quat(qpos + m.link[i].qpos + 3)), there = unit(get_quat(at + 3));
    const Vec3<T> v = get3(to), q = get3(at), w = rotation(here) * get3(to + 3);
    const Vec3<T> before = arm_of(m, i, here), apart = before - arm_of(m, i, there);
    put3(to, select<T>(turns, v + cross(w, apart), v));
    put3(at, select<T>(turns, q + mul_add(cross(w, before), T(h), apart), q));
  });
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
