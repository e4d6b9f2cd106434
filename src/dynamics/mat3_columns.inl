// 3 × 3 matrices of one world in three registers, one per column. The operations round like those of Mat3.
#pragma once

#include "tarsus/math/gather.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Three numbers, and a fourth without meaning.
template <class P>
struct Column {
  P at;
};
/// The columns; each has a fourth number.
template <class P>
struct Mat3Columns {
  P x, y, z;
};

/// Storage of a scalar's matrices for many products: in columns, if four numbers fill a register.
template <class T>
struct ProductMat3Of {
  using type = Mat3<T>;
};
#if defined(__AVX2__)
template <>
struct ProductMat3Of<double> {
  using type = Mat3Columns<Pack<double, 4>>;
};
template <>
struct ProductMat3Of<float> {
  using type = Mat3Columns<Pack<float, 4>>;
};
#endif
template <class T>
using ProductMat3 = typename ProductMat3Of<T>::type;

template <class T>
TARSUS_INLINE const Vec3<T>& three(const Vec3<T>& a) {
  return a;
}
template <class P>
TARSUS_INLINE Vec3<Real<P>> three(const Column<P>& a) {
  return {a.at[0], a.at[1], a.at[2]};
}
template <class P>
TARSUS_INLINE P pack_of(Real<P> x, Real<P> y, Real<P> z) {
  return P(typename P::Vector{x, y, z, Real<P>(0)});
}

/// Conversions to Mat3 and to the operand type of products.
template <class T>
TARSUS_INLINE const Mat3<T>& full(const Mat3<T>& m) {
  return m;
}
template <class P>
TARSUS_INLINE Mat3<Real<P>> full(const Mat3Columns<P>& m) {
  return {m.x[0], m.y[0], m.z[0], m.x[1], m.y[1], m.z[1], m.x[2], m.y[2], m.z[2]};
}
template <class T>
TARSUS_INLINE ProductMat3<T> for_products(const Mat3<T>& m) {
  if constexpr (std::is_same_v<ProductMat3<T>, Mat3<T>>) {
    return m;
  } else {
    using P = typename RecordPack<T>::type;
    return {pack_of<P>(m.xx, m.yx, m.zx), pack_of<P>(m.xy, m.yy, m.zy), pack_of<P>(m.xz, m.yz, m.zz)};
  }
}

template <class P>
TARSUS_INLINE Column<P> operator+(const Column<P>& a, const Column<P>& b) {
  return {a.at + b.at};
}
template <class P>
TARSUS_INLINE Column<P> operator*(const Column<P>& a, std::type_identity_t<Real<P>> s) {
  return {a.at * P(s)};
}
template <class P>
TARSUS_INLINE Mat3Columns<P> operator+(const Mat3Columns<P>& a, const Mat3Columns<P>& b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
template <class P>
TARSUS_INLINE Column<P> operator*(const Mat3Columns<P>& m, const Vec3<Real<P>>& v) {
  return {mul_add(m.x, P(v.x), mul_add(m.y, P(v.y), m.z * P(v.z)))};
}
template <class P>
TARSUS_INLINE Mat3Columns<P> transpose(const Mat3Columns<P>& m) {
  P x = m.x, y = m.y, z = m.z, rest = m.z;
  transpose(x, y, z, rest);
  return {x, y, z};
}
template <class P>
TARSUS_INLINE Vec3<Real<P>> transpose_mul(const Mat3Columns<P>& m, const Vec3<Real<P>>& v) {
  return three(transpose(m) * v);
}
template <class P>
TARSUS_INLINE Mat3Columns<P> minus_outer(const Mat3Columns<P>& m, const Column<P>& a, const Vec3<Real<P>>& b) {
  return {mul_add(P(b.x), -a.at, m.x), mul_add(P(b.y), -a.at, m.y), mul_add(P(b.z), -a.at, m.z)};
}
/// A + B [r]: the row b of B becomes b × r.
template <class P>
TARSUS_INLINE Mat3Columns<P> add_times_cross(const Mat3Columns<P>& A, const Mat3Columns<P>& B, const Vec3<Real<P>>& r) {
  const P x(r.x), y(r.y), z(r.z);
  return {mul_add(B.y, z, neg_mul_add(B.z, y, A.x)), mul_add(B.z, x, neg_mul_add(B.x, z, A.y)),
          mul_add(B.x, y, neg_mul_add(B.y, x, A.z))};
}
/// A + [r] B.
template <class P>
TARSUS_INLINE Mat3Columns<P> add_cross_times(const Mat3Columns<P>& A, const Vec3<Real<P>>& r, const Mat3Columns<P>& B) {
  const P next = pack_of<P>(r.y, r.z, r.x), last = pack_of<P>(-r.z, -r.x, -r.y);
  const auto column = [&](const P& a, const P& b) {
    const P zxy(__builtin_shufflevector(b.value, b.value, 2, 0, 1, 3)),
        yzx(__builtin_shufflevector(b.value, b.value, 1, 2, 0, 3));
    return mul_add(zxy, next, mul_add(yzx, last, a));
  };
  return {column(A.x, B.x), column(A.y, B.y), column(A.z, B.z)};
}
template <class P>
TARSUS_INLINE Real<P> square_sum(const Mat3Columns<P>& A) {
  const P rows = mul_add(A.x, A.x, mul_add(A.y, A.y, A.z * A.z));
  return rows[0] + rows[1] + rows[2];
}
template <class T>
TARSUS_INLINE T square_sum(const Mat3<T>& A) {
  return dot(A.row_x(), A.row_x()) + dot(A.row_y(), A.row_y()) + dot(A.row_z(), A.row_z());
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
