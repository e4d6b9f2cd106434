// ABA's passes 2 and 3 with loads on links and joints; see tarsus/dynamics/loaded.hpp.
#pragma once

#include "dynamics/aba.inl"
#include "tarsus/dynamics/link_load.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Rigid inertias, which every solve starts from, wait in Ic.
template <class T>
void prepare_loads_kernel(const ModelView<Real<T>>& m, LinkState<T>* state) {
  for (int i = 0; i < m.nlink; ++i) {
    const T o = T(Real<T>(0));
    state[i].Ic =
        m.link[i].massless ? RigidInertia<T>{o, zero3<T>(), {o, o, o, o, o, o}} : link_inertia(m, i, state[i].R);
  }
}

template <class T>
void solve_loaded_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* K, const T* Q,
                         const int* load_of_link, const LinkLoad<T>* loads, T* x) {
  const T zero = T(Real<T>(0));
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    s.IA = articulated(s.Ic);
    s.pA = {zero3<T>(), zero3<T>()};
    if (load_of_link[i] < 0) continue;
    const LinkLoad<T>& load = loads[load_of_link[i]];
    s.IA = {s.IA.I + load.I, s.IA.H + load.H, s.IA.M + load.M};
    s.pA = {-load.n, -load.f};
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>* parent = link.parent >= 0 ? &state[link.parent] : nullptr;
    T force[6] = {zero, zero, zero, zero, zero, zero};
    if (Q) {
      for (int k = 0; k < qvel_count(link.joint); ++k) force[k] = Q[link.qvel + k];
    }
    const T* own = K + link.qvel;
    if (load_of_link[i] < 0 || moves_freely(link.joint)) {
      reduce(link, state, i, force, own);
      continue;
    }
    const LinkLoad<T>& load = loads[load_of_link[i]];
    if (turns_freely(link.joint)) {
      Sym3<T> tensor = load.joint;
      tensor.xx += own[0], tensor.yy += own[0], tensor.zz += own[0];
      const Vec3<T> turned = get3(force) + transpose_mul(state[i].R, load.joint_force);
      put3(force, turned);
      reduce_ball_tensor(state[i], parent, force, tensor);
    } else {
      reduce_axial(link.joint, state[i], parent, force[0] + load.joint_force.x, own[0] + load.joint.xx);
    }
  }
  aba_accelerate(m, state, x);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
