// The parts of ABA's first two passes that constraints need.
#pragma once

#include "dynamics/minv.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
void place_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel) {
  const T* no_force = nullptr;
  aba_outward(m, state, qpos, qvel, no_force);
  place_origins(m.link, m.nlink, state);
}

template <class T>
void prepare_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel, const T* Q,
                    const T* K) {
  place_kernel(m, state, qpos, qvel);
  aba_inward(m, state, Q, K);
}

template <class T>
void pose_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos) {
  pose_links(m, state, qpos);
  place_origins(m.link, m.nlink, state);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
