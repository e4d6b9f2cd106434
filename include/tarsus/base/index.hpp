// Indices. Counts are int in Tarsus, while the standard library's containers use std::size_t.
#pragma once

#include <cstddef>
#include <string_view>

namespace tarsus {

inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// The smallest multiple of `to` that is at least n.
constexpr int padded(int n, int to) { return (n + to - 1) / to * to; }

/// Index of the first item of that name, -1 if there is none.
template <class Items>
int index_of(const Items& items, std::string_view name) {
  const int count = static_cast<int>(items.size());
  for (int i = 0; i < count; ++i) {
    if (items[i].name == name) return i;
  }
  return -1;
}

}  // namespace tarsus
