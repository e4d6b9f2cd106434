// A symmetric positive definite system by LDLᵀ without pivoting. Right sides are further columns. m³/3 operations; the
// caller must test the pivots (least_pivot(), ldl_trust()).
//
// A is [m][ld], the upper triangle row by row, with right sides in the columns up to n - 1; ld >= n + a pack. Row k
// becomes d_k l_k, unscaled, with 1 / d_k in `inverse`; right sides likewise. Four rows at a time are computed from all
// rows above them, in register tiles of four rows and two packs, so that each number of the matrix is stored once. Long
// sums are split so that their operands stay in the cache.
//
// T: one system's number or a pack of systems; P: a pack of neighbours in a row, T itself for a pack of systems.
#pragma once

#include "tarsus/math/row_pack.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

inline constexpr int kLdlCut = 32;  // terms of a partial sum

/// Stride between the factors of two pivots.
template <class T, class P>
inline constexpr int kFactors = sizeof(P) > 4 * sizeof(T) ? int(sizeof(P) / sizeof(T)) : 4;

/// Subtracts from rows k to k + kN - 1 the contribution of the finished rows above, in columns k to n - 1. It works on
/// whole packs; the columns left of k that it overwrites are never read.
template <class T, class P, int kN>
TARSUS_INLINE void explain(int k, int n, int ld, T* A, const T* inverse) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  constexpr int kStep = kFactors<T, P>;
  T c[kStep * kLdlCut];
  for (int first = 0; first < k; first += kLdlCut) {
    const int count = k - first < kLdlCut ? k - first : kLdlCut;
    for (int p = 0; p < count; ++p) {
      const T* pivot = A + (first + p) * ld + k;
      const P factor = P(-inverse[first + p]);
      for (int r = 0; r < kStep; r += kRows) store_rows(c + kStep * p + r, load_rows<P>(pivot + r) * factor);
    }
    T *pivots = A + first * ld, *rows = A + k * ld;
    int j = k / kRows * kRows;
    for (; j + kRows < n; j += 2 * kRows)
      product_tile<T, P, kN, 2>(count, c, kStep, pivots + j, ld, true, rows + j, ld);
    if (j < n) product_tile<T, P, kN, 1>(count, c, kStep, pivots + j, ld, true, rows + j, ld);
  }
}

/// row[j] -= c pivot[j] for j in [from, to), in whole packs.
template <class T, class P>
TARSUS_INLINE void eliminate(const T* pivot, T c, T* row, int from, int to) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const P factor = P(-c);
  for (int j = from / kRows * kRows; j < to; j += kRows)
    store_rows(row + j, mul_add(factor, load_rows<P>(pivot + j), load_rows<P>(row + j)));
}

/// Factors the 4 x 4 corner of a panel by LDLᵀ in registers. Then, in one pass, subtracts from each of the panel's rows
/// the contribution of the panel's rows above it.
template <class T, class P>
TARSUS_INLINE void factor_panel(int k, int n, int ld, T* A, T* inverse) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const T one = T(Real<T>(1));
  T *r0 = A + k * ld, *r1 = r0 + ld, *r2 = r1 + ld, *r3 = r2 + ld;
  const T a01 = r0[k + 1], a02 = r0[k + 2], a03 = r0[k + 3];
  const T i0 = one / r0[k], c1 = a01 * i0, c2 = a02 * i0, c3 = a03 * i0;
  const T d1 = neg_mul_add(c1, a01, r1[k + 1]), a12 = neg_mul_add(c1, a02, r1[k + 2]),
          a13 = neg_mul_add(c1, a03, r1[k + 3]);
  const T i1 = one / d1, e2 = a12 * i1, e3 = a13 * i1;
  const T d2 = neg_mul_add(e2, a12, neg_mul_add(c2, a02, r2[k + 2])),
          a23 = neg_mul_add(e2, a13, neg_mul_add(c2, a03, r2[k + 3]));
  const T i2 = one / d2, f3 = a23 * i2;
  const T d3 = neg_mul_add(f3, a23, neg_mul_add(e3, a13, neg_mul_add(c3, a03, r3[k + 3])));
  inverse[k] = i0, inverse[k + 1] = i1, inverse[k + 2] = i2, inverse[k + 3] = one / d3;
  const P pc1 = P(-c1), pc2 = P(-c2), pc3 = P(-c3), pe2 = P(-e2), pe3 = P(-e3), pf3 = P(-f3);
  for (int j = (k + 1) / kRows * kRows; j < n; j += kRows) {
    const P x0 = load_rows<P>(r0 + j), x1 = mul_add(pc1, x0, load_rows<P>(r1 + j));
    const P x2 = mul_add(pe2, x1, mul_add(pc2, x0, load_rows<P>(r2 + j)));
    const P x3 = mul_add(pf3, x2, mul_add(pe3, x1, mul_add(pc3, x0, load_rows<P>(r3 + j))));
    store_rows(r1 + j, x1), store_rows(r2 + j, x2), store_rows(r3 + j, x3);
  }
}

/// Call before ldl_kernel. Adds sigma to the diagonal, copies b to column m, and sets scale[k] = pivot_scale(A_kk)
/// (tarsus/solver/multipliers.hpp) with `share` of √(A_kk × the largest).
/// @return the least diagonal - `nothing` × the largest: not positive if a row has zero Delassus entry
template <class T, class P>
T ldl_load_kernel(int m, int ld, T* A, const T* sigma, const T* b, Real<T> nothing, Real<T> share, T* scale) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  for (int k = 0; k < m; ++k) {
    const T d = A[k * ld + k] + sigma[k];
    A[k * ld + k] = d, A[k * ld + m] = b[k], scale[k] = d;
  }
  const P infinite = P(std::numeric_limits<Real<T>>::infinity());
  P most = P(Real<T>(0)), fewest = infinite;
  int k = 0;
  for (; k + kRows <= m; k += kRows) {
    const P d = load_rows<P>(scale + k);
    most = maximum(most, d), fewest = minimum(fewest, d);
  }
  T largest = T(Real<T>(0)), least = T(std::numeric_limits<Real<T>>::infinity());
  const T *mosts = reinterpret_cast<const T*>(&most), *fews = reinterpret_cast<const T*>(&fewest);
  for (int r = 0; r < kRows; ++r) largest = maximum(largest, mosts[r]), least = minimum(least, fews[r]);
  for (; k < m; ++k) largest = maximum(largest, scale[k]), least = minimum(least, scale[k]);
  for (k = 0; k < m; k += kRows) {
    const P d = load_rows<P>(scale + k);
    store_rows(scale + k, maximum(d, P(share) * square_root(d * P(largest))));
  }
  return least - largest * T(nothing);
}

/// Factors rows k to k + 3, or to m - 1 if that is less. If several systems alternate step by step, they do not wait
/// for one another's divisions.
template <class T, class P>
TARSUS_INLINE void ldl_step(int k, int m, int n, int ld, T* A, T* inverse) {
  const int left = m - k;
  if (left >= 4) {
    explain<T, P, 4>(k, n, ld, A, inverse);
    factor_panel<T, P>(k, n, ld, A, inverse);
    return;
  }
  if (left == 1) explain<T, P, 1>(k, n, ld, A, inverse);
  if (left == 2) explain<T, P, 2>(k, n, ld, A, inverse);
  if (left == 3) explain<T, P, 3>(k, n, ld, A, inverse);
  for (; k < m; ++k) {
    const T* pivot = A + k * ld;
    inverse[k] = T(Real<T>(1)) / pivot[k];
    for (int i = k + 1; i < m; ++i) eliminate<T, P>(pivot, pivot[i] * inverse[k], A + i * ld, i, n);
  }
}

/// Factors A, with the columns from m to n - 1 as right sides.
template <class T, class P>
void ldl_kernel(int m, int n, int ld, T* A, T* inverse) {
  for (int k = 0; k < m; k += 4) ldl_step<T, P>(k, m, n, ld, A, inverse);
}

/// The least ratio of a pivot to scale[k], its diagonal before elimination. If it is not positive, or tiny, the matrix
/// is singular to rounding and the result must not be used. (ldl_trust() finds further cases.)
template <class T, class P>
T least_pivot(int m, const T* inverse, const T* scale) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const T zero = T(Real<T>(0)), one = T(Real<T>(1));
  P most = P(Real<T>(0)), least = P(Real<T>(1));
  int k = 0;
  for (; k + kRows <= m; k += kRows) {
    const P ratio = load_rows<P>(inverse + k) * load_rows<P>(scale + k);
    most = maximum(most, ratio), least = minimum(least, ratio);
  }
  T high = zero, low = one;
  const T *mosts = reinterpret_cast<const T*>(&most), *leasts = reinterpret_cast<const T*>(&least);
  for (int r = 0; r < kRows; ++r) high = maximum(high, mosts[r]), low = minimum(low, leasts[r]);
  for (; k < m; ++k) high = maximum(high, inverse[k] * scale[k]), low = minimum(low, inverse[k] * scale[k]);
  return select(low > zero, one / maximum(high, one), low);
}

/// xᵀ A x of the solution x: Σ y_k² / d_k, with y the right side after ldl_kernel.
template <class T>
TARSUS_INLINE T ldl_energy(int m, int right, int ld, const T* A, const T* inverse) {
  T energy = T(Real<T>(0));
  for (int k = 0; k < m; ++k) energy = mul_add(A[k * ld + right] * inverse[k], A[k * ld + right], energy);
  return energy;
}

/// Trust in a solution: xᵀ A x - limit Σ scale_k x_k². Small pivots magnify the rounding of later ones, so that a
/// singular matrix need not have a single small pivot. x then lies where A is nearly zero. Unless the result is >= 0,
/// the solution must not be used.
template <class T, class P>
T ldl_trust(int m, int right, int ld, const T* A, const T* inverse, const T* scale, const T* x, Real<T> limit) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  P squares = P(Real<T>(0));
  const T energy = ldl_energy(m, right, ld, A, inverse);
  int k = 0;
  for (; k + kRows <= m; k += kRows) {
    const P size = load_rows<P>(x + k);
    squares = mul_add(load_rows<P>(scale + k) * size, size, squares);
  }
  T square = sum_of_rows<T>(squares);
  for (; k < m; ++k) square = mul_add(scale[k] * x[k], x[k], square);
  return energy - T(limit) * square;
}

/// Another right side: b becomes L⁻¹ b, and is copied to column m for ldl_back_kernel.
template <class T>
void ldl_forward_kernel(int m, int ld, T* A, const T* inverse, T* b) {
  for (int k = 0; k < m; ++k) {
    const T* row = A + k * ld;
    const T c = b[k] * inverse[k];
    for (int i = k + 1; i < m; ++i) b[i] = neg_mul_add(row[i], c, b[i]);
  }
  for (int k = 0; k < m; ++k) A[k * ld + m] = b[k];
}

/// x [m] of the right side in column `right`, from ldl_kernel's factor. Four rows at a time: contributions of older x
/// in packs, those of the newest four one by one, so that only the last one must be waited for.
template <class T, class P>
void ldl_back_kernel(int m, int right, int ld, const T* A, const T* inverse, T* x) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  int k = m;
  for (; k % 4 != 0; --k) {
    const T* row = A + (k - 1) * ld;
    T sum = row[right];
    for (int j = m - 1; j >= k; --j) sum = neg_mul_add(row[j], x[j], sum);
    x[k - 1] = sum * inverse[k - 1];
  }
  for (k -= 4; k >= 0; k -= 4) {
    const T* row = A + k * ld;
    T sum[4];
    const int newest = k + 8 < m ? k + 8 : m;
    int j = newest;
    for (int r = 0; r < 4; ++r) sum[r] = row[r * ld + right];
    if (j + kRows <= m) {
      P packs[4];
      for (int r = 0; r < 4; ++r) packs[r] = P(Real<T>(0));
      for (; j + kRows <= m; j += kRows) {
        const P old = load_rows<P>(x + j);
        for (int r = 0; r < 4; ++r) packs[r] = mul_add(load_rows<P>(row + r * ld + j), old, packs[r]);
      }
      for (int r = 0; r < 4; ++r) sum[r] = sum[r] - sum_of_rows<T>(packs[r]);
    }
    for (; j < m; ++j) {
      for (int r = 0; r < 4; ++r) sum[r] = neg_mul_add(row[r * ld + j], x[j], sum[r]);
    }
    for (j = newest - 1; j >= k + 4; --j) {
      for (int r = 0; r < 4; ++r) sum[r] = neg_mul_add(row[r * ld + j], x[j], sum[r]);
    }
    for (int r = 3; r >= 0; --r) {
      for (int c = 3; c > r; --c) sum[r] = neg_mul_add(row[r * ld + k + c], x[k + c], sum[r]);
      x[k + r] = sum[r] * inverse[k + r];
    }
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
