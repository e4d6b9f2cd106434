// Geometric stiffness of loops [Tournier et al. 2015]: the constraint forces stay constant in the world while the links
// that carry them turn. For joint i, let f be the forces on what it carries and d the arms from the joint to them. Then
//
//     k = Σ d·f - (d·e)(f·e) about an axis e,   Σ d·f of a ball
//
// is a spring stiffness where the forces pull. A light arm of mass m and length l by which a heavy body hangs swings
// at √(tension/(m l)), which long steps do not resolve. The implicit midpoint rule turns the spring into an
// inertia h² k/4, with the force of the step's start, as for springs of the model (spring_rule.hpp). The inertia is
// internal: momentum is conserved, and joints that no such force loads, wheels or fans, are unchanged. Decision 412.
#pragma once

#include "constraint/equality_fixed.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr double kTurned = 0.2;       ///< [rad] change of a joint's rate times h above which forces turn
inline constexpr double kUnresolved = 0.25;  ///< h² k/4 relative to the inertia that the joint carries: h ω = 1

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

/// Lanes in which the rate of a joint with geometric stiffness changes enough to turn the loops' forces.
template <class T>
TARSUS_INLINE Mask<T> turns_forces(const LinkConstants<Real<T>>& link, Real<T> h, const T* qvel, const T* next) {
  T square = T(Real<T>(0));
  for (int v = link.qvel; v < link.qvel + qvel_count(link.joint); ++v)
    square = mul_add(next[v] - qvel[v], next[v] - qvel[v], square);
  return square * T(h * h) > T(Real<T>(kTurned * kTurned));
}

/// Writes h² k/4 of each DoF to `inertia` [nv]: zero in lanes without a joint that turns the forces and has a k that
/// steps of h do not resolve. Writes nothing if no lane has one.
/// @param state poses; the rest is overwritten
/// @param K [nv] joint inertia @return whether some lane has such inertia
template <class T>
bool geometric_inertia_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const EqualityList<Real<T>>& list,
                              const T* x2, Real<T> h, const T* K, const T* qvel, const T* next, T* inertia) {
  using R = Real<T>;
  const T zero = T(R(0));
  const auto stiffens = [&](int i) { return turns_on_axis(m.link[i].joint) || turns_freely(m.link[i].joint); };
  Mask<T> turned = zero > zero;
  for (int i = 0; i < m.nlink; ++i) {
    if (stiffens(i)) turned = turned | turns_forces<T>(m.link[i], h, qvel, next);
  }
  if (!any_lane(turned)) return false;
  for (int i = 0; i < m.nlink; ++i) {
    LinkState<T>& s = state[i];
    s.Ic = link_inertia(m, i, s.R), s.pA.f = zero3<T>();
    s.IA.H = {zero, zero, zero, zero, zero, zero, zero, zero, zero};
  }
  put_loop_forces(m, state, list, x2);
  turned = zero > zero;
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<R>& link = m.link[i];
    const LinkState<T>& s = state[i];
    T k = zero;
    if (stiffens(i)) {
      const bool axial = turns_on_axis(link.joint);
      const Vec3<T> e = s.R.column_z();
      const T all = s.IA.H.xx + s.IA.H.yy + s.IA.H.zz, spring = axial ? all - dot(e, s.IA.H * e) : all;
      const T carried = axial ? dot(e, s.Ic.I * e) : (s.Ic.I.xx + s.Ic.I.yy + s.Ic.I.zz) * T(R(1.0 / 3));
      k = maximum(spring * T(h * h / 4), zero);
      turned = turned | ((k > (carried + K[link.qvel]) * T(R(kUnresolved))) & turns_forces<T>(link, h, qvel, next));
    }
    for (int v = link.qvel; v < link.qvel + qvel_count(link.joint); ++v) inertia[v] = k;
    if (link.parent < 0) continue;
    LinkState<T>& parent = state[link.parent];
    parent.Ic = parent.Ic + shift_back(s.Ic, s.r), parent.pA.f += s.pA.f;
    parent.IA.H = parent.IA.H + s.IA.H + outer(s.r, s.pA.f);
  }
  for (int v = 0; v < m.nv; ++v) inertia[v] = select(turned, inertia[v], zero);
  return any_lane(turned);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
