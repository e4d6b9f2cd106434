// Layout of the packed rows of a branch-sparse matrix; see branch.inl.
#pragma once

namespace tarsus {

/// Row k is rows[start[k] .. start[k] + depth[k]], the diagonal last. ancestor[start[k] + j] is the DoF of its j-th
/// number.
struct BranchView {
  int n;
  const int* start;     ///< [n + 1]
  const int* depth;     ///< [n] DoFs between DoF k and the world
  const int* ancestor;  ///< [start[n]]; the last of row k is k
};

}  // namespace tarsus
