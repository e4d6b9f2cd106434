// A symmetric positive definite system by LDLᵀ without pivoting, its right side carried along as one more column.
//
// A is [m][ld], the upper triangle row by row, column m the right side; ld >= m + 1 + a pack. Row k is left as d_k l_k:
// unscaled, with 1 / d_k beside. Four pivots are eliminated together, so that the rows below are loaded and stored once
// for four.
//
// T: one system's number or a pack of systems; P: a pack of neighbours in a row, T itself for a pack of systems.
#pragma once

#include "tarsus/math/scalar.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// row[j] -= Σ_p c[p] pivot_p[j] for j in [from, to), in whole packs: the columns left of `from` that this touches are
/// never read.
template <class T, class P, int kN>
TARSUS_INLINE void eliminate(const T* const* pivot, const T* c, T* row, int from, int to) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  P factor[kN];
  for (int p = 0; p < kN; ++p) factor[p] = P(-c[p]);
  for (int j = from / kRows * kRows; j < to; j += kRows) {
    P sum, x;
    __builtin_memcpy(&sum, row + j, sizeof(P));
    for (int p = 0; p < kN; ++p) {
      __builtin_memcpy(&x, pivot[p] + j, sizeof(P));
      sum = mul_add(factor[p], x, sum);
    }
    __builtin_memcpy(row + j, &sum, sizeof(P));
  }
}

/// The 4 x 4 corner of a panel by LDLᵀ in registers, then the panel's rows, each minus what the rows above it explain, in one pass.
template <class T, class P>
TARSUS_INLINE void factor_panel(int k, int m, int ld, T* A, T* inverse, T* diagonal) {
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
  diagonal[0] = r0[k], diagonal[1] = d1, diagonal[2] = d2, diagonal[3] = d3;
  const P pc1 = P(-c1), pc2 = P(-c2), pc3 = P(-c3), pe2 = P(-e2), pe3 = P(-e3), pf3 = P(-f3);
  for (int j = (k + 1) / kRows * kRows; j < m + 1; j += kRows) {
    P x0, x1, x2, x3;
    __builtin_memcpy(&x0, r0 + j, sizeof(P)), __builtin_memcpy(&x1, r1 + j, sizeof(P));
    __builtin_memcpy(&x2, r2 + j, sizeof(P)), __builtin_memcpy(&x3, r3 + j, sizeof(P));
    x1 = mul_add(pc1, x0, x1);
    x2 = mul_add(pe2, x1, mul_add(pc2, x0, x2));
    x3 = mul_add(pf3, x2, mul_add(pe3, x1, mul_add(pc3, x0, x3)));
    __builtin_memcpy(r1 + j, &x1, sizeof(P)), __builtin_memcpy(r2 + j, &x2, sizeof(P)),
        __builtin_memcpy(r3 + j, &x3, sizeof(P));
  }
}

/// Factors A and carries column m along. On entry smallest[k] is 1 / A_kk. smallest[0] leaves as the least ratio of a pivot to its own
/// diagonal before elimination; not positive, or tiny: the matrix is singular to rounding and what was computed is not to be used.
template <class T, class P>
void ldl_kernel(int m, int ld, T* A, T* inverse, T* smallest) {
  T least = T(Real<T>(1)), diagonal[4];
  int k = 0;
  for (; k + 4 <= m; k += 4) {
    factor_panel<T, P>(k, m, ld, A, inverse, diagonal);
    for (int p = 0; p < 4; ++p) least = minimum(least, diagonal[p] * smallest[k + p]);
    const T* pivot[4] = {A + k * ld, A + (k + 1) * ld, A + (k + 2) * ld, A + (k + 3) * ld};
    for (int i = k + 4; i < m; ++i) {
      T c[4];
      for (int p = 0; p < 4; ++p) c[p] = pivot[p][i] * inverse[k + p];
      eliminate<T, P, 4>(pivot, c, A + i * ld, i, m + 1);
    }
  }
  for (; k < m; ++k) {  // the last one to three
    const T* pivot = A + k * ld;
    inverse[k] = T(Real<T>(1)) / pivot[k];
    least = minimum(least, pivot[k] * smallest[k]);
    for (int i = k + 1; i < m; ++i) {
      const T c = pivot[i] * inverse[k];
      eliminate<T, P, 1>(&pivot, &c, A + i * ld, i, m + 1);
    }
  }
  smallest[0] = least;
}

/// Another right side through the same factor: b becomes L⁻¹ b, put in column m for ldl_back_kernel.
template <class T>
void ldl_forward_kernel(int m, int ld, T* A, const T* inverse, T* b) {
  for (int k = 0; k < m; ++k) {
    const T* row = A + k * ld;
    const T c = b[k] * inverse[k];
    for (int i = k + 1; i < m; ++i) b[i] = neg_mul_add(row[i], c, b[i]);
  }
  for (int k = 0; k < m; ++k) A[k * ld + m] = b[k];
}

/// x [m] from what ldl_kernel left.
template <class T>
void ldl_back_kernel(int m, int ld, const T* A, const T* inverse, T* x) {
  for (int k = 0; k < m; ++k) x[k] = A[k * ld + m];
  // The newest x comes last in each sum, so that it alone is waited for.
  for (int k = m - 1; k >= 0; --k) {
    const T* row = A + k * ld;
    T sum0 = x[k], sum1 = T(Real<T>(0)), sum2 = sum1;
    int j = m - 1;
    for (; j - 1 > k + 1; j -= 2) {
      sum1 = neg_mul_add(row[j], x[j], sum1);
      sum2 = neg_mul_add(row[j - 1], x[j - 1], sum2);
    }
    for (; j > k + 1; --j) sum1 = neg_mul_add(row[j], x[j], sum1);
    sum0 = sum0 + (sum1 + sum2);
    if (j > k) sum0 = neg_mul_add(row[j], x[j], sum0);
    x[k] = sum0 * inverse[k];
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
