// A square of numbers as packs, turned about its diagonal.
#pragma once

#include <utility>

#include "tarsus/math/scalar.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Lanes without bit kBit stay in the first of two packs, lanes with it go to the second; each pack's others change
/// places.
template <int kBit, class P, std::size_t... kLane>
TARSUS_INLINE void exchange_lanes(P& a, P& b, std::index_sequence<kLane...>) {
  constexpr int n = int(sizeof...(kLane));
  const auto low =
      __builtin_shufflevector(a.value, b.value, (int(kLane) & kBit ? n + (int(kLane) ^ kBit) : int(kLane))...);
  const auto high =
      __builtin_shufflevector(a.value, b.value, (int(kLane) & kBit ? n + int(kLane) : int(kLane) | kBit)...);
  a = P(low), b = P(high);
}

/// x[i][l] becomes x[l][i], for as many packs as a pack has lanes; nothing for a single number.
template <class P, int kBit = kWidth<P> / 2>
TARSUS_INLINE void transpose_packs(P* x) {
  if constexpr (kBit > 0) {
    for (int i = 0; i < kWidth<P>; ++i) {
      if (!(i & kBit)) exchange_lanes<kBit>(x[i], x[i | kBit], std::make_index_sequence<kWidth<P>>());
    }
    transpose_packs<P, kBit / 2>(x);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
