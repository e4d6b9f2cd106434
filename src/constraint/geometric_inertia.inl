// Geometric stiffness of loops [Tournier et al. 2015]: the constraint forces stay constant in the world while the links
// that carry them turn. For joint i, let f be the forces on what it carries and d the arms from the joint to them. Then
//
//     k = Σ d·f - (d·e)(f·e) about an axis e,   Σ d·f of a ball
//
// is a spring stiffness where the forces pull. A light arm of mass m and length l by which a heavy body hangs swings
// at √(tension/(m l)), which long steps do not resolve. The implicit midpoint rule turns the spring into an
// inertia h² k/4, with the force of the step's start, as for springs of the model (spring_rule.hpp). Joints above and
// below one another share their k (hanging.inl). The inertia is internal: momentum is conserved, and joints that no
// such force loads, wheels or fans, are unchanged. Decisions 412 and 418.
#pragma once

#include <algorithm>

#include "constraint/equality_fixed.inl"
#include "constraint/hanging.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kTurned = 0.2;    ///< [rad] change of a joint's rate times h above which forces turn
inline constexpr double kLost = 1e3;      ///< [rad] the same, above which forces mean nothing
inline constexpr double kUnstable = 1;    ///< h² k/4 relative to the inertia that the joint carries: h ω = 2
inline constexpr double kChanged = 0.25;  ///< change of h² k/4 that needs another solve, relative to all inertia
inline constexpr double kSettled = 0.02;  ///< the same for chains with loads

/// Sums over the links that a link carries: inertia in its Ic, the loops' forces in pA.f, Σ d fᵀ in IA.H.
template <class T>
TARSUS_INLINE void put_force(const ModelView<Real<T>>& m, int link, const Vec3<T>& d, const Vec3<T>& f,
                             LinkState<T>* state) {
  if (link < 0 || link >= m.nlink) return;
  state[link].pA.f += f, state[link].IA.H = state[link].IA.H + outer(d, f);
}

/// @param x2 [rows] the force on links is -Jᵀ x₂
template <class T>
void put_loop_forces(const ModelView<Real<T>>& m, LinkState<T>* state, const EqualityList<Real<T>>& list, const T* x2) {
  for (int i = 0; i < list.count; ++i) {
    const EqualityConstants<Real<T>>& c = list.all[i];
    const bool fixed = c.kind == EqualityKind::connect || c.kind == EqualityKind::weld;
    if (!fixed && c.kind != EqualityKind::distance && c.kind != EqualityKind::point_on_plane) continue;
    const End<T> a = end_of<T>(m, state, c.a, c.pa, false), b = end_of<T>(m, state, c.b, c.pb, false);
    const T* x = x2 + c.first_row;
    const Vec3<T> between = a.p - b.p;
    Vec3<T> f, on_a = a.r, on_b = b.r;
    if (fixed)
      f = {-x[0], -x[1], -x[2]}, on_a -= between * T(c.share), on_b += between * T(c.share);
    else if (c.kind == EqualityKind::distance)
      f = between * (-x[0] / maximum(norm(between), T(std::numeric_limits<Real<T>>::min())));
    else
      f = b.R * load3<T>(c.normal) * -x[0], on_b += between;
    put_force<T>(m, c.a, on_a, f, state), put_force<T>(m, c.b, on_b, -f, state);
  }
}

/// Lanes in which the rate of a joint with geometric stiffness changes by more than `angle` over h.
template <class T>
TARSUS_INLINE Mask<T> turns_by(double angle, const LinkConstants<Real<T>>& link, Real<T> h, const T* qvel,
                               const T* next) {
  T square = T(Real<T>(0));
  for (int v = link.qvel; v < link.qvel + qvel_count(link.joint); ++v)
    square = mul_add(next[v] - qvel[v], next[v] - qvel[v], square);
  return square * T(h * h) > T(Real<T>(angle * angle));
}

template <class T, class Number>
bool geometric_inertia_of(const ModelView<Real<T>>& m, LinkState<T>* state, const EqualityList<Real<T>>& list,
                          const T* x2, Real<T> h, const T* K, const T* qvel, const T* next,
                          const HangingLink<Real<T>>* model, const HangingLink<Number>* links, T* inertia) {
  using R = Real<T>;
  const T zero = T(R(0)), quarter = T(h * h / 4);
  const auto stiffens = [&](int i) {
    return turns_on_axis(m.link[i].joint) || turns_freely(m.link[i].joint) || (model && model[i].weight > 0);
  };
  Mask<T> turned = zero > zero, changed = turned, lost = turned;
  for (int i = 0; i < m.nlink; ++i) {
    if (!stiffens(i)) continue;
    turned = turned | turns_by<T>(kTurned, m.link[i], h, qvel, next);
    lost = lost | turns_by<T>(kLost, m.link[i], h, qvel, next);
  }
  const auto is_loose = [&](const HangingLink<Number>& link) { return T(link.loose) > zero; };
  const bool loose =
      links && std::any_of(links, links + m.nlink, [&](const auto& link) { return any_lane(is_loose(link)); });
  if (!loose && !any_lane(turned)) return false;
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    s.Ic = link_inertia(m, i, s.R), s.pA.f = zero3<T>();
    s.IA.H = {zero, zero, zero, zero, zero, zero, zero, zero, zero};
    s.u.y = zero;  // Σ k w below
  }
  put_loop_forces(m, state, list, x2);
  turned = zero > zero;
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<R>& link = m.link[i];
    LinkState<T>& s = state[i];
    const int rotation = link.qvel + (moves_freely(link.joint) ? 3 : 0);
    T a = zero, with = zero;
    if (stiffens(i)) {
      const bool axial = turns_on_axis(link.joint);
      const Mask<T> free_to_swing = links ? is_loose(links[i]) : zero > zero;
      const Mask<T> chain = moves_freely(link.joint) ? zero > zero : free_to_swing;
      const Vec3<T> e = s.R.column_z();
      const T all = s.IA.H.xx + s.IA.H.yy + s.IA.H.zz, k = maximum(axial ? all - dot(e, s.IA.H * e) : all, zero);
      const T carried = axial ? dot(e, s.Ic.I * e) : (s.Ic.I.xx + s.Ic.I.yy + s.Ic.I.zz) * T(R(1.0 / 3));
      const T all_inertia = carried + K[rotation], swings = (all_inertia - inertia[rotation]) * T(R(kUnresolved));
      turned = turned | ((k * quarter > swings) & turns_by<T>(kTurned, link, h, qvel, next));
      a = k * quarter;
      if (links) {
        const T most = largest_stiffness(s.IA.H);
        a = maximum(a, row_inertia(links[i], axial, e, s.pA.f, most, s.u.y, h));
        // In a chain an inertia that comes and goes drives vibrations. That of a free body takes part of its torques.
        const Mask<T> more = a > select(chain, zero, swings * T(R(kUnstable / kUnresolved)));
        turned = turned | (free_to_swing & more);
        with = mul_add(most, T(links[i].weight), s.u.y);
      }
      const T most = select(chain, select(inertia[rotation] > zero, T(R(kSettled)), zero), T(R(kChanged)));
      changed = changed | (absolute(a - inertia[rotation]) > all_inertia * most);
    } else if (links) {
      with = s.u.y;
    }
    s.u.x = a;
    if (link.parent < 0) continue;
    LinkState<T>& parent = state[link.parent];
    parent.Ic = parent.Ic + shift_back(s.Ic, s.r);
    add_to_parent(s, with, parent);
  }
  changed = changed & turned & !lost;
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<R>& link = m.link[i];
    for (int v = link.qvel + (moves_freely(link.joint) ? 3 : 0); v < link.qvel + qvel_count(link.joint); ++v)
      inertia[v] = select(changed, state[i].u.x, inertia[v]);
  }
  return any_lane(changed);
}

/// Writes h² k/4 of each DoF to `inertia` [nv] in lanes in which a joint turns the forces and has a k that steps of h
/// do not resolve. Other lanes keep theirs, and so do those in which it differs little.
/// @param state poses; the rest is overwritten  @param K [nv] joint inertia, with that in `inertia`
/// @param links [nlink] the model's; null: of each joint by itself
/// @param own [nlink] the lanes' own; null: the model's
/// @return whether some lane has a new inertia
template <class T>
bool geometric_inertia_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const EqualityList<Real<T>>& list,
                              const T* x2, Real<T> h, const T* K, const T* qvel, const T* next,
                              const HangingLink<Real<T>>* links, const HangingLink<T>* own, T* inertia) {
  return own ? geometric_inertia_of(m, state, list, x2, h, K, qvel, next, links, own, inertia)
             : geometric_inertia_of(m, state, list, x2, h, K, qvel, next, links, links, inertia);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
