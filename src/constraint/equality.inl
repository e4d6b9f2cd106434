// φ, J (as forces in world axes at the links' origins), J q̇ and J̇ q̇ of one constraint; see
// tarsus/constraint/equality.hpp.
//
// A point p = o + R p_local of a link moves with ṗ = v + ω × r, r = R p_local, and p̈ = a_v + a_w × r + ω × ṗ, a the
// link's spatial acceleration. The workspace's accelerations include -g, the world's too, so that differences are free
// of it.
#pragma once

#include "constraint/equality_view.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// One end of a constraint: link or world.
template <class T>
struct End {
  Mat3<T> R;
  Vec3<T> r, p;      // from the link's origin to the point; the point
  Vec3<T> w, speed;  // angular velocity; the point's velocity
  Vec3<T> alpha, acceleration;
};

template <class T>
TARSUS_INLINE End<T> end_of(const ModelView<Real<T>>& m, const LinkState<T>* state, int link, const Real<T>* local,
                            bool moving) {
  const Vec3<T> point = load3<T>(local), zero = zero3<T>();
  if (link < 0) return {identity3<T>(), point, point, zero, zero, zero, -load3<T>(m.gravity)};
  const LinkState<T>& s = state[link];
  End<T> e;
  e.R = s.R;
  e.r = s.R * point;
  e.p = s.o + e.r;
  if (!moving) return e;
  e.w = s.v.w;
  e.speed = cross_add(s.v.w, e.r, s.v.v);
  e.alpha = s.a.w;
  e.acceleration = cross_add(s.v.w, e.speed, cross_add(s.a.w, e.r, s.a.v));
  return e;
}

/// Row `row`: force f and moment n on a at its origin, f_b and n_b on b.
template <class T>
TARSUS_INLINE void put_row(const EqualityConstants<Real<T>>& c, const RowTarget<Real<T>>& to, int row,
                           const Force<T>& on_a, const Force<T>& on_b) {
  T* p = reinterpret_cast<T*>(to.force) + row;
  const Force<T>&first = c.swapped ? on_b : on_a, &second = c.swapped ? on_a : on_b;
  for (int k = 0; k < 3; ++k) {
    p[k * to.stride] = first.n[k], p[(3 + k) * to.stride] = first.f[k];
    p[(6 + k) * to.stride] = second.n[k], p[(9 + k) * to.stride] = second.f[k];
  }
}

/// Moments alone: forces that never change (unit vectors, zeros) are written once, by EqualitySet::add_blocks(). The
/// world's side is never read.
template <class T, bool kWorld>
TARSUS_INLINE void put_moment(const EqualityConstants<Real<T>>& c, const RowTarget<Real<T>>& to, int row,
                              const Vec3<T>& on_a, const Vec3<T>& on_b) {
  T* p = reinterpret_cast<T*>(to.force) + row;
  const int n = to.stride;
  if (kWorld) {
    p[0] = on_a.x, p[n] = on_a.y, p[2 * n] = on_a.z;
    return;
  }
  const Vec3<T>&first = c.swapped ? on_b : on_a, &second = c.swapped ? on_a : on_b;
  p[0] = first.x, p[n] = first.y, p[2 * n] = first.z;
  p += 6 * n;
  p[0] = second.x, p[n] = second.y, p[2 * n] = second.z;
}

/// φ, rate, bias: of the constraint's first row; rate null: positions only. kWorld: b is the world.
template <class T, bool kWorld>
TARSUS_INLINE void connect_rows(const EqualityConstants<Real<T>>& c, const End<T>& a, const End<T>& b,
                                const RowTarget<Real<T>>& to, T* phi, T* rate, T* bias) {
  const T o = T(Real<T>(0));
  put3(phi, a.p - b.p);
  if (rate) {
    put3(rate, kWorld ? a.speed : a.speed - b.speed);
    put3(bias, a.acceleration - b.acceleration);
  }
  // r × e_k, and -r × e_k
  put_moment<T, kWorld>(c, to, 0, {o, a.r.z, -a.r.y}, {o, -b.r.z, b.r.y});
  put_moment<T, kWorld>(c, to, 1, {-a.r.z, o, a.r.x}, {b.r.z, o, -b.r.x});
  put_moment<T, kWorld>(c, to, 2, {a.r.y, -a.r.x, o}, {-b.r.y, b.r.x, o});
}

/// Rows 3 to 5 of a weld. With the quaternion (w, v) of E = F_bᵀ F_a and Ω = F_bᵀ (ω_a - ω_b): φ = s v, φ̇ = s/2 (w Ω +
/// Ω × v).
template <class T, bool kWorld>
TARSUS_INLINE void orientation_rows(const EqualityConstants<Real<T>>& c, const End<T>& a, const End<T>& b,
                                    const RowTarget<Real<T>>& to, T* phi, T* rate, T* bias) {
  Mat3<T> Fa = load33<T>(c.Ra), Fb = load33<T>(c.Rb);
  if (c.a >= 0) Fa = a.R * Fa;
  if (!kWorld && c.b >= 0) Fb = b.R * Fb;
  const Mat3<T> E = transpose(Fb) * Fa;
  const T one = T(Real<T>(1)), half = T(Real<T>(0.5)), s = T(c.scale), tiny = T(Real<T>(1e-12));
  // w >= 0 chosen; at half a turn, where v is lost, it stays finite.
  const T w = half * square_root(maximum(one + E.xx + E.yy + E.zz, tiny));
  const Vec3<T> v = Vec3<T>{E.zy - E.yz, E.xz - E.zx, E.yx - E.xy} * (T(Real<T>(0.25)) / w);
  const T hs = half * s;
  put3(phi + 3, v * s);
  if (rate) {
    const Vec3<T> relative = kWorld ? a.w : a.w - b.w, spin = transpose_mul(Fb, relative),
                  alpha = transpose_mul(Fb, kWorld ? a.alpha : a.alpha - b.alpha - cross(b.w, relative));
    put3(rate + 3, cross_add(spin, v, spin * w) * hs);
    put3(bias + 3, (cross_add(alpha, v, alpha * w) - v * (half * dot(spin, spin))) * hs);
  }
  // n_k = s/2 F_b (w e_k + v × e_k)
  const Vec3<T> u = v * hs;
  const T uw = w * hs;
  const Vec3<T> nx = Fb * Vec3<T>{uw, u.z, -u.y}, ny = Fb * Vec3<T>{-u.z, uw, u.x}, nz = Fb * Vec3<T>{u.y, -u.x, uw};
  put_moment<T, kWorld>(c, to, 3, nx, -nx);
  put_moment<T, kWorld>(c, to, 4, ny, -ny);
  put_moment<T, kWorld>(c, to, 5, nz, -nz);
}

/// A connect or a weld.
template <class T, bool kWorld>
TARSUS_INLINE void fixed_rows(const ModelView<Real<T>>& m, const LinkState<T>* state,
                              const EqualityConstants<Real<T>>& c, const RowTarget<Real<T>>& to, T* phi, T* rate,
                              T* bias) {
  const End<T> a = end_of<T>(m, state, c.a, c.pa, rate), b = end_of<T>(m, state, kWorld ? -1 : c.b, c.pb, rate);
  if (c.kind == EqualityKind::weld) orientation_rows<T, kWorld>(c, a, b, to, phi, rate, bias);
  connect_rows<T, kWorld>(c, a, b, to, phi, rate, bias);
}

template <class T>
TARSUS_INLINE void distance_row(const EqualityConstants<Real<T>>& c, const End<T>& a, const End<T>& b,
                                const RowTarget<Real<T>>& to, T* phi, T* rate, T* bias) {
  using R = Real<T>;
  const Vec3<T> d = a.p - b.p;
  const T length = norm(d), zero = T(R(0));
  // Points that coincide have no direction: the row is then zero, which shows as a dependent row.
  const T inverse = select(length > zero, T(R(1)) / maximum(length, T(std::numeric_limits<R>::min())), zero);
  const Vec3<T> n = d * inverse;
  put_row<T>(c, to, 0, {cross(a.r, n), n}, {-cross(b.r, n), -n});
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
  put_row<T>(c, to, 0, {cross(a.r, n), n}, {cross_add(n, d, -cross(b.r, n)), -n});
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

/// All constraints but users' and tendons'. rate and bias may both be null.
template <class T>
void equality_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, const EqualityConstants<Real<T>>* list,
                     int count, const RowTarget<Real<T>>* targets, const T* qpos, const T* qvel, T* phi, T* rate,
                     T* bias) {
  for (int i = 0; i < count; ++i) {
    const EqualityConstants<Real<T>>& c = list[i];
    const RowTarget<Real<T>>& to = targets[i];
    T *f = phi + c.first_row, *g = rate ? rate + c.first_row : nullptr, *h = bias ? bias + c.first_row : nullptr;
    if (c.kind == EqualityKind::user || c.kind == EqualityKind::tendon) continue;
    if (c.kind == EqualityKind::joint) {
      joint_row<T>(c, qpos, qvel, to, f, g, h);
      continue;
    }
    if (c.kind == EqualityKind::connect || c.kind == EqualityKind::weld) {
      if (c.b < 0)
        fixed_rows<T, true>(m, state, c, to, f, g, h);
      else
        fixed_rows<T, false>(m, state, c, to, f, g, h);
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
