// Constrained dynamics of a floating base with rows on several branches: a branch's rows are eliminated before the
// root.
//
// Rows of different branches meet at the root alone. Notation: B = Wᵀ D⁻¹ W over the joints of one branch; F [6][rows],
// the rows' forces at the root; b = Wᵀ D⁻¹ u - y₂ over those joints; D₀, the root's articulated inertia; a, its
// acceleration. Then
//
//   (B + Σ) x = b + Fᵀ a,   D₀ a = u₀ - Σ_branches F x.
//
// A branch whose joints can move all its rows adds F B⁻¹ Fᵀ to the root's inertia and F B⁻¹ b to its bias force. The
// root is then reduced like a link with children. Small factors (6 rows a weld, with 7 more columns) replace one factor
// of all rows. Rows that a branch cannot eliminate (more rows than joints), and those of the last branch, are kept:
// they have the usual Λ⁻¹ of delassus.hpp with the root's new factor. At the end, a gives the branches' x.
//
// The kernel reports failure where B is nearly singular: the joints of a straight leg cannot move it along itself. The
// caller then factors all rows at once.
//
// [Elimination of rows on the inward pass: Vereshchagin 1974; Sathya & Carpentier 2023, arXiv 2310.03676. Here by
// branches, and exact.]
#pragma once

#include "constraint/branches_view.hpp"
#include "constraint/prepare.inl"
#include "dynamics/delassus.inl"
#include "solver/ldl.inl"
#include "tarsus/math/transpose.hpp"
#include "tarsus/solver/multipliers.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Limits below which a factor's pivots are not trusted.
template <class R>
struct PivotLimits {
  R pivot;    ///< least pivot relative to pivot_scale() of the diagonal, and limit of ldl_trust()
  R share;    ///< as kPivotShare
  R nothing;  ///< least diagonal relative to the largest
};
template <class R>
inline constexpr PivotLimits<R> kOfBranch = {sizeof(R) == 8 ? R(1e-9) : R(1e-5), 0, 0};
template <class R>
inline constexpr PivotLimits<R> kOfKept = {kDependent<R>, kPivotShare<R>, kZeroRow<R>};
/// Largest stiffness that the branches may add to the root, relative to its inertia. The rounding error grows with the
/// square of that ratio; up to 100 it equals that of one factorisation of all rows.
template <class R>
inline constexpr R kMostStiffness = 100;

/// Extra columns of a branch's factor: six of Fᵀ, then b, then zeros up to whole packs.
template <class T, class P>
inline constexpr int kCarried = sizeof(P) == sizeof(T) ? 7
                                                       : (sizeof(P) > 8 * sizeof(T) ? int(sizeof(P) / sizeof(T)) : 8);

/// W, DW and the upper triangle of Wᵀ D⁻¹ W.
template <class T, class P>
TARSUS_INLINE void gather_rows(const ModelView<Real<T>>& m, const LinkState<T>* state, const RowGroupView<Real<T>>& g) {
  T* A = reinterpret_cast<T*>(g.A);
  for (int k = 0; k < g.blocks; ++k) sweep_pair_kernel<T, P, true>(m, state, g.block[k]);
  for (int k = 0; k < g.overlaps; ++k) {
    const GroupOverlap& o = g.overlap[k];
    const RowBlockView<Real<T>>&x = g.block[o.p], &y = g.block[o.q];
    gram_kernel<T, P>(o.run.count, x.nrow, reinterpret_cast<const T*>(x.W) + o.run.first * x.stride, x.stride,
                      reinterpret_cast<const T*>(y.DW) + o.run.second * y.stride, y.stride, o.add, o.p == o.q,
                      A + g.first[o.p] * g.ld + g.first[o.q], g.ld);
  }
}

/// Transposes a block's rows of Fᵀ and b from W, stored by DoFs, into the extra columns. @param target -y₂
template <class T, class P>
TARSUS_INLINE void load_carried(const RowBlockView<Real<T>>& block, const T* u, const T* target, T* out, int ld) {
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kColumns = kCarried<T, P>;
  const int below = block.ndof - 6;
  const T *DW = reinterpret_cast<const T*>(block.DW), *F = reinterpret_cast<const T*>(block.W) + below * block.stride;
  for (int row = 0; row < block.nrow; row += kRows) {
    P column[kColumns];
    for (int k = 0; k < 6; ++k) column[k] = load_rows<P>(F + k * block.stride + row);
    P b = load_rows<P>(target + row);
    for (int k = 0; k < below; ++k) b = mul_add(P(u[block.dofs[k]]), load_rows<P>(DW + k * block.stride + row), b);
    column[6] = b;
    for (int k = 7; k < kColumns; ++k) column[k] = P(Real<T>(0));
    for (int c = 0; c < kColumns; c += kRows) {
      if constexpr (kRows > 1) transpose_packs(column + c);
      for (int r = 0; r < kRows; ++r) store_rows(out + (row + r) * ld + c, column[c + r]);
    }
  }
}

/// Rows k and k + 1 of add_branch's upper triangle for packs of worlds, with sums in registers.
template <class T, int k>
TARSUS_INLINE void add_branch_rows(int nrow, int ld, const T* carried, const T* inverse, T* sum) {
  constexpr int kColumns = 7;
  T first[kColumns], second[kColumns];
  for (int j = k; j < kColumns; ++j) first[j] = sum[k * kColumns + j];
  for (int j = k + 1; j < kColumns; ++j) second[j] = sum[(k + 1) * kColumns + j];
  for (int i = 0; i < nrow; ++i) {
    const T* row = carried + i * ld;
    const T x = row[k] * inverse[i], y = row[k + 1] * inverse[i];
    for (int j = k; j < kColumns; ++j) first[j] = mul_add(x, row[j], first[j]);
    for (int j = k + 1; j < kColumns; ++j) second[j] = mul_add(y, row[j], second[j]);
  }
  for (int j = k; j < kColumns; ++j) sum[k * kColumns + j] = first[j];
  for (int j = k + 1; j < kColumns; ++j) sum[(k + 1) * kColumns + j] = second[j];
}

/// sum [6][kCarried] += the branch's contribution to the root: F B⁻¹ Fᵀ and F B⁻¹ b.
template <class T, class P>
TARSUS_INLINE void add_branch(int nrow, int ld, const T* carried, const T* inverse, T* sum) {
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kColumns = kCarried<T, P>;
  if constexpr (kRows == 1) {
    add_branch_rows<T, 0>(nrow, ld, carried, inverse, sum);
    add_branch_rows<T, 2>(nrow, ld, carried, inverse, sum);
    add_branch_rows<T, 4>(nrow, ld, carried, inverse, sum);
  } else {
    constexpr int kPacks = kColumns / kRows;
    P s[6][kPacks];
    for (int k = 0; k < 6; ++k) {
      for (int j = 0; j < kPacks; ++j) s[k][j] = load_rows<P>(sum + k * kColumns + j * kRows);
    }
    for (int i = 0; i < nrow; ++i) {
      P x[kPacks];
      for (int j = 0; j < kPacks; ++j) x[j] = load_rows<P>(carried + i * ld + j * kRows) * P(inverse[i]);
      for (int k = 0; k < 6; ++k) {
        const P f = P(carried[i * ld + k]);
        for (int j = 0; j < kPacks; ++j) s[k][j] = mul_add(f, x[j], s[k][j]);
      }
    }
    for (int k = 0; k < 6; ++k) {
      for (int j = 0; j < kPacks; ++j) store_rows(sum + k * kColumns + j * kRows, s[k][j]);
    }
  }
}

/// gather_rows() for one weld, with sizes known to the compiler.
template <class T, class P>
TARSUS_INLINE void gather_weld(const ModelView<Real<T>>& m, const LinkState<T>* state, const RowGroupView<Real<T>>& g) {
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kStride = (6 + kRows - 1) / kRows * kRows;
  const RowBlockView<Real<T>>& block = g.block[0];
  const int below = block.ndof - 6;
  sweep_pair_kernel<T, P, true>(m, state, block);
  const T *W = reinterpret_cast<const T*>(block.W), *DW = reinterpret_cast<const T*>(block.DW);
  T* A = reinterpret_cast<T*>(g.A);
  int j = 0;
  for (; j + 2 * kRows <= kStride; j += 2 * kRows) {
    constexpr int kAll = 6;
    gram_columns<T, P, 2>(below, j + 2 * kRows < kAll ? j + 2 * kRows : kAll, W, kStride, DW + j, kStride, false, A + j,
                          g.ld);
  }
  if (j < kStride) gram_columns<T, P, 1>(below, 6, W, kStride, DW + j, kStride, false, A + j, g.ld);
}

/// A branch's matrix: B + Σ with the extra columns.
template <class T, class P>
TARSUS_INLINE void load_branch(const RowGroupView<Real<T>>& g, const T* u, const T* target, const T* sigma) {
  T *A = reinterpret_cast<T*>(g.A), *diagonal = reinterpret_cast<T*>(g.diagonal);
  for (int k = 0; k < g.blocks; ++k) {
    const int first = g.first[k], global = g.global[k];
    load_carried<T, P>(g.block[k], u, target + global, A + first * g.ld + g.right, g.ld);
    for (int i = 0; i < g.block[k].nrow; ++i) {
      T& d = A[(first + i) * g.ld + first + i];
      d = d + sigma[global + i];
      diagonal[first + i] = d;
    }
  }
}

/// Factors a branch. Six rows, a weld, have their own code, whose loops the compiler knows.
template <class T, class P>
TARSUS_INLINE void factor_branch(const RowGroupView<Real<T>>& g) {
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kRight = (6 + kRows - 1) / kRows * kRows;
  T *A = reinterpret_cast<T*>(g.A), *inverse = reinterpret_cast<T*>(g.inverse);
  if (g.nrow == 6) {
    ldl_step<T, P>(0, 6, kRight + kCarried<T, P>, g.ld, A, inverse);
    ldl_step<T, P>(4, 6, kRight + kCarried<T, P>, g.ld, A, inverse);
  } else {
    ldl_kernel<T, P>(g.nrow, g.right + kCarried<T, P>, g.ld, A, inverse);
  }
}

/// Adds `sum` of all branches to the root's inertia and bias force. In W, a free root's linear DoFs come first.
/// @return the smallest of limit × inertia - addition over the root's six axes
template <class T>
TARSUS_INLINE T load_root(const T* sum, int columns, Real<T> limit, LinkState<T>& s) {
  const auto S = [&](int k, int l) { return sum[k * columns + l]; };
  const T most = T(limit);
  T margin = most * s.IA.M.xx - S(0, 0);
  margin = minimum(margin, most * s.IA.M.yy - S(1, 1)), margin = minimum(margin, most * s.IA.M.zz - S(2, 2));
  margin = minimum(margin, most * s.IA.I.xx - S(3, 3)), margin = minimum(margin, most * s.IA.I.yy - S(4, 4));
  margin = minimum(margin, most * s.IA.I.zz - S(5, 5));
  s.IA.M += Sym3<T>{S(0, 0), S(0, 1), S(0, 2), S(1, 1), S(1, 2), S(2, 2)};
  s.IA.I += Sym3<T>{S(3, 3), S(3, 4), S(3, 5), S(4, 4), S(4, 5), S(5, 5)};
  Mat3<T>& H = s.IA.H;  // moment of a linear motion
  H.xx += S(0, 3), H.xy += S(1, 3), H.xz += S(2, 3);
  H.yx += S(0, 4), H.yy += S(1, 4), H.yz += S(2, 4);
  H.zx += S(0, 5), H.zy += S(1, 5), H.zz += S(2, 5);
  s.pA += Force<T>{{S(3, 6), S(4, 6), S(5, 6)}, {S(0, 6), S(1, 6), S(2, 6)}};
  return margin;
}

/// Copies a group's x to the set's x₂, and u -= W x except for the root's last `left_out` DoFs.
template <class T, class P>
TARSUS_INLINE void take_multipliers(const RowGroupView<Real<T>>& g, int left_out, T* u, T* x2) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const T* x = reinterpret_cast<const T*>(g.x);
  for (int k = 0; k < g.blocks; ++k) {
    const RowBlockView<Real<T>>& block = g.block[k];
    for (int i = 0; i < block.nrow; ++i) x2[g.global[k] + i] = x[g.first[k] + i];
    const int ndof = block.ndof - left_out;
    const T* W = reinterpret_cast<const T*>(block.W);
    if (kRows > 1 && block.nrow == 6) {
      constexpr int kPacks = (6 + kRows - 1) / kRows;
      P minus[kPacks];
      for (int p = 0; p < kPacks; ++p) minus[p] = -load_rows<P>(x + g.first[k] + p * kRows);
      push_packs<T, P>(ndof, block.dofs, kPacks * kRows, W, minus, u);
    } else {
      push_kernel<T, P>(ndof, block.dofs, block.nrow, block.stride, W, x + g.first[k], Real<T>(-1), u);
    }
  }
}

/// Solves the kept rows by Λ⁻¹ with the root's present factor; u -= W x. @param energy += ldl_energy()
template <class T, class P>
TARSUS_INLINE void solve_kept(const ModelView<Real<T>>& m, const LinkState<T>* state, const RowGroupView<Real<T>>& g,
                              const T* target, const T* sigma, T* u, T* x2, T& energy) {
  T *A = reinterpret_cast<T*>(g.A), *inverse = reinterpret_cast<T*>(g.inverse),
    *diagonal = reinterpret_cast<T*>(g.diagonal), *x = reinterpret_cast<T*>(g.x);
  gather_rows<T, P>(m, state, g);
  for (int k = 0; k < g.blocks; ++k) {
    const RowBlockView<Real<T>>& block = g.block[k];
    const int first = g.first[k], global = g.global[k];
    velocity_kernel<T, P>(block.ndof, block.dofs, block.nrow, block.stride, reinterpret_cast<const T*>(block.DW), u,
                          x + first);
    for (int i = 0; i < block.nrow; ++i) {
      T* row = A + (first + i) * g.ld;
      row[g.nrow] = x[first + i] + target[global + i];
      row[first + i] = row[first + i] + sigma[global + i];
      diagonal[first + i] = row[first + i];
    }
  }
  ldl_kernel<T, P>(g.nrow, g.nrow + 1, g.ld, A, inverse);
  ldl_back_kernel<T, P>(g.nrow, g.nrow, g.ld, A, inverse, x);
  energy = energy + ldl_energy(g.nrow, g.nrow, g.ld, A, inverse);
  take_multipliers<T, P>(g, 0, u, x2);
}

/// The branches' multipliers from the root's acceleration: (B + Σ) x = b + Fᵀ a, from the extra columns; u -= W x.
/// @param carry a, linear first, then 1  @param energy += ldl_energy() of each branch
template <class T, class P>
TARSUS_INLINE void return_branches(const BranchesView<Real<T>>& view, const T* carry, T* u, T* x2, T& energy) {
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kPacks = kCarried<T, P> / kRows;
  for (int l = 0; l < view.branches; ++l) {
    const RowGroupView<Real<T>>& g = view.branch[l];
    for (int i = 0; i < g.nrow; ++i) {
      T* row = reinterpret_cast<T*>(g.A) + i * g.ld + g.right;
      P sum = load_rows<P>(row) * load_rows<P>(carry);
      for (int j = 1; j < kPacks; ++j)
        sum = mul_add(load_rows<P>(row + j * kRows), load_rows<P>(carry + j * kRows), sum);
      const T y = row[6] = sum_of_rows<T>(sum);
      energy = mul_add(y * reinterpret_cast<const T*>(g.inverse)[i], y, energy);
    }
  }
  for (int l = 0; l < view.branches; ++l) {
    const RowGroupView<Real<T>>& g = view.branch[l];
    ldl_back_kernel<T, P>(g.nrow, g.right + 6, g.ld, reinterpret_cast<const T*>(g.A),
                          reinterpret_cast<const T*>(g.inverse), reinterpret_cast<T*>(g.x));
  }
  for (int l = 0; l < view.branches; ++l) take_multipliers<T, P>(view.branch[l], 6, u, x2);
}

/// ABA's passes 1 and 2 except for the root, which needs its branches' rows first.
template <class T>
void prepare_branches_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* qpos, const T* qvel, const T* Q,
                             const T* K, T* u) {
  const T* no_force = nullptr;
  aba_outward(m, state, qpos, qvel, no_force);
  reduce_groups(m, state, m.ninward - 1, Q, K);  // the root is last
  place_origins(m.link, m.nlink, state);
  for (int i = 1; i < m.nlink; ++i) put_u(m.link[i], state[i], u);
}

/// @param good positive if every pivot of the group is above its limits, relative to its diagonal and, by pivot_scale()
/// (tarsus/solver/multipliers.hpp), to the largest
/// @param squares += least admissible ldl_energy(), as in ldl_trust()
template <class T, class P>
TARSUS_INLINE void judge(const RowGroupView<Real<T>>& g, const PivotLimits<Real<T>>& limits, P& good, P& squares) {
  using R = Real<T>;
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const T *inverse = reinterpret_cast<const T*>(g.inverse), *diagonal = reinterpret_cast<const T*>(g.diagonal),
          *x = reinterpret_cast<const T*>(g.x);
  for (int r = 0; r < g.nrow; r += kRows) {  // padding: inverse 1, diagonal 1, x 0
    const P d = load_rows<P>(diagonal + r), size = load_rows<P>(x + r), ratio = load_rows<P>(inverse + r) * d;
    good = minimum(good, minimum(ratio, P(R(1)) - ratio * P(limits.pivot)));
    squares = mul_add(d * P(limits.pivot) * size, size, squares);
  }
  if (!(limits.share > 0)) return;
  P packs = P(R(0));
  for (int r = 0; r < g.nrow; r += kRows) packs = maximum(packs, load_rows<P>(diagonal + r));
  const T* lane = reinterpret_cast<const T*>(&packs);
  T largest = lane[0];
  for (int r = 1; r < kRows; ++r) largest = maximum(largest, lane[r]);
  const R share = limits.share * limits.pivot;
  for (int r = 0; r < g.nrow; r += kRows) {
    const P i = load_rows<P>(inverse + r), d = load_rows<P>(diagonal + r);
    good =
        minimum(good, minimum(P(R(1)) - i * i * d * P(largest * T(share * share)), d - P(largest * T(limits.nothing))));
  }
}

/// q̈ and x₂ after prepare_branches_kernel and the rows' evaluation. The root's factor is that with its branches' rows.
/// @param target -y₂
/// @param quality [lane] not positive, or NaN, if the result must not be used
template <class T, class P>
void branches_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const BranchesView<Real<T>>& view, const T* Q,
                     const T* K, const T* target, const T* sigma, T* u, T* x2, T* qacc, T* quality) {
  constexpr int kColumns = kCarried<T, P>;
  const LinkConstants<Real<T>>& link = m.link[0];
  LinkState<T>& root = state[0];
  T sum[6 * kColumns];
  for (T& x : sum) x = T(Real<T>(0));
  for (int l = 0; l < view.branches; ++l) {
    if (view.branch[l].blocks == 1 && view.branch[l].nrow == 6)
      gather_weld<T, P>(m, state, view.branch[l]);
    else
      gather_rows<T, P>(m, state, view.branch[l]);
    load_branch<T, P>(view.branch[l], u, target, sigma);
  }
  for (int l = 0; l < view.branches; ++l) factor_branch<T, P>(view.branch[l]);
  for (int l = 0; l < view.branches; ++l) {
    const RowGroupView<Real<T>>& g = view.branch[l];
    add_branch<T, P>(g.nrow, g.ld, reinterpret_cast<const T*>(g.A) + g.right, reinterpret_cast<const T*>(g.inverse),
                     sum);
  }
  T margin = load_root(sum, kColumns, kMostStiffness<Real<T>>, root);
  reduce(link, state, 0, Q + link.qvel, K + link.qvel);
  put_u(link, root, u);
  T energy = T(Real<T>(0));
  if (view.kept.nrow > 0) solve_kept<T, P>(m, state, view.kept, target, sigma, u, x2, energy);

  take_u(link, u, root);
  const Vec3<T> angular = root.Dinv * (root.u - root.G * root.u_linear),
                linear = root.Minv * root.u_linear - transpose_mul(root.G, angular);
  T carry[kColumns];
  put3(carry, linear), put3(carry + 3, angular), carry[6] = T(Real<T>(1));
  for (int k = 7; k < kColumns; ++k) carry[k] = T(Real<T>(0));
  return_branches<T, P>(view, carry, u, x2, energy);
  outward_kernel(m, state, u, qacc);

  P good = P(Real<T>(1)), squares = P(Real<T>(0));
  for (int l = 0; l < view.branches; ++l) judge<T, P>(view.branch[l], kOfBranch<Real<T>>, good, squares);
  if (view.kept.nrow > 0) judge<T, P>(view.kept, kOfKept<Real<T>>, good, squares);
  const T* rows = reinterpret_cast<const T*>(&good);
  for (int r = 0; r < int(sizeof(P) / sizeof(T)); ++r) margin = minimum(margin, rows[r]);
  const T bad = T(Real<T>(-1)), rounding = T(std::numeric_limits<Real<T>>::min());
  quality[0] = select(energy + rounding > sum_of_rows<T>(squares), margin, bad);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
