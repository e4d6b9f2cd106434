// ABA's passes 2 and 3 with stiffnesses on links and joints; see tarsus/dynamics/stiffened.hpp.
#pragma once

#include "dynamics/minv.inl"
#include "tarsus/dynamics/link_stiffness.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Stores the rigid inertias, with which every solve starts, in Ic.
template <class T>
void prepare_stiffened_kernel(const ModelView<Real<T>>& m, LinkState<T>* state) {
  for (int i = 0; i < m.nlink; ++i) {
    const T o = T(Real<T>(0));
    state[i].Ic =
        m.link[i].massless ? RigidInertia<T>{o, zero3<T>(), {o, o, o, o, o, o}} : link_inertia(m, i, state[i].R);
  }
}

/// The same after pass 1. Also writes `share` times the links' forces for q̈ = 0 to bias [nlink].
template <class T>
TARSUS_INLINE void keep_link_forces(const ModelView<Real<T>>& m, LinkState<T>* state, T share, Force<T>* bias) {
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    s.Ic = {s.IA.M.xx, {s.IA.H.zy, s.IA.H.xz, s.IA.H.yx}, s.IA.I};
    bias[i] = {s.pA.n * share, s.pA.f * share};
  }
}
template <class T>
void prepare_step_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, Real<T> h, Force<T>* bias) {
  keep_link_forces(m, state, T(h), bias);
}

template <class T>
TARSUS_INLINE bool acts_on_joint(const LinkStiffness<T>& stiffness) {
  const Sym3<T>& C = stiffness.joint;
  const Vec3<T>& f = stiffness.joint_force;
  return (C.xx != 0) | (C.xy != 0) | (C.xz != 0) | (C.yy != 0) | (C.yz != 0) | (C.zz != 0) | (f.x != 0) | (f.y != 0) |
         (f.z != 0);
}

/// Pass 2 for a link whose joint has a stiffness and is not free.
template <class T>
TARSUS_INLINE void reduce_stiffened(const LinkConstants<Real<T>>& link, LinkState<T>* state, int i,
                                    const LinkStiffness<T>& stiffness, const T* Q, const T* K) {
  LinkState<T>* parent = link.parent >= 0 ? &state[link.parent] : nullptr;
  if (turns_freely(link.joint)) {
    Sym3<T> tensor = stiffness.joint;
    tensor.xx += K[0], tensor.yy += K[0], tensor.zz += K[0];
    T force[3];
    put3(force, get3(Q) + transpose_mul(state[i].R, stiffness.joint_force));
    reduce_ball_tensor(state[i], parent, force, tensor);
  } else {
    reduce_axial(link.joint, state[i], parent, Q[0] + stiffness.joint_force.x, K[0] + stiffness.joint.xx);
  }
}

/// @param Q [nv] @param bias [nlink]; null: zero @param x null: only factors and u
template <class T>
void solve_stiffened_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* K, const T* Q,
                            const Force<T>* bias, const int* stiffness_of_link, const LinkStiffness<T>* stiffnesses,
                            T* x) {
  const auto stiffness_of = [&](int i) {
    return stiffness_of_link[i] < 0 ? nullptr : stiffnesses + stiffness_of_link[i];
  };
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    s.IA = articulated(s.Ic);
    s.pA = bias ? bias[i] : Force<T>{zero3<T>(), zero3<T>()};
    const LinkStiffness<T>* stiffness = stiffness_of(i);
    if (!stiffness) continue;
    s.IA = {s.IA.I + stiffness->I, s.IA.H + stiffness->H, s.IA.M + stiffness->M};
    s.pA = s.pA - Force<T>{stiffness->n, stiffness->f};
  }
  const auto on_joint = [&](int i) {
    const LinkStiffness<T>* stiffness = stiffness_of(i);
    return stiffness && !moves_freely(m.link[i].joint) && acts_on_joint(*stiffness) ? stiffness : nullptr;
  };
  for (int g = 0; g < m.ninward; ++g) {
    const LinkGroup& group = m.inward[g];
    bool alike = true;
    for (int k = 0; k < group.count; ++k) alike = alike & !on_joint(group.link[k]);
    if (alike) {
      reduce_one_group(m, state, group, Q, K);
      continue;
    }
    for (int k = 0; k < group.count; ++k) {
      const int i = group.link[k], v = m.link[i].qvel;
      const LinkStiffness<T>* stiffness = on_joint(i);
      if (stiffness)
        reduce_stiffened(m.link[i], state, i, *stiffness, Q + v, K + v);
      else
        reduce(m.link[i], state, i, Q + v, K + v);
    }
  }
  if (x) aba_accelerate(m, state, x);
}

/// Passes 2 and 3 for other forces, with the factors of the last solve. @param x null: only u
template <class T>
void solve_factored_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const int* stiffness_of_link,
                           const LinkStiffness<T>* stiffnesses, T* x) {
  for (int i = 0; i < m.nlink; ++i) {
    const int at = stiffness_of_link[i];
    state[i].pA = at < 0 ? Force<T>{zero3<T>(), zero3<T>()} : Force<T>{-stiffnesses[at].n, -stiffnesses[at].f};
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>& s = state[i];
    const Vec3<T> on_joint = stiffness_of_link[i] < 0 ? zero3<T>() : stiffnesses[stiffness_of_link[i]].joint_force;
    Force<T> f;
    if (turns_freely(link.joint)) {  // with any K
      s.u = on_joint - s.pA.n;
      const Vec3<T> turn = s.Dinv * s.u;
      f = {s.pA.n + s.IA.I * turn, s.pA.f + transpose_mul(s.IA.H, turn)};
    } else {
      const T zero = T(Real<T>(0)), y[6] = {on_joint.x, zero, zero, zero, zero, zero};  // zero for a free joint
      f = pass_force_down(link, s, y);
    }
    if (link.parent >= 0) state[link.parent].pA += shift_back(f, s.r);
  }
  if (x) aba_accelerate(m, state, x);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
