// jcalc: kinematics of the four basic joints (joint_type.hpp).
//
// With R the link's orientation and e = R e_z its axis, in world axes at the link's origin:
//   type    S                          S q̇                 c = Ṡ q̇
//   hinge   [e; 0]                     [e q̇; 0]            v × S q̇
//   slide   [0; e]                     [0; e q̇]            v × S q̇
//   ball    [R; 0]                     [R q̇; 0]            v × S q̇
//   free    [0 R; 1 0] (linear first)  [R q̇_ω; q̇_v]        [0; v_O × ω]: translations are along axes that do not turn
#pragma once

#include "tarsus/model/link_state.hpp"
#include "tarsus/model/view.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
TARSUS_INLINE Vec3<T> load3(const Real<T>* p) {
  return {T(p[0]), T(p[1]), T(p[2])};
}
template <class T>
TARSUS_INLINE Mat3<T> load33(const Real<T>* p) {
  return {T(p[0]), T(p[1]), T(p[2]), T(p[3]), T(p[4]), T(p[5]), T(p[6]), T(p[7]), T(p[8])};
}
template <class T>
TARSUS_INLINE Sym3<T> load_sym(const Real<T>* p) {
  return {T(p[0]), T(p[1]), T(p[2]), T(p[3]), T(p[4]), T(p[5])};
}
template <class T>
TARSUS_INLINE Vec3<T> get3(const T* p) {
  return {p[0], p[1], p[2]};
}
template <class T>
TARSUS_INLINE Quat<T> get_quat(const T* p) {
  return {p[0], p[1], p[2], p[3]};
}
template <class T>
TARSUS_INLINE void put3(T* p, const Vec3<T>& v) {
  p[0] = v.x, p[1] = v.y, p[2] = v.z;
}
template <class T>
TARSUS_INLINE Motion<T> world_velocity() {
  return {zero3<T>(), zero3<T>()};
}

/// The frame A rotated about its own z.
template <class T>
TARSUS_INLINE Mat3<T> turned(const Mat3<T>& A, T sin, T cos) {
  const Vec3<T> x = A.column_x(), y = A.column_y();
  return from_columns(mul_add(y, sin, x * cos), mul_add(x, -sin, y * cos), A.column_z());
}

/// Orientation of link i in its parent, or in the world for a free joint, from its joint position.
template <class T>
TARSUS_INLINE Mat3<T> joint_orientation(const LinkConstants<Real<T>>& link, const T* qpos) {
  const T* q = qpos + link.qpos;
  if (moves_freely(link.joint)) return rotation(unit(get_quat(q + 3)));
  const Mat3<T> E0 = load33<T>(link.E0);
  if (turns_freely(link.joint)) return E0 * rotation(unit(get_quat(q)));
  if (slides_on_axis(link.joint)) return E0;
  T sin, cos;
  sincos(q[0] - T(link.reference), sin, cos);
  return turned(E0, sin, cos);
}

/// Offset r of link i from its joint position and E = joint_orientation(). Requires the parent's R.
template <class T>
TARSUS_INLINE Vec3<T> joint_offset(const LinkConstants<Real<T>>& link, const T* qpos, const LinkState<T>* state,
                                   const Mat3<T>& E) {
  const T* q = qpos + link.qpos;
  if (moves_freely(link.joint)) return get3(q);
  Vec3<T> r = load3<T>(link.r0);
  if (slides_on_axis(link.joint)) r = mul_add(E.column_z(), q[0] - T(link.reference), r);
  return link.parent >= 0 ? state[link.parent].R * r : r;
}

/// Orientation R and offset r of link i from its joint position. Requires the parent's R.
template <class T>
TARSUS_INLINE void joint_pose(const LinkConstants<Real<T>>& link, const T* qpos, const LinkState<T>* state,
                              LinkState<T>& s) {
  const Mat3<T> E = joint_orientation(link, qpos);
  s.r = joint_offset(link, qpos, state, E);
  s.R = link.parent >= 0 ? state[link.parent].R * E : E;
}

/// Computes the velocity v of link i and returns c = Ṡ q̇. Requires the parent's v and this link's R and r.
template <class T>
TARSUS_INLINE Motion<T> joint_velocity(const LinkConstants<Real<T>>& link, const T* qvel, const LinkState<T>* state,
                                       LinkState<T>& s) {
  const T* qd = qvel + link.qvel;
  const Vec3<T> zero = zero3<T>();
  if (moves_freely(link.joint)) {
    s.v = {s.R * get3(qd + 3), get3(qd)};
    return {zero, cross(s.v.v, s.v.w)};
  }
  s.v = link.parent >= 0 ? shift(state[link.parent].v, s.r) : world_velocity<T>();
  if (slides_on_axis(link.joint)) {
    const Vec3<T> vj = s.R.column_z() * qd[0];
    s.v.v += vj;
    return {zero, cross(s.v.w, vj)};
  }
  const Vec3<T> wj = turns_on_axis(link.joint) ? s.R.column_z() * qd[0] : s.R * get3(qd);
  const Motion<T> c = {cross(s.v.w, wj), cross(s.v.v, wj)};
  s.v.w += wj;
  return c;
}

/// S q̈ (or S q̇): the motion of the joint for joint-space coordinates x.
template <class T>
TARSUS_INLINE Motion<T> joint_motion(const LinkConstants<Real<T>>& link, const Mat3<T>& R, const T* x) {
  const Vec3<T> zero = zero3<T>();
  if (moves_freely(link.joint)) return {R * get3(x + 3), get3(x)};
  if (turns_freely(link.joint)) return {R * get3(x), zero};
  if (slides_on_axis(link.joint)) return {zero, R.column_z() * x[0]};
  return {R.column_z() * x[0], zero};
}

/// Sᵀ f.
template <class T>
TARSUS_INLINE void joint_force(const LinkConstants<Real<T>>& link, const Mat3<T>& R, const Force<T>& f, T* tau) {
  if (moves_freely(link.joint))
    put3(tau, f.f), put3(tau + 3, transpose_mul(R, f.n));
  else if (turns_freely(link.joint))
    put3(tau, transpose_mul(R, f.n));
  else
    tau[0] = dot(R.column_z(), slides_on_axis(link.joint) ? f.f : f.n);
}

/// Rigid inertia of a link in world axes, from the model.
template <class T>
TARSUS_INLINE RigidInertia<T> model_inertia(const LinkConstants<Real<T>>& link, const Mat3<T>& R) {
  return {T(link.mass), R * load3<T>(link.h), rotate(R, load_sym<T>(link.I))};
}
/// The same, from the lanes' own parameters if there are any.
template <class T>
TARSUS_INLINE RigidInertia<T> link_inertia(const ModelView<Real<T>>& m, int i, const Mat3<T>& R) {
  if (!m.own_inertia) return model_inertia(m.link[i], R);
  const T* own = reinterpret_cast<const T*>(m.own_inertia) + 10 * i;
  return {own[0], R * get3(own + 1), rotate(R, Sym3<T>{own[4], own[5], own[6], own[7], own[8], own[9]})};
}

/// Acceleration of a frame at rest in the world, with gravity replaced by -g.
template <class T>
TARSUS_INLINE Vec3<T> against_gravity(const ModelView<Real<T>>& m) {
  return m.own_gravity ? -get3(reinterpret_cast<const T*>(m.own_gravity)) : -load3<T>(m.gravity);
}

/// Computes o of every link of n from r, which joint_pose() sets. @param link elements that have the links' parents
template <class T, class Link>
TARSUS_INLINE void place_origins(const Link* link, int n, LinkState<T>* state) {
  for (int i = 0; i < n; ++i) {
    const int parent = link[i].parent;
    state[i].o = parent >= 0 ? state[parent].o + state[i].r : state[i].r;
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
