// Geometric stiffness of what hangs (tarsus/constraint/hanging.hpp). For joint i let f be the weights of the links that
// it carries, with their centrifugal forces, d the arms from the joint to them, and S = Σ d fᵀ. The torques of joint i
// and of the joints j on its way to the root change with one another's angles by
//
//     H_ij = e_jᵀ (tr S - S) e_i,   |H_ij| <= k_i = ½ (tr S + |S|),   tr S = Σ d·f.
//
// S has rank one under gravity alone, and k_i is the largest eigenvalue of tr S - S. It is tr S where the links hang
// straight down and zero where they stand upright.
//
// With any positive weights w the diagonal matrix of a_i = Σ_j |H_ij| w_j / w_i is no less than H. Its sums over the
// joints above i and below i are taken along the tree: a_i w_i = k_i Σ_above w + Σ_below k w.
#pragma once

#include <limits>

#include "dynamics/aba.inl"
#include "tarsus/constraint/hanging.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// k of a joint, from S.
template <class T>
TARSUS_INLINE T largest_stiffness(const Mat3<T>& S) {
  const T square = dot(S.row_x(), S.row_x()) + dot(S.row_y(), S.row_y()) + dot(S.row_z(), S.row_z());
  return maximum(S.xx + S.yy + S.zz + square_root(square), T(Real<T>(0))) * T(Real<T>(0.5));
}

/// Adds the sums over what link s carries to its parent's.  @param with Σ k w of the joint of s and those below it
template <class T>
TARSUS_INLINE void add_to_parent(const LinkState<T>& s, T with, LinkState<T>& parent) {
  parent.u.y += with, parent.pA.f += s.pA.f;
  parent.IA.H = parent.IA.H + s.IA.H + outer(s.r, s.pA.f);
}

/// ¼ h² a of a joint.  @param link numbers of the model or of the lanes  @param e axis of a hinge
/// @param f the sum of the forces  @param k largest_stiffness()  @param below Σ k w below it
template <class T, class Number>
TARSUS_INLINE T row_inertia(const HangingLink<Number>& link, bool axial, const Vec3<T>& e, const Vec3<T>& f, T k,
                            T below, Real<T> h) {
  using R = Real<T>;
  const T a = mul_add(k, T(link.above), below) * (T(h * h / 4) / T(link.weight));
  if (!axial) return a;
  const T along = dot(e, f), square = dot(f, f);  // nothing hangs on an axis along f
  return a * (T(R(1)) - along * along / maximum(square, T(std::numeric_limits<R>::min())));
}

template <class T, class Number>
bool hanging_inertia_of(const ModelView<Real<T>>& m, LinkState<T>* state, const HangingLink<Number>* links, Real<T> h,
                        const T* qpos, const T* qvel, T* inertia) {
  using R = Real<T>;
  const T zero = T(R(0)), one = T(R(1)), *const none = nullptr;
  aba_outward(m, state, qpos, qvel, none);
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    const RigidInertia<T> I = link_inertia(m, i, s.R);
    s.pA.f = -s.pA.f, s.IA.H = outer(I.h * select(I.mass > zero, one / I.mass, zero), s.pA.f);
    s.u.y = zero;  // Σ k w below
  }
  Mask<T> hangs = one < zero;
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<R>& link = m.link[i];
    const LinkState<T>& s = state[i];
    T a = zero, with = s.u.y;
    const Mask<T> here = T(links[i].hangs) > zero;
    if (any_lane(here)) {
      const T k = largest_stiffness(s.IA.H);
      a = select(here, row_inertia(links[i], turns_on_axis(link.joint), s.R.column_z(), s.pA.f, k, s.u.y, h), zero);
      hangs = hangs | (a > T(links[i].most));
      with = select(here, mul_add(k, T(links[i].weight), s.u.y), s.u.y);
    }
    for (int v = link.qvel; v < link.qvel + qvel_count(link.joint); ++v) inertia[v] = a;
    if (link.parent >= 0) add_to_parent(s, with, state[link.parent]);
  }
  for (int v = 0; v < m.nv; ++v) inertia[v] = select(hangs, inertia[v], zero);
  return any_lane(hangs);
}

/// Writes ¼ h² a_i of each joint to `inertia` [nv]: zero in lanes in which steps of h resolve how the links swing.
/// @param state overwritten  @param links [nlink] the model's  @param own [nlink] the lanes' own; null: the model's
/// @return whether some lane has such inertia. If not, `inertia` is scratch.
template <class T>
bool hanging_inertia_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const HangingLink<Real<T>>* links,
                            const HangingLink<T>* own, Real<T> h, const T* qpos, const T* qvel, T* inertia) {
  return own ? hanging_inertia_of(m, state, own, h, qpos, qvel, inertia)
             : hanging_inertia_of(m, state, links, h, qpos, qvel, inertia);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
