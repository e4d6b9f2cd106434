// Whether numbers are finite, or within a bound: one vectorised sweep, the common case of every check of a state.
#pragma once

#include <array>
#include <cmath>
#include <limits>
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

/// All |x| <= limit; a nan is not.
template <class R>
bool within(std::span<const R> values, R limit) {
  const auto beyond = [limit](R count, R x) { return count + (std::abs(x) <= limit ? R(0) : R(1)); };
  R sum = 0;
  for (const R count : folded(values, beyond)) sum += count;
  return sum == 0;
}

template <class R>
bool finite(std::span<const R> values) {
  return within<R>(values, std::numeric_limits<R>::max());
}

}  // namespace tarsus
