// Whether numbers are finite, or within a bound: one vectorised sweep, the common case of every check of a state.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace tarsus {

/// Folds all values into eight, side by side.
template <class R, class F>
std::array<R, 8> folded(std::span<const R> values, const F& fold) {
  std::array<R, 8> sum{};
  std::size_t i = 0;
  for (; i + 8 <= values.size(); i += 8) {
    for (std::size_t k = 0; k < 8; ++k) sum[k] = fold(sum[k], values[i + k]);
  }
  for (; i < values.size(); ++i) sum[0] = fold(sum[0], values[i]);
  return sum;
}

template <class R>
bool finite(std::span<const R> values) {
  R sum = 0;
  for (const R x : folded(values, [](R s, R x) { return s + (x - x); })) sum += x;  // nan - nan, inf - inf: nan
  return sum == 0;
}

/// All |x| <= limit; a nan is not.
template <class R>
bool within(std::span<const R> values, R limit) {
  if (!finite<R>(values)) return false;
  for (const R x : folded(values, [](R s, R x) { return std::max(s, std::abs(x)); })) {
    if (!(x <= limit)) return false;
  }
  return true;
}

}  // namespace tarsus
