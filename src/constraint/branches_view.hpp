// Rows of a floating base in groups, one for each branch, as the kernels see them. See branches.inl.
#pragma once

#include "dynamics/delassus_table.hpp"

namespace tarsus {

/// DoFs that two blocks of a group share.
struct GroupOverlap {
  int p, q;        ///< blocks of the group, p <= q
  RowOverlap run;  ///< empty if there are none
  bool add;        ///< not the pair's first run
};

/// Rows that meet no other group's below the root.
template <class R>
struct RowGroupView {
  int nrow = 0;
  int right = 0;  ///< column of A where right sides begin
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
  RowGroupView<R> kept;                     ///< the rows that are left; nrow may be 0
};

/// Where a factor's pivots are no longer to be trusted.
template <class R>
struct PivotLimits {
  R pivot;    ///< least ratio to pivot_scale() of the diagonal, and limit of ldl_trust()
  R share;    ///< as kPivotShare
  R nothing;  ///< least ratio of a diagonal to the largest
};
template <class R>
struct BranchLimits {
  PivotLimits<R> branch, kept;
  R stiffness;  ///< largest ratio of what branches add to the root's inertia to that inertia
};

}  // namespace tarsus
