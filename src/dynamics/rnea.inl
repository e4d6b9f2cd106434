// Recursive Newton-Euler: τ = M q̈ + C(q, q̇) in O(nlink).  [Featherstone 2008, ch. 5, table 5.1]
// Without armature, which the caller adds as armature * q̈ (joint-space inertia).
#pragma once

#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// qacc null: bias force only. external: [nlink][6] (n, f at the link's origin, world axes) or null.
template <class T>
void rnea_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel, const T* qacc,
                 const T* external, T* tau) {
  const Motion<T> a0 = {zero3<T>(), against_gravity<T>(m)};
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>& s = state[i];
    joint_pose(link, qpos, state, s);
    const Motion<T> c = joint_velocity(link, qvel, state, s);
    s.a = shift(link.parent >= 0 ? state[link.parent].a : a0, s.r) + c;
    if (qacc) s.a = s.a + joint_motion(link, s.R, qacc + link.qvel);
    s.pA = newton_euler(link_inertia(m, i, s.R), s.v, s.a);  // f = I a + v ×* I v
    if (external) s.pA = s.pA - Force<T>{get3(external + 6 * i), get3(external + 6 * i + 3)};
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    joint_force(link, state[i].R, state[i].pA, tau + link.qvel);  // τ = Sᵀ f
    if (link.parent >= 0) state[link.parent].pA += shift_back(state[i].pA, state[i].r);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
