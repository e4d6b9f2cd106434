// Transposes square blocks of numbers held in packs, and converts rows of numbers, one per world, to lanes and back.
#pragma once

#include "tarsus/math/row_pack.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Exchanges lanes between two packs: the lanes with bit kBit of the first swap places with the lanes without it of the
/// second.
template <int kBit, class P, std::size_t... kLane>
TARSUS_INLINE void exchange_lanes(P& a, P& b, std::index_sequence<kLane...>) {
  constexpr int n = int(sizeof...(kLane));
  const auto low =
      __builtin_shufflevector(a.value, b.value, (int(kLane) & kBit ? n + (int(kLane) ^ kBit) : int(kLane))...);
  const auto high =
      __builtin_shufflevector(a.value, b.value, (int(kLane) & kBit ? n + int(kLane) : int(kLane) | kBit)...);
  a = P(low), b = P(high);
}

/// x[i][l] becomes x[l][i], for as many packs as a pack has lanes; does nothing for a single number.
template <class P, int kBit = kWidth<P> / 2>
TARSUS_INLINE void transpose_packs(P* x) {
  if constexpr (kBit > 0) {
    for (int i = 0; i < kWidth<P>; ++i) {
      if (!(i & kBit)) exchange_lanes<kBit>(x[i], x[i | kBit], std::make_index_sequence<kWidth<P>>());
    }
    transpose_packs<P, kBit / 2>(x);
  }
}

/// rows[lane][i] becomes lane `lane` of out[i], for i < n.
template <class T>
TARSUS_INLINE void rows_to_lanes(const Real<T>* const* rows, int n, T* out) {
  constexpr int kLanes = kWidth<T>;
  const auto square = [&](int first) {
    T x[kLanes];
    for (int l = 0; l < kLanes; ++l) x[l] = load_rows<T>(rows[l] + first);
    transpose_packs(x);
    for (int i = 0; i < kLanes; ++i) out[first + i] = x[i];
  };
  if (n < kLanes) {
    for (int i = 0; i < n; ++i) {
      for (int l = 0; l < kLanes; ++l) reinterpret_cast<Real<T>*>(out + i)[l] = rows[l][i];
    }
    return;
  }
  for (int i = 0; i + kLanes <= n; i += kLanes) square(i);
  if (n % kLanes) square(n - kLanes);  // the last block may overlap the previous one
}

/// Lane `lane` of x[i] becomes rows[lane][i], for i < n; skips lanes whose row is null.
template <class T>
TARSUS_INLINE void lanes_to_rows(const T* x, int n, Real<T>* const* rows) {
  constexpr int kLanes = kWidth<T>;
  const auto square = [&](int first) {
    T y[kLanes];
    for (int i = 0; i < kLanes; ++i) y[i] = x[first + i];
    transpose_packs(y);
    for (int l = 0; l < kLanes; ++l) {
      if (rows[l]) store_rows(rows[l] + first, y[l]);
    }
  };
  if (n < kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      for (int i = 0; i < n && rows[l]; ++i) rows[l][i] = reinterpret_cast<const Real<T>*>(x + i)[l];
    }
    return;
  }
  for (int i = 0; i + kLanes <= n; i += kLanes) square(i);
  if (n % kLanes) square(n - kLanes);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
