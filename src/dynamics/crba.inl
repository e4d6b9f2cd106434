// Composite rigid-body algorithm: the mass matrix M(q), armature included, in O(nlink depth).
// [Featherstone 2008, ch. 6, table 6.2]
#pragma once

#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// One column of M: the force Ic S e_d is propagated to the root; each joint on the path takes its component.
template <class T>
inline void crba_column(const ModelView<Real<T>>& m, const LinkState<T>* state, int i, int d, T* M) {
  const T zero = T(Real<T>(0));
  T unit[6] = {zero, zero, zero, zero, zero, zero};
  unit[d] = T(Real<T>(1));
  const int column = m.link[i].qvel + d;
  Force<T> F = state[i].Ic * joint_motion(m.link[i], state[i].R, unit);
  for (int j = i; j >= 0; j = m.link[j].parent) {
    const LinkConstants<Real<T>>& link = m.link[j];
    T row[6];
    joint_force(link, state[j].R, F, row);
    for (int k = 0; k < qvel_count(link.joint); ++k) {
      M[(link.qvel + k) * m.nv + column] = row[k];
      M[column * m.nv + link.qvel + k] = row[k];
    }
    F = shift_back(F, state[j].r);
  }
}

/// M [nv][nv]; zero for pairs of joints on different branches.
template <class T>
void crba_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, T* M) {
  for (int i = 0; i < m.nlink; ++i) {
    joint_pose(m.link[i], qpos, state, state[i]);
    state[i].Ic = link_inertia(m, i, state[i].R);
  }
  for (int k = 0; k < m.nv * m.nv; ++k) M[k] = T(Real<T>(0));
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    for (int d = 0; d < qvel_count(link.joint); ++d) crba_column(m, state, i, d, M);
    if (link.parent >= 0) state[link.parent].Ic = state[link.parent].Ic + shift_back(state[i].Ic, state[i].r);
  }
  for (int k = 0; k < m.nv; ++k) M[k * m.nv + k] += T(m.armature[k]);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
