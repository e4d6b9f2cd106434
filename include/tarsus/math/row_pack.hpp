// Packs of adjacent numbers in memory, for kernels that run along rows: P is a pack of kRows = sizeof(P) / sizeof(T)
// neighbours, or T itself.
#pragma once

#include <utility>

#include "tarsus/math/scalar.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// The compiler's vector type at any address. (A memcpy of a pack may become two half stores, on which the next full
/// load stalls.)
template <class E, int W>
struct UnalignedVectorOf {
  typedef E type __attribute__((vector_size(sizeof(E) * W), aligned(sizeof(E)), may_alias));
};

/// As many adjacent numbers as a register holds, from arrays padded to eight.
template <class T>
struct WidestPackOf {
  using type = T;
};
#if defined(__AVX512F__)
template <>
struct WidestPackOf<double> {
  using type = Pack<double, 8>;
};
#elif defined(__AVX2__)
template <>
struct WidestPackOf<double> {
  using type = Pack<double, 4>;
};
#endif
template <class T>
using WidestPack = typename WidestPackOf<T>::type;

/// Loads a pack from p, which need not be aligned.
template <class P, class T>
TARSUS_INLINE P load_rows(const T* p) {
  if constexpr (sizeof(P) == sizeof(T))
    return *p;
  else
    return P(typename P::Vector(*reinterpret_cast<const typename UnalignedVectorOf<Real<P>, kWidth<P>>::type*>(p)));
}
template <class P, class T>
TARSUS_INLINE void store_rows(T* p, const P& x) {
  if constexpr (sizeof(P) == sizeof(T))
    *p = x;
  else
    *reinterpret_cast<typename UnalignedVectorOf<Real<P>, kWidth<P>>::type*>(p) = x.value;
}

/// out[i][j] (+)= Σ_k A[k][i] B[k][j] for kI rows i and kJ packs of rows j; the sums stay in registers.
template <class T, class P, int kI, int kJ>
TARSUS_INLINE void product_tile(int count, const T* A, int stride_a, const T* B, int stride_b, bool add, T* out,
                                int ld) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  P sum[kI][kJ];
  for (int i = 0; i < kI; ++i) {
    for (int j = 0; j < kJ; ++j) sum[i][j] = add ? load_rows<P>(out + i * ld + j * kRows) : P(Real<T>(0));
  }
  for (int k = 0; k < count; ++k, A += stride_a, B += stride_b) {
    P b[kJ];
    for (int j = 0; j < kJ; ++j) b[j] = load_rows<P>(B + j * kRows);
    for (int i = 0; i < kI; ++i) {
      const P a = P(A[i]);
      for (int j = 0; j < kJ; ++j) sum[i][j] = mul_add(a, b[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kI; ++i) {
    for (int j = 0; j < kJ; ++j) store_rows(out + i * ld + j * kRows, sum[i][j]);
  }
}

/// The sum of a pack of rows, halves first.
template <class T, class P>
TARSUS_INLINE T sum_of_rows(const P& x) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  if constexpr (kRows == 1) {
    return x;
  } else {
    T sum[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = x[r];
    for (int n = kRows / 2; n > 0; n /= 2) {
      for (int r = 0; r < n; ++r) sum[r] = sum[r] + sum[r + n];
    }
    return sum[0];
  }
}

/// Lanes without bit kBit: a's lane plus its partner's. Lanes with it: the same for b.
template <int kBit, class P, std::size_t... kLane>
TARSUS_INLINE P fold_lanes(const P& a, const P& b, std::index_sequence<kLane...>) {
  constexpr int kRows = int(sizeof...(kLane));
  return P(__builtin_shufflevector(a.value, b.value, (int(kLane) & kBit ? kRows + int(kLane) : int(kLane))...)) +
         P(__builtin_shufflevector(a.value, b.value,
                                   (int(kLane) & kBit ? kRows + (int(kLane) ^ kBit) : int(kLane) ^ kBit)...));
}
template <int kBit, class P>
TARSUS_INLINE P sums_of_rows_from(P* x) {
  if constexpr (kBit == 0) {
    return x[0];
  } else {
    for (int i = 0; i < kBit; ++i) x[i] = fold_lanes<kBit>(x[i], x[i + kBit], std::make_index_sequence<kWidth<P>>());
    return sums_of_rows_from<kBit / 2>(x);
  }
}
/// Lane l: sum_of_rows(x[l]), for as many packs as a pack has rows. x is overwritten.
template <class T, class P>
TARSUS_INLINE P sums_of_rows(P* x) {
  if constexpr (sizeof(P) == sizeof(T))
    return x[0];
  else
    return sums_of_rows_from<kWidth<P> / 2>(x);
}

/// Whether |x[i]| <= limit for all i < n; false for nan.
template <class T>
TARSUS_INLINE bool within_kernel(const Real<T>* x, std::size_t n, Real<T> limit) {
  constexpr std::size_t kLanes = kWidth<T>;
  const T zero = T(Real<T>(0));
  T most[2] = {zero, zero}, poison[2] = {zero, zero};  // poison: not a number if some x is nan or infinite
  const auto look = [&](std::size_t i, int k) {
    const T here = load_rows<T>(x + i);
    most[k] = maximum(absolute(here), most[k]), poison[k] = mul_add(here, zero, poison[k]);
  };
  std::size_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) look(i, 0), look(i + kLanes, 1);
  for (; i + kLanes <= n; i += kLanes) look(i, 0);
  for (; i < n; ++i) {
    if (!(absolute(x[i]) <= limit)) return false;
  }
  return all_lanes((maximum(most[0], most[1]) <= T(limit)) & (poison[0] + poison[1] == zero));
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
