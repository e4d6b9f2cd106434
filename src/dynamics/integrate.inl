// q ⊞ h v: integrates positions on the manifold; quaternions of any length by the exponential map, normalised.
#pragma once

#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// The general case for any angle. A number far below rounding is added to |v|², so that zero needs no branch.
template <class T>
TARSUS_INLINE Quat<T> exponential_far(const Vec3<T>& v, T z) {
  using R = Real<T>;
  const T angle = square_root(z + T(sizeof(R) == 8 ? R(1e-300) : R(1e-36)));
  T s, c;
  sincos(angle * T(R(0.5)), s, c);
  s = s / angle;
  return {c, v.x * s, v.y * s, v.z * s};
}

/// Unit quaternion (cos θ/2, v sin(θ/2)/θ) of the rotation vector v. Both factors are entire in z = θ². Up to θ² = 10,
/// half a turn in one step, they are Chebyshev series of degree 8 (error 1e-17) without root, division or reduction.
/// Lanes beyond use the general case, selected by lane, so that other lanes' bits do not change.
template <class T>
TARSUS_INLINE Quat<T> exponential(const Vec3<T>& v) {
  using R = Real<T>;
  const T z = dot(v, v);
  T c, s;
  if constexpr (sizeof(R) == 8) {
    constexpr double kCos[] = {1.0,
                               -0.12499999999999993,
                               0.002604166666666476,
                               -2.1701388888693032e-05,
                               9.688120029603478e-08,
                               -2.691144164002177e-10,
                               5.096814958637438e-13,
                               -6.99627421852193e-16,
                               7.029362648743178e-19};
    constexpr double kSin[] = {0.5,
                               -0.020833333333333332,
                               0.0002604166666666616,
                               -1.550099206344038e-06,
                               5.382288908275181e-09,
                               -1.2232474028563473e-11,
                               1.9603194306661677e-14,
                               -2.3324333693681166e-17,
                               2.0755049949455216e-20};
    c = polynomial(z, kCos), s = polynomial(z, kSin);
  } else {
    constexpr double kCos[] = {0.9999999997611875,      -0.12499999828021834,  0.002604164658255334,
                               -2.1700530199019145e-05, 9.671494274379902e-08, -2.542115369908458e-10};
    constexpr double kSin[] = {0.49999999770473513, -0.02083332185329243, 0.00026040746702015713,
                               -1.5475136213757938e-06, 5.084314678563324e-09};
    c = polynomial(z, kCos), s = polynomial(z, kSin);
  }
  const Quat<T> near = {c, v.x * s, v.y * s, v.z * s};
  const Mask<T> in_range = z <= T(R(10));
  if (__builtin_expect(all_lanes(in_range), 1)) return near;
  const Quat<T> far = exponential_far(v, z);
  return {select(in_range, near.w, far.w), select(in_range, near.x, far.x), select(in_range, near.y, far.y),
          select(in_range, near.z, far.z)};
}

/// Rotation vector of a unit quaternion along the shorter arc.
template <class T>
TARSUS_INLINE Vec3<T> logarithm(const Quat<T>& q) {
  const T w = absolute(q.w);
  const T factor = log_factor(minimum(w, T(Real<T>(1))));
  const T sign = select(q.w < T(Real<T>(0)), -factor, factor);
  return q.vec() * sign;
}

template <class T>
TARSUS_INLINE void put_quat(T* p, const Quat<T>& q) {
  p[0] = q.w, p[1] = q.x, p[2] = q.y, p[3] = q.z;
}

/// out may alias qpos.
template <class T>
void integrate_kernel(const ModelView<Real<T>>& m, const T* qpos, const T* qvel, Real<T> dt, T* out) {
  const T h = T(dt);
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const T *q = qpos + link.qpos, *v = qvel + link.qvel;
    T* o = out + link.qpos;
    if (moves_freely(link.joint)) {
      put3(o, mul_add(get3(v), h, get3(q)));
      put_quat(o + 3, normalized(unit(get_quat(q + 3)) * exponential(get3(v + 3) * h)));
    } else if (turns_freely(link.joint)) {
      put_quat(o, normalized(unit(get_quat(q)) * exponential(get3(v) * h)));
    } else {
      o[0] = mul_add(v[0], h, q[0]);
    }
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
