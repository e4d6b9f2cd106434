// The inward pass for constraint rows alone, and products with its results; see tarsus/dynamics/delassus.hpp.
//
// T is the scalar of the factors (a number or a pack of worlds). P is the scalar of rows: a pack of adjacent rows for
// one world, T itself for a pack of worlds. At each joint the force f on the link is split into the joint's part and
// the part that is propagated to the parent:
//   w = Sᵀ f + y,   dw = D⁻¹ w,   f_parent = shift_back(f - U dw)
#pragma once

#include "dynamics/delassus_table.hpp"
#include "dynamics/minv.inl"
#include "math/kernel_call.inl"
#include "tarsus/math/row_pack.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class P, class T>
TARSUS_INLINE Vec3<P> spread(const Vec3<T>& v) {
  return {P(v.x), P(v.y), P(v.z)};
}
template <class P, class T>
TARSUS_INLINE Mat3<P> spread(const Mat3<T>& m) {
  return {P(m.xx), P(m.xy), P(m.xz), P(m.yx), P(m.yy), P(m.yz), P(m.zx), P(m.zy), P(m.zz)};
}
template <class P, class T>
TARSUS_INLINE Sym3<P> spread(const Sym3<T>& m) {
  return {P(m.xx), P(m.xy), P(m.xz), P(m.yy), P(m.yz), P(m.zz)};
}

template <class P, class T>
TARSUS_INLINE Force<P> load_force(const T* p, int stride) {
  return {{load_rows<P>(p), load_rows<P>(p + stride), load_rows<P>(p + 2 * stride)},
          {load_rows<P>(p + 3 * stride), load_rows<P>(p + 4 * stride), load_rows<P>(p + 5 * stride)}};
}
template <class P, class T>
TARSUS_INLINE void store_vec(T* p, int stride, const Vec3<P>& v) {
  store_rows(p, v.x), store_rows(p + stride, v.y), store_rows(p + 2 * stride, v.z);
}

/// One joint of the inward pass for kN packs of rows at once. The pass is a chain of dependent operations, and two
/// chains take hardly longer than one. y [kN][6] has the rows' own entries in world axes (linear first for a free
/// joint; only [0..nv) are read), or is null. Writes the joint's rows of W and DW. f becomes the force on the parent,
/// at the parent's origin (not for a free joint). below_root: compute only W of a free joint, whose factor is not known
/// yet. kIsotropic: the factors are aba's (K equal about all axes of a ball), not those of a rotation at its force
/// limit.
template <class T, class P, int kN>
TARSUS_INLINE void climb_free(const LinkState<T>& s, Force<P>* f, const P (*y)[6], T* W, T* DW, int stride,
                              bool below_root) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  for (int p = 0; p < kN; ++p, W += kRows, DW += kRows) {
    Vec3<P> lin = f[p].f, ang = f[p].n;
    if (y) lin += Vec3<P>{y[p][0], y[p][1], y[p][2]}, ang += Vec3<P>{y[p][3], y[p][4], y[p][5]};
    store_vec(W, stride, lin), store_vec(W + 3 * stride, stride, ang);
    if (below_root) continue;
    const Mat3<P> G = spread<P>(s.G);
    const Vec3<P> da = spread<P>(s.Dinv) * (ang - G * lin);
    const Vec3<P> dl = spread<P>(s.Minv) * lin - transpose_mul(G, da);
    store_vec(DW, stride, dl), store_vec(DW + 3 * stride, stride, da);
  }
}
template <class T, class P, int kN, bool kIsotropic>
TARSUS_INLINE void climb_ball(const LinkState<T>& s, Force<P>* f, const P (*y)[6], T* W, T* DW, int stride) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  for (int p = 0; p < kN; ++p, W += kRows, DW += kRows) {
    Vec3<P> w = f[p].n;
    if (y) w += Vec3<P>{y[p][0], y[p][1], y[p][2]};
    const Vec3<P> d = spread<P>(s.Dinv) * w;
    store_vec(W, stride, w), store_vec(DW, stride, d);
    if (kIsotropic && !y) {  // I = D - k and H = D G give k d and f - Gᵀ w
      f[p].f = f[p].f - transpose_mul(spread<P>(s.G), w);
      f[p].n = d * P(s.k);
    } else {
      f[p].n = f[p].n - spread<P>(s.IA.I) * d;  // U = [I; Hᵀ], for any K
      f[p].f = f[p].f - transpose_mul(spread<P>(s.IA.H), d);
    }
    f[p] = shift_back(f[p], spread<P>(s.r));
  }
}
template <class T, class P, int kN>
TARSUS_INLINE void climb_axial(bool hinge, const LinkState<T>& s, Force<P>* f, const P (*y)[6], T* W, T* DW) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  for (int p = 0; p < kN; ++p, W += kRows, DW += kRows) {
    const Vec3<P> e = spread<P>(s.R.column_z());
    P w = dot(e, hinge ? f[p].n : f[p].f);
    if (y) w = w + y[p][0];
    const P d = w * P(s.Dinv.xx);
    store_rows(W, w), store_rows(DW, d);
    f[p].n = mul_add(spread<P>(s.U.n), -d, f[p].n);
    f[p].f = mul_add(spread<P>(s.U.f), -d, f[p].f);
    f[p] = shift_back(f[p], spread<P>(s.r));
  }
}
template <class T, class P, int kN, bool kIsotropic = false>
TARSUS_INLINE void climb_joint(JointType type, const LinkState<T>& s, Force<P>* f, const P (*y)[6], T* W, T* DW,
                               int stride, bool below_root = false) {
  if (turns_on_axis(type))
    climb_axial<T, P, kN>(true, s, f, y, W, DW);
  else if (turns_freely(type))
    climb_ball<T, P, kN, kIsotropic>(s, f, y, W, DW, stride);
  else if (moves_freely(type))
    climb_free<T, P, kN>(s, f, y, W, DW, stride, below_root);
  else
    climb_axial<T, P, kN>(false, s, f, y, W, DW);
}

/// Rows that are forces on a and b: two inward paths, higher index first, which merge where they meet.
template <class T, class P, int kN, bool kIsotropic>
TARSUS_INLINE void sweep_pair_rows(const ModelView<Real<T>>& m, const LinkState<T>* state,
                                   const RowBlockView<Real<T>>& block, int row) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const int stride = block.stride;
  const T* force = reinterpret_cast<const T*>(block.force) + row;
  const T* joint = block.joint ? reinterpret_cast<const T*>(block.joint) + row : nullptr;
  T *W = reinterpret_cast<T*>(block.W) + row, *DW = reinterpret_cast<T*>(block.DW) + row;
  const auto climb = [&](int i, Force<P>* f) __attribute__((always_inline)) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const LinkState<T>& s = state[i];
    if (joint && (i == block.a || i == block.b)) {
      P y[kN][6];
      for (int p = 0; p < kN; ++p) {
        for (P& x : y[p]) x = P(Real<T>(0));
        y[p][0] = load_rows<P>(joint + (i == block.a ? 0 : stride) + p * kRows);
        if (turns_freely(link.joint)) {  // the first DoF rotates about R e_x
          const Vec3<P> x = spread<P>(s.R.column_x()) * y[p][0];
          y[p][0] = x.x, y[p][1] = x.y, y[p][2] = x.z;
        }
      }
      climb_joint<T, P, kN, kIsotropic>(link.joint, s, f, y, W, DW, stride, block.below_root);
    } else {
      const P(*none)[6] = nullptr;
      climb_joint<T, P, kN, kIsotropic>(link.joint, s, f, none, W, DW, stride, block.below_root);
    }
    W += qvel_count(link.joint) * stride, DW += qvel_count(link.joint) * stride;
    return link.parent;
  };
  int a = block.a, b = block.b;
  Force<P> on_a[kN];
  for (int p = 0; p < kN; ++p) on_a[p] = load_force<P>(force + p * kRows, stride);
  if (b >= 0) {
    Force<P> on_b[kN];
    for (int p = 0; p < kN; ++p) on_b[p] = load_force<P>(force + 6 * stride + p * kRows, stride);
    while (a != b) {
      if (a > b)
        a = climb(a, on_a);
      else
        b = climb(b, on_b);
    }
    for (int p = 0; p < kN; ++p) on_a[p] += on_b[p];
  }
  while (a >= 0) a = climb(a, on_a);
}

template <class T, class P, bool kIsotropic = false>
void sweep_pair_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, const RowBlockView<Real<T>>& block) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  int row = 0;
  // One row of a pack of worlds fills the registers. Two rows hide each other's latency only where each joint does
  // little work.
  if (kRows > 1 || block.ndof < 2 * block.nlink) {
    for (; row + kRows < block.nrow; row += 2 * kRows) sweep_pair_rows<T, P, 2, kIsotropic>(m, state, block, row);
  }
  for (; row < block.nrow; row += kRows) sweep_pair_rows<T, P, 1, kIsotropic>(m, state, block, row);
}

/// J of rows that are forces on a and b: [ndof][stride] in qvel's axes; the padding holds nothing of use.
template <class T, class P>
void pair_jacobian_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, const RowBlockView<Real<T>>& block,
                          T* J) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const int stride = block.stride;
  for (int row = 0; row < block.nrow; row += kRows) {
    const T* force = reinterpret_cast<const T*>(block.force) + row;
    const T* joint = block.joint ? reinterpret_cast<const T*>(block.joint) + row : nullptr;
    Force<P> climbs[2] = {load_force<P>(force, stride), {zero3<P>(), zero3<P>()}};
    if (block.b >= 0) climbs[1] = load_force<P>(force + 6 * stride, stride);
    int at[2] = {block.a, block.b};  // the paths merge where their branches meet
    T* to = J + row;
    for (int p = 0; p < block.nlink; ++p) {
      const int i = block.links[p];
      const LinkConstants<Real<T>>& link = m.link[i];
      if (at[0] == at[1]) climbs[0] += climbs[1], at[1] = -1;
      const int side = at[0] == i ? 0 : 1;
      P along[6];
      joint_force<P>(link, spread<P>(state[i].R), climbs[side], along);
      if (joint && (i == block.a || i == block.b))
        along[0] = along[0] + load_rows<P>(joint + (i == block.a ? 0 : stride));
      for (int d = 0; d < qvel_count(link.joint); ++d, to += stride) store_rows(to, along[d]);
      climbs[side] = shift_back(climbs[side], spread<P>(state[i].r)), at[side] = link.parent;
    }
  }
}

/// Rows in joint space: forces accumulate at each link of the support. scratch: 6 packs of rows for each of these
/// links.
template <class T, class P>
void sweep_joints_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, const RowBlockView<Real<T>>& block,
                         T* scratch) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const int stride = block.stride;
  P* waiting = reinterpret_cast<P*>(scratch);
  for (int row = 0; row < block.nrow; row += kRows) {
    for (int k = 0; k < 6 * block.nlink; ++k) waiting[k] = P(Real<T>(0));
    const T* joint = reinterpret_cast<const T*>(block.joint) + row;
    T *W = reinterpret_cast<T*>(block.W) + row, *DW = reinterpret_cast<T*>(block.DW) + row;
    for (int p = 0; p < block.nlink; ++p) {
      const int i = block.links[p];
      const LinkConstants<Real<T>>& link = m.link[i];
      const int n = qvel_count(link.joint);
      P y[1][6];
      for (int k = 0; k < n; ++k) y[0][k] = load_rows<P>(joint + k * stride);
      if (n >= 3) {
        P* rotation = y[0] + n - 3;
        const Vec3<P> turned = spread<P>(state[i].R) * Vec3<P>{rotation[0], rotation[1], rotation[2]};
        rotation[0] = turned.x, rotation[1] = turned.y, rotation[2] = turned.z;
      }
      P* w = waiting + 6 * p;
      Force<P> f = {{w[0], w[1], w[2]}, {w[3], w[4], w[5]}};
      climb_joint<T, P, 1>(link.joint, state[i], &f, y, W, DW, stride);
      W += n * stride, DW += n * stride, joint += n * stride;
      if (link.parent < 0) continue;
      int place = p + 1;
      while (block.links[place] != link.parent) ++place;
      P* up = waiting + 6 * place;
      up[0] += f.n.x, up[1] += f.n.y, up[2] += f.n.z, up[3] += f.f.x, up[4] += f.f.y, up[5] += f.f.z;
    }
  }
}

/// kJ packs of columns and nrow rows.
template <class T, class P, int kJ>
TARSUS_INLINE void gram_columns(int count, int nrow, const T* W, int stride, const T* DW, int stride_d, bool add,
                                T* out, int ld) {
  for (; nrow >= 6; nrow -= 6, W += 6, out += 6 * ld)
    product_tile<T, P, 6, kJ>(count, W, stride, DW, stride_d, add, out, ld);
  if (nrow >= 4) {
    product_tile<T, P, 4, kJ>(count, W, stride, DW, stride_d, add, out, ld);
    nrow -= 4, W += 4, out += 4 * ld;
  }
  if (nrow == 3) product_tile<T, P, 3, kJ>(count, W, stride, DW, stride_d, add, out, ld);
  if (nrow == 2) product_tile<T, P, 2, kJ>(count, W, stride, DW, stride_d, add, out, ld);
  if (nrow == 1) product_tile<T, P, 1, kJ>(count, W, stride, DW, stride_d, add, out, ld);
}

template <class T, class P>
void gram_kernel(int count, int nrow, const T* W, int stride, const T* DW, int stride_d, bool add, bool upper, T* out,
                 int ld) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const auto rows_to = [&](int end) { return upper && end < nrow ? end : nrow; };
  int j = 0;
  for (; j + 2 * kRows <= stride_d; j += 2 * kRows)
    gram_columns<T, P, 2>(count, rows_to(j + 2 * kRows), W, stride, DW + j, stride_d, add, out + j, ld);
  if (j < stride_d) gram_columns<T, P, 1>(count, rows_to(j + kRows), W, stride, DW + j, stride_d, add, out + j, ld);
}

/// Jv[r] = Σ_k DW[k][r] u[dof k] for kJ packs of rows, of which nrow rows are written. Even and odd DoFs have separate
/// sums to shorten the dependency chain.
template <class T, class P, int kJ>
TARSUS_INLINE void velocity_tile(int ndof, const int* dofs, int nrow, int stride, const T* DW, const T* u, T* Jv) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  P even[kJ], odd[kJ];
  for (int j = 0; j < kJ; ++j) even[j] = odd[j] = P(Real<T>(0));
  int k = 0;
  for (; k + 2 <= ndof; k += 2, DW += 2 * stride) {
    const P x = P(u[dofs[k]]), y = P(u[dofs[k + 1]]);
    for (int j = 0; j < kJ; ++j) {
      even[j] = mul_add(x, load_rows<P>(DW + j * kRows), even[j]);
      odd[j] = mul_add(y, load_rows<P>(DW + stride + j * kRows), odd[j]);
    }
  }
  if (k < ndof) {
    const P x = P(u[dofs[k]]);
    for (int j = 0; j < kJ; ++j) even[j] = mul_add(x, load_rows<P>(DW + j * kRows), even[j]);
  }
  for (int j = 0; j < kJ; ++j) even[j] = even[j] + odd[j];
  const T* sum = reinterpret_cast<const T*>(even);
  for (int r = 0; r < kJ * kRows && r < nrow; ++r) Jv[r] = sum[r];
}

template <class T, class P>
void velocity_kernel(int ndof, const int* dofs, int nrow, int stride, const T* DW, const T* u, T* Jv) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  int row = 0;
  if (kRows == 1) {
    for (; row + 6 <= nrow; row += 6) velocity_tile<T, P, 6>(ndof, dofs, 6, stride, DW + row, u, Jv + row);
  }
  for (; row + kRows < nrow; row += 2 * kRows)
    velocity_tile<T, P, 2>(ndof, dofs, nrow - row, stride, DW + row, u, Jv + row);
  if (row < nrow) velocity_tile<T, P, 1>(ndof, dofs, nrow - row, stride, DW + row, u, Jv + row);
}

/// u[dof k] += Σ_r W[k][r] λ[r], λ as packs. Padding rows of W are zero.
template <class T, class P>
TARSUS_INLINE void push_packs(int ndof, const int* dofs, int stride, const T* W, const P* lambda, T* u) {
  constexpr int kRows = int(sizeof(P) / sizeof(T));
  const auto products = [&](int k) {
    P sum = load_rows<P>(W + k * stride) * lambda[0];
    for (int p = 1; p * kRows < stride; ++p) sum = mul_add(load_rows<P>(W + k * stride + p * kRows), lambda[p], sum);
    return sum;
  };
  for (int k = 0; k < ndof; k += kRows) {
    P sums[kRows];
    for (int i = 0; i < kRows; ++i) sums[i] = k + i < ndof ? products(k + i) : P(Real<T>(0));
    const P total = sums_of_rows<T>(sums);
    const T* lane = reinterpret_cast<const T*>(&total);
    for (int i = 0; i < kRows && k + i < ndof; ++i) u[dofs[k + i]] = u[dofs[k + i]] + lane[i];
  }
}

/// u[dof k] += sign Σ_r W[k][r] λ[r]. Padding rows of W are zero.
template <class T, class P>
void push_kernel(int ndof, const int* dofs, int nrow, int stride, const T* W, const T* lambda, Real<T> sign, T* u) {
  constexpr int kRows = int(sizeof(P) / sizeof(T)), kMost = 32;
  if (kRows == 1 || stride > kMost) {
    for (int k = 0; k < ndof; ++k) {
      T sum = T(Real<T>(0));
      for (int r = 0; r < nrow; ++r) sum = mul_add(W[k * stride + r], lambda[r], sum);
      u[dofs[k]] = mul_add(sum, T(sign), u[dofs[k]]);
    }
    return;
  }
  P packed[kMost / kRows];
  T* flat = reinterpret_cast<T*>(packed);
  for (int r = 0; r < stride; ++r) flat[r] = r < nrow ? lambda[r] * T(sign) : T(Real<T>(0));
  push_packs<T, P>(ndof, dofs, stride, W, packed, u);
}

/// The joint's u as an array in qvel's order, world axes.
template <class T>
TARSUS_INLINE void put_u(const LinkConstants<Real<T>>& link, const LinkState<T>& s, T* u) {
  T* p = u + link.qvel;
  if (moves_freely(link.joint))
    put3(p, s.u_linear), put3(p + 3, s.u);
  else if (turns_freely(link.joint))
    put3(p, s.u);
  else
    p[0] = s.u.x;
}
template <class T>
TARSUS_INLINE void take_u(const LinkConstants<Real<T>>& link, const T* u, LinkState<T>& s) {
  const T* p = u + link.qvel;
  if (moves_freely(link.joint))
    s.u_linear = get3(p), s.u = get3(p + 3);
  else if (turns_freely(link.joint))
    s.u = get3(p);
  else
    s.u.x = p[0];
}

template <class T>
void read_u_kernel(const ModelView<Real<T>>& m, const LinkState<T>* state, T* u) {
  for (int i = 0; i < m.nlink; ++i) put_u(m.link[i], state[i], u);
}

template <class T>
void inward_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* y, T* u) {
  for (int i = 0; i < m.nlink; ++i) state[i].pA = {zero3<T>(), zero3<T>()};
  for (int i = m.nlink - 1; i >= 0; --i) {
    const LinkConstants<Real<T>>& link = m.link[i];
    const Force<T> f = pass_force_down(link, state[i], y + link.qvel);
    if (link.parent >= 0) state[link.parent].pA += shift_back(f, state[i].r);
    put_u(link, state[i], u);
  }
}

template <class T>
void outward_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* u, T* x) {
  for (int i = 0; i < m.nlink; ++i) {
    take_u(m.link[i], u, state[i]);
    accelerate_link(m, state, i, x);
  }
}

template <class T, class P>
int row_width_kernel() {
  return int(sizeof(P) / sizeof(T));
}

TARSUS_FILL_KERNELS(DelassusTable<Real<T>>, TARSUS_DELASSUS_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
