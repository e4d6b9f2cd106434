// x = M̂⁻¹ y by two passes over the factors of aba() or factor(): forces inward, accelerations outward, O(nlink). M̂ =
// M + diag K with the K of the factors.  [Featherstone 2008, ch. 7; KKT notes, step 2]
#pragma once

#include "dynamics/aba.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Poses of all links, and inertias for pass 2 without forces. @param qpos null: the poses are set already
template <class T>
TARSUS_INLINE void pose_links(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos) {
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    if (qpos) joint_pose(m.link[i], qpos, state, s);
    s.IA = articulated(link_inertia(m, i, s.R));
    s.pA = {zero3<T>(), zero3<T>()};
  }
}

/// Computes only the factors of M̂: poses, inertias, pass 2 without forces. @param qpos as for pose_links()
template <class T>
void factor_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* K) {
  pose_links(m, state, qpos);
  const T zero = T(Real<T>(0));
  const T no_force[6] = {zero, zero, zero, zero, zero, zero};
  for (int g = 0; g < m.ninward; ++g) {  // in aba_inward()'s order, which fixes the order of the sums
    const LinkGroup& group = m.inward[g];
    for (int k = 0; k < group.count; ++k) {
      const int i = group.link[k];
      reduce(m.link[i], state, i, no_force, K + m.link[i].qvel);
    }
  }
}

/// The joint's part u = y - Sᵀ pA of the force, and the remainder for the parent.
template <class T>
TARSUS_INLINE Force<T> pass_force_down(const LinkConstants<Real<T>>& link, LinkState<T>& s, const T* y) {
  if (moves_freely(link.joint)) {
    s.u = s.R * get3(y + 3) - s.pA.n;
    s.u_linear = get3(y) - s.pA.f;
    return s.pA;
  }
  if (turns_freely(link.joint)) {
    s.u = s.R * get3(y) - s.pA.n;
    const Vec3<T> x = s.Dinv * s.u;
    return {s.pA.n + handed_on(s.IA.I, s.k, s.u, x), s.pA.f + transpose_mul(s.IA.H, x)};
  }
  const Vec3<T> e = s.R.column_z();
  s.u.x = y[0] - dot(e, turns_on_axis(link.joint) ? s.pA.n : s.pA.f);
  return mul_add(s.U, s.u.x * s.Dinv.xx, s.pA);
}

template <class T>
void minv_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* y, T* x) {
  const Vec3<T> zero = zero3<T>();
  for (int i = 0; i < m.nlink; ++i) state[i].pA = {zero, zero};
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const Force<T> f = pass_force_down(link, state[i], y + link.qvel);
    if (link.parent >= 0) state[link.parent].pA += shift_back(f, state[i].r);
  }
  aba_accelerate(m, state, x);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
