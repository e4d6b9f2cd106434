// φ, J (as forces in world axes at the links' origins), J q̇ and J̇ q̇ of the constraints of
// tarsus/constraint/equality.hpp. connect and weld are in equality_fixed.inl.
//
// A point p = o + R p_local of a link has, with r = R p_local and the link's spatial acceleration a,
//
//     ṗ = v + ω × r,     p̈ = a_v + a_w × r + ω × ṗ.
//
// The workspace's accelerations include -g, also that of the world, and so differences are free of gravity.
#pragma once

#include "constraint/equality_group.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Writes row `row`: moment and force on a at its origin, and on b.
template <class T>
TARSUS_INLINE void put_row(const EqualityConstants<Real<T>>& c, const RowTarget<Real<T>>& to, int row,
                           const Force<T>& on_a, const Force<T>& on_b) {
  T *a = force_on_a<T>(c, to) + row, *b = force_on_b<T>(c, to) + row;
  for (int k = 0; k < 3; ++k) {
    a[k * to.stride] = on_a.n[k], a[(3 + k) * to.stride] = on_a.f[k];
    b[k * to.stride] = on_b.n[k], b[(3 + k) * to.stride] = on_b.f[k];
  }
}

template <class T>
TARSUS_INLINE void distance_row(const EqualityConstants<Real<T>>& c, const End<T>& a, const End<T>& b,
                                const RowTarget<Real<T>>& to, T* phi, T* rate, T* bias) {
  using R = Real<T>;
  const Vec3<T> d = a.p - b.p;
  const T length = norm(d), zero = T(R(0));
  // Coinciding points have no direction. The row is then zero, and counts as dependent.
  const T inverse = select(length > zero, T(R(1)) / maximum(length, T(std::numeric_limits<R>::min())), zero);
  const Vec3<T> n = d * inverse;
  put_row<T>(c, to, 0, {cross(a.r, n), copy_of(n)}, {-cross(b.r, n), -n});
  phi[0] = length - T(c.scale);
  if (!rate) return;
  const Vec3<T> v = a.speed - b.speed;
  rate[0] = dot(n, v);
  bias[0] = dot(n, a.acceleration - b.acceleration) + (dot(v, v) - rate[0] * rate[0]) * inverse;
}

template <class T>
TARSUS_INLINE void plane_row(const EqualityConstants<Real<T>>& c, const End<T>& a, const End<T>& b,
                             const RowTarget<Real<T>>& to, T* phi, T* rate, T* bias) {
  const Vec3<T> n = b.R * load3<T>(c.normal), d = a.p - b.p;
  put_row<T>(c, to, 0, {cross(a.r, n), copy_of(n)}, {cross_add(n, d, -cross(b.r, n)), -n});
  phi[0] = dot(n, d);
  if (!rate) return;
  const Vec3<T> v = a.speed - b.speed, turn = cross(b.w, n);
  rate[0] = dot(n, v) + dot(turn, d);
  bias[0] = dot(n, a.acceleration - b.acceleration) + T(Real<T>(2)) * dot(turn, v) +
            dot(cross_add(b.alpha, n, cross(b.w, turn)), d);
}

template <class T>
TARSUS_INLINE void joint_row(const EqualityConstants<Real<T>>& c, const T* qpos, const T* qvel,
                             const RowTarget<Real<T>>& to, T* phi, T* rate, T* bias) {
  using R = Real<T>;
  const T zero = T(R(0)), x = c.qb >= 0 ? qpos[c.qb] - T(c.reference_b) : zero;
  T value = T(c.polynomial[4]), slope = zero, bend = zero;
  for (int k = 3; k >= 0; --k) {
    bend = mul_add(bend, x, slope + slope);
    slope = mul_add(slope, x, value);
    value = mul_add(value, x, T(c.polynomial[k]));
  }
  T* joint = reinterpret_cast<T*>(to.joint);
  joint[0] = T(R(1)), joint[to.stride] = -slope;
  phi[0] = qpos[c.qa] - T(c.reference_a) - value;
  if (!rate) return;
  const T vb = c.vb >= 0 ? qvel[c.vb] : zero;
  rate[0] = qvel[c.va] - slope * vb;
  bias[0] = -(bend * vb * vb);
}

/// All constraints except users' and tendons'; of a single world in SIMD lanes where possible. rate and bias may both
/// be null.
template <class T>
void equalities_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, const EqualityList<Real<T>>& list,
                       const RowTarget<Real<T>>* targets, const T* qpos, const T* qvel, T* phi, T* rate, T* bias) {
  using S = typename RecordPack<T>::type;
  constexpr bool kGroups = kRecords < T >> 1;
  if constexpr (kGroups) {
    for (int g = 0; g < list.group_count; ++g) {
      if (list.groups[g].count > 1) group_rows<T, S>(m, state, list.groups[g], targets, phi, rate, bias);
    }
  }
  for (int i = 0; i < list.count; ++i) {
    const EqualityConstants<Real<T>>& c = list.all[i];
    if (c.kind == EqualityKind::user || c.kind == EqualityKind::tendon) continue;
    if (kGroups && c.in_group) continue;
    const RowTarget<Real<T>>& to = targets[i];
    T *f = phi + c.first_row, *g = rate ? rate + c.first_row : nullptr, *h = bias ? bias + c.first_row : nullptr;
    if (c.kind == EqualityKind::joint) {
      joint_row<T>(c, qpos, qvel, to, f, g, h);
      continue;
    }
    if (c.kind == EqualityKind::connect || c.kind == EqualityKind::weld) {
      fixed_rows<T>(m, state, c, to, f, g, h);
      continue;
    }
    const End<T> a = end_of<T>(m, state, c.a, c.pa, rate), b = end_of<T>(m, state, c.b, c.pb, rate);
    if (c.kind == EqualityKind::distance)
      distance_row<T>(c, a, b, to, f, g, h);
    else
      plane_row<T>(c, a, b, to, f, g, h);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
