// Whether numbers are finite, or within a bound: the common case of every check of a state, as many at once as any
// processor's registers hold.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tarsus/math/row_pack.hpp"

namespace tarsus {

/// All |x| <= limit; a nan is not.
template <class R>
bool within(std::span<const R> values, R limit) {
  using P = Pack<R, 16 / int(sizeof(R))>;
  constexpr std::size_t kPack = kWidth<P>;
  const std::size_t n = values.size();
  if (n < kPack) return std::all_of(values.begin(), values.end(), [&](R x) { return std::abs(x) <= limit; });
  const R* const x = values.data();
  const P most = P(limit);
  const auto block = [&](std::size_t i) { return absolute(load_rows<P>(x + i)) <= most; };
  auto even = block(n - kPack), odd = even;  // the last ones, which may be seen twice
  std::size_t i = 0;
  for (; i + 2 * kPack <= n; i += 2 * kPack) even = even & block(i), odd = odd & block(i + kPack);
  if (i + kPack <= n) even = even & block(i);
  return all_lanes(even & odd);
}

template <class R>
bool finite(std::span<const R> values) {
  return within<R>(values, std::numeric_limits<R>::max());
}

}  // namespace tarsus
