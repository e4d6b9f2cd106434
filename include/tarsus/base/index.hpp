// Indices: counts are int here, the standard library's containers ask for std::size_t.
#pragma once

#include <cstddef>

namespace tarsus {

inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The multiple of `to` that n fits in.
constexpr int padded(int n, int to) { return (n + to - 1) / to * to; }

}  // namespace tarsus
