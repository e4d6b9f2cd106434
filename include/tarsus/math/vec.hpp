// Small fixed-size algebra over any Scalar: Vec3, Mat3 (row major), Sym3 (six numbers), Quat (w, x, y, z).
#pragma once

#include <limits>

#include "tarsus/math/trig.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
struct Vec3 {
  T x, y, z;

  T& operator[](int i) { return (&x)[i]; }
  const T& operator[](int i) const { return (&x)[i]; }
  TARSUS_INLINE Vec3& operator+=(const Vec3& b) { return x += b.x, y += b.y, z += b.z, *this; }
  TARSUS_INLINE Vec3& operator-=(const Vec3& b) { return x -= b.x, y -= b.y, z -= b.z, *this; }
};

template <class T>
TARSUS_INLINE Vec3<T> zero3() {
  return {T(Real<T>(0)), T(Real<T>(0)), T(Real<T>(0))};
}
template <class T>
TARSUS_INLINE Vec3<T> operator+(const Vec3<T>& a, const Vec3<T>& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class T>
TARSUS_INLINE Vec3<T> operator-(const Vec3<T>& a, const Vec3<T>& b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
template <class T>
TARSUS_INLINE Vec3<T> operator-(const Vec3<T>& a) {
  return {-a.x, -a.y, -a.z};
}
template <class T>
TARSUS_INLINE Vec3<T> operator*(const Vec3<T>& a, std::type_identity_t<T> s) {
  return {a.x * s, a.y * s, a.z * s};
}
template <class T>
TARSUS_INLINE Vec3<T> operator*(std::type_identity_t<T> s, const Vec3<T>& a) {
  return a * s;
}
template <class T>
TARSUS_INLINE Vec3<T> select(Mask<T> mask, const Vec3<T>& a, const Vec3<T>& b) {
  return {select(mask, a.x, b.x), select(mask, a.y, b.y), select(mask, a.z, b.z)};
}
/// a s + b.
template <class T>
TARSUS_INLINE Vec3<T> mul_add(const Vec3<T>& a, std::type_identity_t<T> s, const Vec3<T>& b) {
  return {mul_add(a.x, s, b.x), mul_add(a.y, s, b.y), mul_add(a.z, s, b.z)};
}
template <class T>
TARSUS_INLINE T dot(const Vec3<T>& a, const Vec3<T>& b) {
  return mul_add(a.x, b.x, mul_add(a.y, b.y, a.z * b.z));
}
template <class T>
TARSUS_INLINE Vec3<T> cross(const Vec3<T>& a, const Vec3<T>& b) {
  return {neg_mul_add(a.z, b.y, a.y * b.z), neg_mul_add(a.x, b.z, a.z * b.x), neg_mul_add(a.y, b.x, a.x * b.y)};
}
/// a x b + c.
template <class T>
TARSUS_INLINE Vec3<T> cross_add(const Vec3<T>& a, const Vec3<T>& b, const Vec3<T>& c) {
  return {mul_add(a.y, b.z, neg_mul_add(a.z, b.y, c.x)), mul_add(a.z, b.x, neg_mul_add(a.x, b.z, c.y)),
          mul_add(a.x, b.y, neg_mul_add(a.y, b.x, c.z))};
}
template <class T>
TARSUS_INLINE T norm(const Vec3<T>& a) {
  return square_root(dot(a, a));
}

/// 3 x 3, row major.
template <class T>
struct Mat3 {
  T xx, xy, xz, yx, yy, yz, zx, zy, zz;

  T& operator()(int i, int j) { return (&xx)[3 * i + j]; }
  const T& operator()(int i, int j) const { return (&xx)[3 * i + j]; }
  TARSUS_INLINE Vec3<T> row_x() const { return {xx, xy, xz}; }
  TARSUS_INLINE Vec3<T> row_y() const { return {yx, yy, yz}; }
  TARSUS_INLINE Vec3<T> row_z() const { return {zx, zy, zz}; }
  TARSUS_INLINE Vec3<T> column_x() const { return {xx, yx, zx}; }
  TARSUS_INLINE Vec3<T> column_y() const { return {xy, yy, zy}; }
  TARSUS_INLINE Vec3<T> column_z() const { return {xz, yz, zz}; }
};

template <class T>
TARSUS_INLINE Mat3<T> from_rows(const Vec3<T>& x, const Vec3<T>& y, const Vec3<T>& z) {
  return {x.x, x.y, x.z, y.x, y.y, y.z, z.x, z.y, z.z};
}
template <class T>
TARSUS_INLINE Mat3<T> from_columns(const Vec3<T>& x, const Vec3<T>& y, const Vec3<T>& z) {
  return {x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z};
}
template <class T>
TARSUS_INLINE Mat3<T> identity3() {
  const T o = T(Real<T>(0)), i = T(Real<T>(1));
  return {i, o, o, o, i, o, o, o, i};
}
template <class T>
TARSUS_INLINE Mat3<T> transpose(const Mat3<T>& m) {
  return {m.xx, m.yx, m.zx, m.xy, m.yy, m.zy, m.xz, m.yz, m.zz};
}
template <class T>
TARSUS_INLINE Mat3<T> operator+(const Mat3<T>& a, const Mat3<T>& b) {
  return {a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yx + b.yx, a.yy + b.yy,
          a.yz + b.yz, a.zx + b.zx, a.zy + b.zy, a.zz + b.zz};
}
template <class T>
TARSUS_INLINE Mat3<T> operator-(const Mat3<T>& a, const Mat3<T>& b) {
  return {a.xx - b.xx, a.xy - b.xy, a.xz - b.xz, a.yx - b.yx, a.yy - b.yy,
          a.yz - b.yz, a.zx - b.zx, a.zy - b.zy, a.zz - b.zz};
}
template <class T>
TARSUS_INLINE Vec3<T> operator*(const Mat3<T>& m, const Vec3<T>& v) {
  return {dot(m.row_x(), v), dot(m.row_y(), v), dot(m.row_z(), v)};
}
/// mᵀ v.
template <class T>
TARSUS_INLINE Vec3<T> transpose_mul(const Mat3<T>& m, const Vec3<T>& v) {
  return {dot(m.column_x(), v), dot(m.column_y(), v), dot(m.column_z(), v)};
}
template <class T>
TARSUS_INLINE Mat3<T> operator*(const Mat3<T>& a, const Mat3<T>& b) {
  return from_columns(a * b.column_x(), a * b.column_y(), a * b.column_z());
}
template <class T>
TARSUS_INLINE Mat3<T> outer(const Vec3<T>& a, const Vec3<T>& b) {
  return from_rows(b * a.x, b * a.y, b * a.z);
}

/// Symmetric 3 x 3.
template <class T>
struct Sym3 {
  T xx, xy, xz, yy, yz, zz;

  TARSUS_INLINE Sym3& operator+=(const Sym3& b) {
    return xx += b.xx, xy += b.xy, xz += b.xz, yy += b.yy, yz += b.yz, zz += b.zz, *this;
  }
  TARSUS_INLINE Vec3<T> column_x() const { return {xx, xy, xz}; }
  TARSUS_INLINE Vec3<T> column_y() const { return {xy, yy, yz}; }
  TARSUS_INLINE Vec3<T> column_z() const { return {xz, yz, zz}; }
  TARSUS_INLINE Mat3<T> full() const { return {xx, xy, xz, xy, yy, yz, xz, yz, zz}; }
};

template <class T>
TARSUS_INLINE Sym3<T> diagonal3(T xx, T yy, T zz) {
  const T o = T(Real<T>(0));
  return {xx, o, o, yy, o, zz};
}
template <class T>
TARSUS_INLINE Sym3<T> operator+(const Sym3<T>& a, const Sym3<T>& b) {
  return {a.xx + b.xx, a.xy + b.xy, a.xz + b.xz, a.yy + b.yy, a.yz + b.yz, a.zz + b.zz};
}
template <class T>
TARSUS_INLINE Sym3<T> operator-(const Sym3<T>& a, const Sym3<T>& b) {
  return {a.xx - b.xx, a.xy - b.xy, a.xz - b.xz, a.yy - b.yy, a.yz - b.yz, a.zz - b.zz};
}
template <class T>
TARSUS_INLINE Sym3<T> operator*(const Sym3<T>& a, std::type_identity_t<T> s) {
  return {a.xx * s, a.xy * s, a.xz * s, a.yy * s, a.yz * s, a.zz * s};
}
template <class T>
TARSUS_INLINE Vec3<T> operator*(const Sym3<T>& s, const Vec3<T>& v) {
  return {dot(s.column_x(), v), dot(s.column_y(), v), dot(s.column_z(), v)};
}
/// r s rᵀ: transforms a symmetric tensor from a frame to the axes into which r rotates that frame.
template <class T>
TARSUS_INLINE Sym3<T> rotate(const Mat3<T>& r, const Sym3<T>& s) {
  const Vec3<T> tx = s * r.row_x(), ty = s * r.row_y(), tz = s * r.row_z();
  return {dot(r.row_x(), tx), dot(r.row_x(), ty), dot(r.row_x(), tz),
          dot(r.row_y(), ty), dot(r.row_y(), tz), dot(r.row_z(), tz)};
}
/// s - a bᵀ where the caller knows a bᵀ to be symmetric.
template <class T>
TARSUS_INLINE Sym3<T> minus_outer(const Sym3<T>& s, const Vec3<T>& a, const Vec3<T>& b) {
  return {neg_mul_add(a.x, b.x, s.xx), neg_mul_add(a.x, b.y, s.xy), neg_mul_add(a.x, b.z, s.xz),
          neg_mul_add(a.y, b.y, s.yy), neg_mul_add(a.y, b.z, s.yz), neg_mul_add(a.z, b.z, s.zz)};
}
template <class T>
TARSUS_INLINE Mat3<T> minus_outer(const Mat3<T>& m, const Vec3<T>& a, const Vec3<T>& b) {
  return from_rows(mul_add(b, -a.x, m.row_x()), mul_add(b, -a.y, m.row_y()), mul_add(b, -a.z, m.row_z()));
}
/// Scale factor that brings a positive definite matrix to magnitude 1 before inversion. In float the determinant of
/// moments of 1e-13 kg m² would underflow. The factor is a power of two, so it changes no other rounding.
template <class T>
TARSUS_INLINE T inverse_scale(T trace) {
  return sizeof(Real<T>) == 8 ? T(Real<T>(1)) : power_to_unit(trace);
}
/// Inverse by cofactors; s must be positive definite.
template <class T>
TARSUS_INLINE Sym3<T> inverse(const Sym3<T>& of) {
  const T scale = inverse_scale(of.xx + of.yy + of.zz);
  const Sym3<T> s = of * scale;
  const T xx = neg_mul_add(s.yz, s.yz, s.yy * s.zz), xy = neg_mul_add(s.xy, s.zz, s.xz * s.yz),
          xz = neg_mul_add(s.xz, s.yy, s.xy * s.yz);
  const T yy = neg_mul_add(s.xz, s.xz, s.xx * s.zz), yz = neg_mul_add(s.xx, s.yz, s.xy * s.xz),
          zz = neg_mul_add(s.xy, s.xy, s.xx * s.yy);
  const T det = mul_add(s.xx, xx, mul_add(s.xy, xy, s.xz * xz));
  return Sym3<T>{xx, xy, xz, yy, yz, zz} * (scale / det);
}
/// Inverse by cofactors: its columns are those of the adjugate. m must be invertible, with a diagonal of its magnitude.
template <class T>
TARSUS_INLINE Mat3<T> inverse(const Mat3<T>& m) {
  const T size = inverse_scale(absolute(m.xx) + absolute(m.yy) + absolute(m.zz));
  const Vec3<T> rx = m.row_x() * size, ry = m.row_y() * size, rz = m.row_z() * size;
  const Vec3<T> x = cross(ry, rz), y = cross(rz, rx), z = cross(rx, ry);
  const T scale = size / dot(rx, x);
  return from_columns(x * scale, y * scale, z * scale);
}

/// Unit quaternion (w, x, y, z), MuJoCo's order.
template <class T>
struct Quat {
  T w, x, y, z;

  TARSUS_INLINE Vec3<T> vec() const { return {x, y, z}; }
};

template <class T>
TARSUS_INLINE Quat<T> operator*(const Quat<T>& a, const Quat<T>& b) {
  return {neg_mul_add(a.z, b.z, neg_mul_add(a.y, b.y, neg_mul_add(a.x, b.x, a.w * b.w))),
          neg_mul_add(a.z, b.y, mul_add(a.y, b.z, mul_add(a.x, b.w, a.w * b.x))),
          neg_mul_add(a.x, b.z, mul_add(a.z, b.x, mul_add(a.y, b.w, a.w * b.y))),
          neg_mul_add(a.y, b.x, mul_add(a.x, b.y, mul_add(a.z, b.w, a.w * b.z)))};
}
template <class T>
TARSUS_INLINE Quat<T> conjugate(const Quat<T>& q) {
  return {q.w, -q.x, -q.y, -q.z};
}
template <class T>
TARSUS_INLINE T square_norm(const Quat<T>& q) {
  return mul_add(q.w, q.w, mul_add(q.x, q.x, mul_add(q.y, q.y, q.z * q.z)));
}
template <class T>
TARSUS_INLINE Quat<T> normalized(const Quat<T>& q) {
  const T s = T(Real<T>(1)) / square_root(square_norm(q));
  return {q.w * s, q.x * s, q.y * s, q.z * s};
}
/// Tolerance within which a squared length counts as that of a unit quaternion, i.e. is 1 up to rounding.
template <class R>
constexpr R kUnitRounding = sizeof(R) == 8 ? R(1e-10) : R(1e-5);
/// Squared length below which a quaternion stands for no rotation, as in MuJoCo.
template <class R>
constexpr R kNoLength = std::numeric_limits<R>::min();
/// A quaternion normalised to unit length; returned unchanged if it already has unit length.
template <class T>
TARSUS_INLINE Quat<T> unit(const Quat<T>& q) {
  using R = Real<T>;
  const T n2 = square_norm(q), one = T(R(1)), zero = T(R(0));
  const Mask<T> is = absolute(n2 - one) <= T(kUnitRounding<R>);
  if (__builtin_expect(all_lanes(is), 1)) return q;
  const Mask<T> none = n2 < T(kNoLength<R>);
  const T s = select(is, one, select(none, zero, one / square_root(select(none, one, n2))));
  return {select(none, one, q.w * s), q.x * s, q.y * s, q.z * s};
}
/// Rotation matrix of a unit quaternion: v_parent = R v_child.
template <class T>
TARSUS_INLINE Mat3<T> rotation(const Quat<T>& q) {
  const T one = T(Real<T>(1)), x2 = q.x + q.x, y2 = q.y + q.y, z2 = q.z + q.z;
  const T wx = q.w * x2, wy = q.w * y2, wz = q.w * z2;
  return {neg_mul_add(q.y, y2, neg_mul_add(q.z, z2, one)), q.x * y2 - wz, mul_add(q.x, z2, wy), mul_add(q.x, y2, wz),
          neg_mul_add(q.x, x2, neg_mul_add(q.z, z2, one)), q.y * z2 - wx, q.x * z2 - wy,        mul_add(q.y, z2, wx),
          neg_mul_add(q.x, x2, neg_mul_add(q.y, y2, one))};
}

using Vec3d = Vec3<double>;
using Mat3d = Mat3<double>;
using Sym3d = Sym3<double>;
using Quatd = Quat<double>;

}  // namespace TARSUS_ISA
}  // namespace tarsus
