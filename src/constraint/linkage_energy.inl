// The energy balance of linkages over a step (tarsus/constraint/linkages.hpp).
//
// A step moves q by h v and then evaluates forces at the resulting q. With T the kinetic energy, W the work of all
// forces but the loops', v⁺ the velocity at the end of the step and M̂ = M + K,
//
//     T(q, v⁺) + ½ v⁺ᵀ K v⁺ = T(q ⊟ h v, v) + ½ vᵀ K v + W,   W = ½ h (v + v⁺)ᵀ Q + ½ (v + v⁺)ᵀ p
//
// where Q are the forces of drives, springs and gravity, and p = M̂ (v⁺ - v⁰) is the impulse of all terms. The loops'
// share of the second summand is ½ λᵀ (J v + J v⁺). If r v⁺ takes the place of v⁺, this is a quadratic equation in r.
#pragma once

#include "constraint/linkage_sums.hpp"
#include "dynamics/energy_bound.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Writes for each linkage the square of its fastest link's angle in the step: negative if some link turns further than
/// a step resolves. @param linkage [nlink] at a root, the linkage of its tree or -1 @param angle [count] [rad²]
template <class T>
void linkage_angles_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const int* linkage, int count, Real<T> h,
                           const T* qpos, const T* qvel, T* angle) {
  using R = Real<T>;
  std::fill_n(angle, count, T(R(0)));
  for (int i = 0; i < m.nlink; ++i) joint_pose(m.link[i], qpos, state, state[i]);
  link_motions<T>(m, state, qvel, [&](int i) -> Motion<T>& { return state[i].v; });
  for (int i = 0; i < m.nlink; ++i) {
    const int which = linkage[m.link[i].root];
    if (which < 0) continue;
    const T most = T(R(std::min(kBoundAngle, kChainAngle / m.link[i].depth)));
    const Vec3<T> turn = state[i].v.w * T(h);
    const T square = dot(turn, turn);
    angle[which] = select((angle[which] < T(R(0))) | (square > most * most), T(R(-1)), maximum(angle[which], square));
  }
}

/// Writes the sums of LinkageSum for each linkage.
/// @param linkage [nlink] at a root, the linkage of its tree or -1
/// @param free [nv] v⁰; null: the loops are the only terms @param next [nv] v⁺
/// @param scratch [max(nq, nv)] @param sums [count][kLinkageSums]
template <class T>
void linkage_energy_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const int* linkage, int count, Real<T> h,
                           const T* qpos, const T* qvel, const T* free, const T* next, const T* Q, const T* K,
                           T* scratch, T* sums) {
  using R = Real<T>;
  using enum LinkageSum;
  const T half = T(R(0.5)), half_step = T(h / 2);
  const auto of = [&](int link) -> T* {
    const int which = linkage[m.link[link].root];
    return which < 0 ? nullptr : sums + kLinkageSums * which;
  };
  std::fill_n(sums, kLinkageSums * count, T(R(0)));
  integrate_kernel(m, qpos, qvel, -h, scratch);
  for (int i = 0; i < m.nlink; ++i) joint_pose(m.link[i], scratch, state, state[i]);
  link_motions<T>(m, state, qvel, [&](int i) -> Motion<T>& { return state[i].v; });
  for (int i = 0; i < m.nlink; ++i) {
    if (T* const sum = of(i))
      sum[constant] = mul_add(twice_kinetic(link_inertia(m, i, state[i].R), state[i].v), half, sum[constant]);
  }
  for (int i = 0; i < m.nlink; ++i) joint_pose(m.link[i], qpos, state, state[i]);
  link_motions<T>(m, state, qvel, [&](int i) -> Motion<T>& { return state[i].v; });
  link_motions<T>(m, state, next, [&](int i) -> Motion<T>& { return state[i].a; });
  const Motion<T> up = {zero3<T>(), against_gravity<T>(m)};
  for (int i = 0; i < m.nlink; ++i) {
    T* const sum = of(i);
    if (!sum) continue;
    LinkState<T>& s = state[i];
    const RigidInertia<T> I = link_inertia(m, i, s.R);
    const Force<T> weight = I * up;
    sum[square] = mul_add(twice_kinetic(I, s.a), half, sum[square]);
    sum[linear] = mul_add(dot(weight, s.a), half_step, sum[linear]);
    sum[constant] -= dot(weight, s.v) * half_step;
    s.v = s.v + s.a;
  }
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<R>& link = m.link[i];
    T* const sum = of(i);
    const int n = sum ? qvel_count(link.joint) : 0;
    for (int v = link.qvel; v < link.qvel + n; ++v) {
      const T inertia = K[link.qvel];
      sum[square] = mul_add(inertia * half, next[v] * next[v], sum[square]);
      sum[linear] = mul_add(-half_step * Q[v], next[v], sum[linear]);
      sum[constant] += half * inertia * qvel[v] * qvel[v] + half_step * Q[v] * qvel[v];
      sum[work] += absolute(half_step * Q[v] * (qvel[v] + next[v]));
      if (free) sum[terms] = mul_add(half * inertia * (next[v] - free[v]), qvel[v] + next[v], sum[terms]);
    }
  }
  if (!free) return;
  for (int v = 0; v < m.nv; ++v) scratch[v] = next[v] - free[v];
  link_motions<T>(m, state, scratch, [&](int i) -> Motion<T>& { return state[i].a; });
  for (int i = 0; i < m.nlink; ++i) {
    if (T* const sum = of(i))
      sum[terms] = mul_add(dot(link_inertia(m, i, state[i].R) * state[i].a, state[i].v), half, sum[terms]);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
