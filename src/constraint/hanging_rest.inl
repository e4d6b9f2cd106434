// The largest frequencies at which what hangs swings in the model's reference pose (hanging.cpp), for worlds with their
// own masses: a power iteration with M⁻¹ H. Joints that do not bear what hangs stand still.
#pragma once

#include <algorithm>
#include <cstdint>

#include "constraint/resting_link.hpp"
#include "dynamics/minv.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kLightPart = 0.1;    ///< share of a flying tree that may hang on the rest of it
inline constexpr int kSwingIterations = 20;  ///< for ω: a lower bound of it, within a tenth

/// y = H x for the stiffness H of gravity g (hanging.inl).  @param state v and pA are scratch
template <class T>
TARSUS_INLINE void apply_stiffness(const ModelView<Real<T>>& m, LinkState<T>* state, const RestingLink<T>* links,
                                   const Vec3<T>& g, const T* x, T* y) {
  const T zero = T(Real<T>(0));
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    LinkState<T>& s = state[i];
    Vec3<T>&turn = s.v.w, &above = s.v.v;
    turn = select(links[i].swings > zero, joint_motion<T>(link, s.R, x + link.qvel).w, zero3<T>());
    above = turn, s.pA.n = zero3<T>();
    if (link.parent >= 0) above += state[link.parent].v.v;
  }
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const LinkState<T>& s = state[i];
    const Vec3<T>&turn = s.v.w, &above = s.v.v, &below = s.pA.n, &d = s.Ic.h;
    const T k = dot(d, g);
    // P = tr S - S with S = d gᵀ: Pᵀ of what is above, and P of what is below.
    const Vec3<T> torque = above * k - g * dot(d, above) + below;
    joint_force<T>(link, s.R, {torque, zero3<T>()}, y + link.qvel);
    for (int v = link.qvel; v < link.qvel + qvel_count(link.joint); ++v)
      y[v] = select(links[i].swings > zero, y[v], zero);
    if (link.parent >= 0) state[link.parent].pA.n += below + turn * k - d * dot(g, turn);
  }
}

/// @param state poses; the rest is overwritten  @param may [nlink] RestingLink::kJointTurns, kTreeFlies
/// @param armature [nv]  @param gravity its length  @param scratch [3 nv + nlink]  @param links [nlink] the results
template <class T>
void resting_links_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const std::uint8_t* may, const T* armature,
                          const T* gravity, T* scratch, RestingLink<T>* links) {
  using R = Real<T>;
  const T zero = T(R(0)), one = T(R(1)), *const none = nullptr;
  T *const K = scratch, *const force = K + m.nv, *const x = force + m.nv, *const square = x + m.nv;
  for (int i = 0; i < m.nlink; ++i) state[i].Ic = link_inertia(m, i, state[i].R);
  for (int i = m.nlink - 1; i >= 0; --i) {
    if (const int to = m.link[i].parent; to >= 0) state[to].Ic = state[to].Ic + shift_back(state[i].Ic, state[i].r);
  }
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<R>& link = m.link[i];
    const RigidInertia<T>& I = state[i].Ic;
    const bool bears = (may[i] & kJointTurns) && !moves_freely(link.joint), flies = may[link.root] & kTreeFlies;
    const T light = flies ? select(I.mass < T(R(kLightPart)) * state[link.root].Ic.mass, one, zero) : one;
    links[i] = {bears ? light : zero, zero};
    const T held = select(links[i].swings > zero, zero, T(R(1e6)) * (I.mass + I.I.xx + I.I.yy + I.I.zz + one));
    for (int v = link.qvel; v < link.qvel + qvel_count(link.joint); ++v) K[v] = armature[v] + held;
  }
  if (!std::any_of(links, links + m.nlink, [&](const RestingLink<T>& link) { return any_lane(link.swings > zero); }))
    return;
  factor_kernel(m, state, none, K);
  for (int axis = 0; axis < 3; ++axis) {
    Vec3<T> g = zero3<T>();
    (axis == 0 ? g.x : axis == 1 ? g.y : g.z) = *gravity;
    for (int v = 0; v < m.nv; ++v) force[v] = T(R((v % 2 ? -1.0 : 1.0) / double(1 + v % 7)));
    for (int k = 0; k <= kSwingIterations; ++k) {
      if (k > 0) apply_stiffness(m, state, links, g, x, force);
      minv_kernel(m, state, force, x);
      std::fill_n(square, m.nlink, zero);
      const auto each = [&](const auto& f) {
        for (int i = 0; i < m.nlink; ++i) {
          const LinkConstants<R>& link = m.link[i];
          for (int v = link.qvel; v < link.qvel + qvel_count(link.joint); ++v) f(v, square[link.root]);
        }
      };
      each([&](int v, T& sum) { sum += x[v] * force[v]; });
      each([&](int v, const T& sum) { x[v] = select(sum > zero, x[v] / square_root(sum), x[v]); });
    }
    for (int i = 0; i < m.nlink; ++i)
      links[i].fastest = maximum(links[i].fastest, square_root(maximum(square[i], zero)));
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
