// Checks whether numbers are finite or within a bound.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "tarsus/dynamics/lanes.hpp"

namespace tarsus {

/// Whether |x| <= limit for all x; false for nan.
template <class R>
bool within(std::span<const R> values, R limit) {
  constexpr std::size_t kFew = 16;  // faster than calling a kernel
  if (values.size() > kFew) return all_within(values, limit);
  return std::all_of(values.begin(), values.end(), [&](R x) { return std::abs(x) <= limit; });
}

template <class R>
bool finite(std::span<const R> values) {
  return within<R>(values, std::numeric_limits<R>::max());
}

}  // namespace tarsus
