// What constraints need of ABA's first two passes.
#pragma once

#include "dynamics/minv.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
TARSUS_INLINE void origins(const ModelView<Real<T>>& m, LinkState<T>* state) {
  for (int i = 0; i < m.nlink; ++i) {
    const int parent = m.link[i].parent;
    state[i].o = parent >= 0 ? state[parent].o + state[i].r : state[i].r;
  }
}

template <class T>
void place_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel) {
  const T* no_force = nullptr;
  aba_outward(m, state, qpos, qvel, no_force);
  origins(m, state);
}

template <class T>
void prepare_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel, const T* Q,
                    const T* K) {
  place_kernel(m, state, qpos, qvel);
  aba_inward(m, state, Q, K);
}

template <class T>
void pose_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos) {
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    joint_pose(m.link[i], qpos, state, s);
    s.IA = articulated(link_inertia(m, i, s.R));
    s.pA = {zero3<T>(), zero3<T>()};
  }
  origins(m, state);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
