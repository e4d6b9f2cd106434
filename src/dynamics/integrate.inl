// q ⊞ h v: positions move along the manifold, quaternions by the exponential map, renormalised.
#pragma once

#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Unit quaternion of the rotation vector v. |v|² is lifted by a number far under rounding, so that zero needs no branch.
template <class T>
TARSUS_INLINE Quat<T> exponential(const Vec3<T>& v) {
  using R = Real<T>;
  const T angle = square_root(dot(v, v) + T(sizeof(R) == 8 ? R(1e-300) : R(1e-36)));
  T s, c;
  sincos(angle * T(R(0.5)), s, c);
  s = s / angle;
  return {c, v.x * s, v.y * s, v.z * s};
}

template <class T>
TARSUS_INLINE void put_quat(T* p, const Quat<T>& q) {
  p[0] = q.w, p[1] = q.x, p[2] = q.y, p[3] = q.z;
}

/// out may be qpos.
template <class T>
void integrate_kernel(const ModelView<Real<T>>& m, const T* qpos, const T* qvel, Real<T> dt, T* out) {
  const T h = T(dt);
  for (int i = 0; i < m.nlink; ++i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const T *q = qpos + link.qpos, *v = qvel + link.qvel;
    T* o = out + link.qpos;
    if (link.joint == JointType::free) {
      put3(o, mul_add(get3(v), h, get3(q)));
      put_quat(o + 3, normalized(get_quat(q + 3) * exponential(get3(v + 3) * h)));
    } else if (link.joint == JointType::ball) {
      put_quat(o, normalized(get_quat(q) * exponential(get3(v) * h)));
    } else {
      o[0] = mul_add(v[0], h, q[0]);
    }
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
