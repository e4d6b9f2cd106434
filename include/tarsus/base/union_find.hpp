// Disjoint sets of 0, 1, …, n - 1.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

namespace tarsus {

class UnionFind {
 public:
  explicit UnionFind(int n = 0) { reset(n); }
  /// Puts each element in a set of its own.
  void reset(int n) {
    parent_.resize(static_cast<std::size_t>(n));
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  /// The smallest element of i's set.
  int find(int i) {
    int* const parent = parent_.data();
    while (parent[i] != i) i = parent[i] = parent[parent[i]];
    return i;
  }
  void join(int a, int b) {
    a = find(a), b = find(b);
    parent_[static_cast<std::size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int> parent_;
};

}  // namespace tarsus
