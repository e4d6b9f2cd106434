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

/// Factors A and carries column m along. smallest: the least ratio of a pivot to its own diagonal before elimination;
/// not positive, or tiny: the matrix is singular to rounding and what was computed is not to be used.
template <class T, class P>
void ldl_kernel(int m, int ld, T* A, T* inverse, T* smallest) {
  using R = Real<T>;
  const T one = T(R(1));
  T least = one;
  T diagonal[4];
  for (int k = 0; k < m; k += 4) {
    const int n = m - k < 4 ? m - k : 4;
    const T* pivot[4] = {A, A, A, A};
    for (int p = 0; p < n; ++p) {
      T* row = A + (k + p) * ld;
      for (int s = 0; s < p; ++s) {
        const T c = pivot[s][k + p] * inverse[k + s];
        eliminate<T, P, 1>(pivot + s, &c, row, k + p, m + 1);
      }
      pivot[p] = row;
      const T d = row[k + p];
      inverse[k + p] = one / d;
      diagonal[p] = d;
    }
    for (int p = 0; p < n; ++p) least = minimum(least, diagonal[p] * smallest[k + p]);
    for (int i = k + n; i < m; ++i) {
      T c[4];
      for (int p = 0; p < n; ++p) c[p] = pivot[p][i] * inverse[k + p];
      if (n == 4)
        eliminate<T, P, 4>(pivot, c, A + i * ld, i, m + 1);
      else
        for (int p = 0; p < n; ++p) eliminate<T, P, 1>(pivot + p, c + p, A + i * ld, i, m + 1);
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
