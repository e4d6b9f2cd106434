// The branch-induced sparse factor LᵀL = H of a tree's mass matrix, in packed rows.  [Featherstone 2008, section 6.5,
// table 6.3]
//
// H(k, j) is nonzero only if DoF j is an ancestor of DoF k or the reverse. Row k therefore holds depth[k] numbers for
// its ancestors, from the root, then its diagonal. The ancestors of an ancestor are the beginning of the same list. The
// elimination's update of row j is thus one contiguous axpy over the first depth[j] + 1 numbers of row k, and no n²
// array is needed.
#pragma once

#include "baselines/branch_view.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// y[0..n) += a x.
template <class T>
TARSUS_INLINE void axpy(int n, T a, const T* __restrict x, T* __restrict y) {
  for (int i = 0; i < n; ++i) y[i] = mul_add(a, x[i], y[i]);
}

/// Packed rows of the mass matrix without armature: CRBA that writes only the nonzeros, O(nlink depth).
template <class T>
void crba_rows_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const BranchView& tree, const T* qpos,
                      T* rows) {
  for (int i = 0; i < m.nlink; ++i) {
    joint_pose(m.link[i], qpos, state, state[i]);
    state[i].Ic = link_inertia(m, i, state[i].R);
  }
  const T zero = T(Real<T>(0));
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    for (int d = 0; d < qvel_count(link.joint); ++d) {
      T unit[6] = {zero, zero, zero, zero, zero, zero};
      unit[d] = T(Real<T>(1));
      Force<T> F = state[i].Ic * joint_motion(link, state[i].R, unit);
      T* row = rows + tree.start[link.qvel + d];
      for (int j = i;;) {
        const LinkConstants<Real<T>>& below = m.link[j];
        const int n = qvel_count(below.joint), first = below.depth - n;
        T share[6];
        joint_force(below, state[j].R, F, share);
        for (int k = 0; k < (j == i ? d + 1 : n); ++k) row[first + k] = share[k];
        if (below.parent < 0) break;
        F = shift_back(F, state[j].r);
        j = below.parent;
      }
    }
    if (link.parent >= 0) state[link.parent].Ic = state[link.parent].Ic + shift_back(state[i].Ic, state[i].r);
  }
}

/// Replaces H by L. A row's diagonal becomes 1 / L(k, k). O(n d²).
template <class T>
void branch_factor_kernel(const BranchView& tree, T* rows) {
  const T one = T(Real<T>(1));
  for (int k = tree.n - 1; k >= 0; --k) {
    T* row = rows + tree.start[k];
    const int depth = tree.depth[k];
    const T inverse = one / square_root(row[depth]);
    row[depth] = inverse;
    for (int j = 0; j < depth; ++j) row[j] = row[j] * inverse;
    const int* ancestor = tree.ancestor + tree.start[k];
    for (int j = depth - 1; j >= 0; --j) axpy(j + 1, -row[j], row, rows + tree.start[ancestor[j]]);
  }
}

/// x becomes H⁻¹ x: Lᵀ z = x from the leaves, L x = z from the root. O(n d).
template <class T>
void branch_solve_kernel(const BranchView& tree, const T* rows, T* x) {
  for (int k = tree.n - 1; k >= 0; --k) {
    const T* row = rows + tree.start[k];
    const int* ancestor = tree.ancestor + tree.start[k];
    const int depth = tree.depth[k];
    x[k] = x[k] * row[depth];
    for (int j = 0; j < depth; ++j) x[ancestor[j]] = neg_mul_add(row[j], x[k], x[ancestor[j]]);
  }
  for (int k = 0; k < tree.n; ++k) {
    const T* row = rows + tree.start[k];
    const int* ancestor = tree.ancestor + tree.start[k];
    const int depth = tree.depth[k];
    T sum = x[k];
    for (int j = 0; j < depth; ++j) sum = neg_mul_add(row[j], x[ancestor[j]], sum);
    x[k] = sum * row[depth];
  }
}

/// y = H x from packed rows of H. O(n d).
template <class T>
void branch_multiply_kernel(const BranchView& tree, const T* rows, const T* x, T* y) {
  for (int k = 0; k < tree.n; ++k) {
    const T* row = rows + tree.start[k];
    const int* ancestor = tree.ancestor + tree.start[k];
    const int depth = tree.depth[k];
    T sum = row[depth] * x[k];
    for (int j = 0; j < depth; ++j) {
      sum = mul_add(row[j], x[ancestor[j]], sum);
      y[ancestor[j]] = mul_add(row[j], x[k], y[ancestor[j]]);  // set before: ancestors have smaller indices
    }
    y[k] = sum;
  }
}

/// The dense lower triangle (row major, [n][n]) of packed rows, zeros included.
template <class T>
void branch_expand_kernel(const BranchView& tree, const T* rows, T* dense) {
  for (int k = 0; k < tree.n; ++k) {
    T* out = dense + std::size_t(k) * tree.n;
    for (int j = 0; j <= k; ++j) out[j] = T(Real<T>(0));
    for (int j = 0; j < tree.depth[k]; ++j) out[tree.ancestor[tree.start[k] + j]] = rows[tree.start[k] + j];
    out[k] = rows[tree.start[k] + tree.depth[k]];
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
