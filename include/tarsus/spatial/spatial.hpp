// Spatial (6-D) algebra, Plücker coordinates, angular part first.  [Featherstone 2008, ch. 2]
//
// Conventions of Tarsus:
// - Every spatial quantity of link i is expressed in world axes, with the reference point at link i's origin. Moving a
//   quantity to the parent is then a shift by r (parent origin to link origin) without a rotation. The recursion also
//   yields the orientations of all links. No coordinate grows with the distance from the world's origin, so that float
//   suffices.
// - Motion: (w, v), where v is the velocity of the body-fixed point at the reference point. Force: (n, f), where n is
//   the moment about the reference point.
// - Spatial acceleration is the derivative of the spatial velocity. Its linear part v̇ is not the classical
//   acceleration, which is v̇ + w × v.
#pragma once

#include "tarsus/math/vec.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
struct Motion {
  Vec3<T> w, v;
};

template <class T>
struct Force {
  Vec3<T> n, f;
  TARSUS_INLINE Force& operator+=(const Force& b) { return n += b.n, f += b.f, *this; }
};

template <class T>
TARSUS_INLINE Motion<T> operator+(const Motion<T>& a, const Motion<T>& b) {
  return {a.w + b.w, a.v + b.v};
}
template <class T>
TARSUS_INLINE Motion<T> operator-(const Motion<T>& a, const Motion<T>& b) {
  return {a.w - b.w, a.v - b.v};
}
template <class T>
TARSUS_INLINE Force<T> operator+(const Force<T>& a, const Force<T>& b) {
  return {a.n + b.n, a.f + b.f};
}
template <class T>
TARSUS_INLINE Force<T> operator-(const Force<T>& a, const Force<T>& b) {
  return {a.n - b.n, a.f - b.f};
}
template <class T>
TARSUS_INLINE Force<T> mul_add(const Force<T>& a, std::type_identity_t<T> s, const Force<T>& b) {
  return {mul_add(a.n, s, b.n), mul_add(a.f, s, b.f)};
}
/// Power of a force on a motion.
template <class T>
TARSUS_INLINE T dot(const Force<T>& f, const Motion<T>& m) {
  return dot(f.n, m.w) + dot(f.f, m.v);
}
/// The motion m about the point displaced by r.
template <class T>
TARSUS_INLINE Motion<T> shift(const Motion<T>& m, const Vec3<T>& r) {
  return {m.w, cross_add(m.w, r, m.v)};
}
/// The force f, given about the point displaced by r, about the undisplaced point.
template <class T>
TARSUS_INLINE Force<T> shift_back(const Force<T>& f, const Vec3<T>& r) {
  return {cross_add(r, f.f, f.n), f.f};
}

/// Inertia of a rigid body in ten numbers: mass, first moment h = m c, second moment I about the reference point.
template <class T>
struct RigidInertia {
  T mass;
  Vec3<T> h;
  Sym3<T> I;
};

template <class T>
TARSUS_INLINE Force<T> operator*(const RigidInertia<T>& i, const Motion<T>& m) {
  return {cross_add(i.h, m.v, i.I * m.w), cross_add(m.w, i.h, m.v * i.mass)};
}
/// I a + v ×* I v, the force on a rigid body. Using the classical acceleration of the reference point saves a few
/// multiplications.
template <class T>
TARSUS_INLINE Force<T> newton_euler(const RigidInertia<T>& i, const Motion<T>& v, const Motion<T>& a) {
  const Vec3<T> classical = cross_add(v.w, v.v, a.v);
  const Vec3<T> n = cross_add(i.h, classical, cross_add(v.w, i.I * v.w, i.I * a.w));
  const Vec3<T> f = cross_add(a.w, i.h, cross_add(v.w, cross(v.w, i.h), classical * i.mass));
  return {n, f};
}
template <class T>
TARSUS_INLINE RigidInertia<T> operator+(const RigidInertia<T>& a, const RigidInertia<T>& b) {
  return {a.mass + b.mass, a.h + b.h, a.I + b.I};
}
/// The same body about the point displaced by -r.
template <class T>
TARSUS_INLINE RigidInertia<T> shift_back(const RigidInertia<T>& i, const Vec3<T>& r) {
  // I + m (r² 1 - r rᵀ) + 2 (h·r) 1 - h rᵀ - r hᵀ, with g = h + m r: I + (h·r + g·r) 1 - h rᵀ - r gᵀ
  const Vec3<T> g = mul_add(r, i.mass, i.h);
  const T trace = dot(i.h, r) + dot(g, r);
  Sym3<T> s = minus_outer(minus_outer(i.I, i.h, r), r, g);
  s.xx += trace, s.yy += trace, s.zz += trace;
  return {i.mass, g, s};
}

/// Articulated inertia in 21 distinct numbers: n = I w + H v, f = Hᵀ w + M v.
template <class T>
struct ArticulatedInertia {
  Sym3<T> I;
  Mat3<T> H;
  Sym3<T> M;
};

template <class T>
TARSUS_INLINE Force<T> operator*(const ArticulatedInertia<T>& a, const Motion<T>& m) {
  return {a.I * m.w + a.H * m.v, transpose_mul(a.H, m.w) + a.M * m.v};
}
template <class T>
TARSUS_INLINE ArticulatedInertia<T> articulated(const RigidInertia<T>& i) {
  const T o = T(Real<T>(0));
  return {i.I, {o, -i.h.z, i.h.y, i.h.z, o, -i.h.x, -i.h.y, i.h.x, o}, {i.mass, o, o, i.mass, o, i.mass}};
}
/// Adds to `sum` the inertia `a`, given at the point displaced by r from sum's reference point.
///   M' = M,  H' = H + [r] M,  I' = I + ([r] Hᵀ)ᵀ + [r] H'ᵀ
template <class T>
TARSUS_INLINE void add_shifted(ArticulatedInertia<T>& sum, const ArticulatedInertia<T>& a, const Vec3<T>& r) {
  const Vec3<T> mx = a.M.column_x(), my = a.M.column_y(), mz = a.M.column_z();
  const Vec3<T> hx = a.H.row_x(), hy = a.H.row_y(), hz = a.H.row_z();
  // rows of [r] M: r_y M_z - r_z M_y, …
  const Vec3<T> gx = mul_add(mz, r.y, mul_add(my, -r.z, hx));
  const Vec3<T> gy = mul_add(mx, r.z, mul_add(mz, -r.x, hy));
  const Vec3<T> gz = mul_add(my, r.x, mul_add(mx, -r.y, hz));
  sum.M += a.M;
  sum.H.xx += gx.x, sum.H.xy += gx.y, sum.H.xz += gx.z;
  sum.H.yx += gy.x, sum.H.yy += gy.y, sum.H.yz += gy.z;
  sum.H.zx += gz.x, sum.H.zy += gz.y, sum.H.zz += gz.z;
  // ([r] H'ᵀ)_ij = (r × H'_j)_i and ([r] Hᵀ)ᵀ_ij = (r × H_i)_j
  sum.I.xx += mul_add(r.y, gx.z + hx.z, neg_mul_add(r.z, gx.y + hx.y, a.I.xx));
  sum.I.yy += mul_add(r.z, gy.x + hy.x, neg_mul_add(r.x, gy.z + hy.z, a.I.yy));
  sum.I.zz += mul_add(r.x, gz.y + hz.y, neg_mul_add(r.y, gz.x + hz.x, a.I.zz));
  sum.I.xy += mul_add(r.y, gy.z, neg_mul_add(r.z, gy.y, mul_add(r.z, hx.x, neg_mul_add(r.x, hx.z, a.I.xy))));
  sum.I.xz += mul_add(r.y, gz.z, neg_mul_add(r.z, gz.y, mul_add(r.x, hx.y, neg_mul_add(r.y, hx.x, a.I.xz))));
  sum.I.yz += mul_add(r.z, gz.x, neg_mul_add(r.x, gz.z, mul_add(r.x, hy.y, neg_mul_add(r.y, hy.x, a.I.yz))));
}

/// Rigid transform: p_outer = R p_inner + p.
template <class T>
struct Transform {
  Mat3<T> R;
  Vec3<T> p;
};

template <class T>
TARSUS_INLINE Transform<T> operator*(const Transform<T>& a, const Transform<T>& b) {
  return {a.R * b.R, a.R * b.p + a.p};
}
template <class T>
TARSUS_INLINE Transform<T> inverse(const Transform<T>& a) {
  return {transpose(a.R), -transpose_mul(a.R, a.p)};
}
using Transformd = Transform<double>;

}  // namespace TARSUS_ISA
}  // namespace tarsus
