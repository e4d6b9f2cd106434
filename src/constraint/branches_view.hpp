// The rows of a floating base, grouped by branch, in the form that kernels read. See branches.inl.
#pragma once

#include "dynamics/delassus_table.hpp"

namespace tarsus {

/// DoFs that two blocks of a group share.
struct GroupOverlap {
  int p, q;        ///< blocks of the group, p <= q
  RowOverlap run;  ///< empty if there are none
  bool add;        ///< false: the pair's first run
};

/// Rows that share no DoF below the root with another group.
template <class R>
struct RowGroupView {
  int nrow = 0;
  int right = 0;  ///< first column of A's right sides
  int ld = 0;
  int blocks = 0, overlaps = 0;
  const RowBlockView<R>* block = nullptr;                   ///< [blocks]
  const int* first = nullptr;                               ///< [blocks] its first row in the group
  const int* global = nullptr;                              ///< [blocks] its first row in the set
  const GroupOverlap* overlap = nullptr;                    ///< [overlaps] by p, then q
  R* A = nullptr;                                           ///< [nrow + a pack][ld]
  R *inverse = nullptr, *diagonal = nullptr, *x = nullptr;  ///< [nrow + a pack]
};

template <class R>
struct BranchesView {
  int branches = 0;
  const RowGroupView<R>* branch = nullptr;  ///< [branches] eliminated below the root
  RowGroupView<R> kept;                     ///< the remaining rows; nrow may be 0
};

}  // namespace tarsus
