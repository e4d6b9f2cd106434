// Indices: counts are int here, the standard library's containers ask for std::size_t.
#pragma once

#include <cstddef>
#include <string_view>

namespace tarsus {

inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The multiple of `to` that n fits in.
constexpr int padded(int n, int to) { return (n + to - 1) / to * to; }

/// Index of the item of that name; -1: none has it.
template <class Items>
int index_of(const Items& items, std::string_view name) {
  const int count = static_cast<int>(items.size());
  for (int i = 0; i < count; ++i) {
    if (items[i].name == name) return i;
  }
  return -1;
}

}  // namespace tarsus
