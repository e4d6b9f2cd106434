// Updates the links that an eliminated joint couples; see tarsus/dynamics/coupled.hpp.
#pragma once

#include <utility>

#include "dynamics/elimination.hpp"
#include "tarsus/dynamics/link_rows.hpp"
#include "tarsus/math/gather.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// B_xy -= H_xq (D⁻¹ H_qy) over all pairs x, y of `count` links. Rows have eight numbers, the last two of them padding.
/// @param block [count][count] index of B_xy among blocks of 48 @param left, right H_xq and D⁻¹ H_qy, [dofs][count][8]
template <int kDofs, class T>
TARSUS_INLINE void eliminate_dofs(int count, const int* block, const T* left, const T* right, T* blocks) {
  using P = typename RecordPack<T>::type;
  constexpr int kPacks = 8 / kRecords<T>;
  const int width = 8 * count;
  for (int y = 0; y < count; ++y) {
    P row[kDofs][kPacks];
    for (int d = 0; d < kDofs; ++d) {
      for (int p = 0; p < kPacks; ++p) row[d][p] = load_rows<P>(right + d * width + 8 * y + p * kRecords<T>);
    }
    for (int x = 0; x < count; ++x) {
      T* B = blocks + 48 * block[x * count + y];
      for (int r = 0; r < 6; ++r, B += 8) {
        P sum[kPacks];
        for (int p = 0; p < kPacks; ++p) sum[p] = load_rows<P>(B + p * kRecords<T>);
        for (int d = 0; d < kDofs; ++d) {
          const P l = P(left[d * width + 8 * x + r]);
          for (int p = 0; p < kPacks; ++p) sum[p] = neg_mul_add(l, row[d][p], sum[p]);
        }
        for (int p = 0; p < kPacks; ++p) store_rows(B + p * kRecords<T>, sum[p]);
      }
    }
  }
}

/// D⁻¹ in place by Gauss-Jordan elimination with row exchanges.
template <int kDofs, class T>
TARSUS_INLINE void invert_small(T* D) {
  if constexpr (kDofs == 1) {
    D[0] = 1 / D[0];
  } else {
    int exchanged[kDofs];
    for (int k = 0; k < kDofs; ++k) {
      int pivot = k;
      for (int r = k + 1; r < kDofs; ++r) {
        if (absolute(D[r * kDofs + k]) > absolute(D[pivot * kDofs + k])) pivot = r;
      }
      exchanged[k] = pivot;
      for (int c = 0; pivot != k && c < kDofs; ++c) std::swap(D[k * kDofs + c], D[pivot * kDofs + c]);
      T* row = D + k * kDofs;
      const T inverse = 1 / row[k];
      row[k] = 1;
      for (int c = 0; c < kDofs; ++c) row[c] *= inverse;
      for (int r = 0; r < kDofs; ++r) {
        if (r == k) continue;
        const T factor = D[r * kDofs + k];
        D[r * kDofs + k] = 0;
        for (int c = 0; c < kDofs; ++c) D[r * kDofs + c] = neg_mul_add(factor, row[c], D[r * kDofs + c]);
      }
    }
    for (int k = kDofs; k-- > 0;) {
      for (int r = 0; exchanged[k] != k && r < kDofs; ++r) std::swap(D[r * kDofs + k], D[r * kDofs + exchanged[k]]);
    }
  }
}

/// to (+)= Xᵀ B: forces about the parent's origin.
template <bool add, class T>
TARSUS_INLINE void shift_rows(const T* r, const T* B, T* to) {
  using Row = RowOfEight<T>;
  const Row x = Row::at(B + 24), y = Row::at(B + 32), z = Row::at(B + 40);
  const Row rows[6] = {sum(sum(Row::at(B), r[1], z), -r[2], y),
                       sum(sum(Row::at(B + 8), r[2], x), -r[0], z),
                       sum(sum(Row::at(B + 16), r[0], y), -r[1], x),
                       x,
                       y,
                       z};
  for (int k = 0; k < 6; ++k) (add ? Row::at(to + 8 * k) + rows[k] : rows[k]).store(to + 8 * k);
}
/// to (+)= B X: motions of the parent's origin.
template <bool add, class T>
TARSUS_INLINE void shift_columns(const T* r, const T* B, T* to) {
  for (int k = 0; k < 48; k += 8) {
    const T *b = B + k, x = b[3], y = b[4], z = b[5];
    const T row[6] = {
        b[0] + (r[1] * z - r[2] * y), b[1] + (r[2] * x - r[0] * z), b[2] + (r[0] * y - r[1] * x), x, y, z};
    for (int c = 0; c < 6; ++c) to[k + c] = row[c] + (add ? to[k + c] : T(0));
    if (!add) to[k + 6] = to[k + 7] = 0;
  }
}

template <int kDofs, class T>
TARSUS_INLINE void eliminate_joint(const Elimination<T>& e, T* blocks) {
  using Row = RowOfEight<T>;
  const int width = 8 * e.count, others = e.child ? e.count - 1 : e.count, o = e.axis_at;
  const T x = e.axis[0], y = e.axis[1], z = e.axis[2];
  /// Row d of Sᵀ B.
  const auto along = [&](const T* B, int d) {
    if constexpr (kDofs > 1) return Row::at(B + 8 * d);
    const Row first = Row::at(B + 8 * o), second = Row::at(B + 8 * o + 8), third = Row::at(B + 8 * o + 16);
    Row out;
    for (int k = 0; k < Row::kPacks; ++k) {
      using P = typename Row::P;
      out.part[k] = mul_add(P(x), first.part[k], mul_add(P(y), second.part[k], P(z) * third.part[k]));
    }
    return out;
  };
  /// (B S)ᵀ to left_.
  const auto columns = [&](const T* B, int k) {
    for (int r = 0; r < 6; ++r) {
      const T* at = B + 8 * r;
      if constexpr (kDofs == 1) {
        e.left[8 * k + r] = x * at[o] + y * at[o + 1] + z * at[o + 2];
      } else {
        for (int d = 0; d < kDofs; ++d) e.left[d * width + 8 * k + r] = at[d];
      }
    }
  };
  const T* own = blocks + 48 * e.own;
  T D[kDofs * kDofs];
  for (int d = 0; d < kDofs; ++d) {
    T row[8];
    along(own, d).store(row);
    if constexpr (kDofs == 1) {
      D[0] = e.K[0] + x * row[o] + y * row[o + 1] + z * row[o + 2];
    } else {
      for (int c = 0; c < kDofs; ++c) D[d * kDofs + c] = e.K[d * kDofs + c] + row[c];
    }
  }
  invert_small<kDofs>(D);
  for (int k = 0; k < kDofs * kDofs; ++k) e.inverse[k] = D[k];
  for (int k = 0; k < others; ++k) {
    const int block = e.neighbour[2 * k + 1];
    for (int d = 0; d < kDofs; ++d) along(blocks + 48 * block, d).store(e.right + d * width + 8 * k);
    columns(blocks + 48 * (block ^ 1), k);
  }
  if (e.child) {  // propagates the link's blocks to the parent: first those with its neighbours, then its own
    for (int k = 0; k < others; ++k) {
      const int from = e.neighbour[2 * k + 1], to = e.pair[others * e.count + k];
      shift_rows<true>(e.offset, blocks + 48 * from, blocks + 48 * to);
      shift_columns<true>(e.offset, blocks + 48 * (from ^ 1), blocks + 48 * (to ^ 1));
    }
    T row[48], column[48];
    shift_columns<false>(e.offset, own, row), shift_rows<false>(e.offset, own, column);
    if (e.parent_block >= 0) {
      const T *to_parent = blocks + 48 * e.parent_block, *from_parent = blocks + 48 * (e.parent_block ^ 1);
      for (int k = 0; k < 48; k += 8) {
        (Row::at(row + k) + Row::at(to_parent + k)).store(row + k);
        (Row::at(column + k) + Row::at(from_parent + k)).store(column + k);
      }
      shift_columns<true>(e.offset, from_parent, blocks + 48 * e.parent);
    }
    for (int d = 0; d < kDofs; ++d) along(row, d).store(e.right + d * width + 8 * others);
    columns(column, others);
    shift_rows<true>(e.offset, row, blocks + 48 * e.parent);
  }
  for (int k = 0; k < e.count; ++k) {  // D⁻¹ H_q
    Row h[kDofs];
    for (int d = 0; d < kDofs; ++d) h[d] = Row::at(e.right + d * width + 8 * k);
    for (int d = 0; d < kDofs; ++d) {
      Row out{};
      for (int c = 0; c < kDofs; ++c) out = sum(out, D[d * kDofs + c], h[c]);
      out.store(e.right + d * width + 8 * k);
    }
  }
  eliminate_dofs<kDofs>(e.count, e.pair, e.left, e.right, blocks);
}

template <class T>
void eliminate_kernel(const Elimination<T>& e, T* blocks) {
  switch (e.dofs) {
    case 1: return eliminate_joint<1>(e, blocks);
    case 3: return eliminate_joint<3>(e, blocks);
    default: return eliminate_joint<6>(e, blocks);
  }
}

/// z = D⁻¹ g of a joint; adds -H_xq z to the forces on the links that it is coupled to.
template <int kDofs, class T>
TARSUS_INLINE void hand_on_joint(const CoupledJoint<T>& joint, const T* g, T* z, T* force) {
  using Row = RowOfEight<T>;
  for (int d = 0; d < kDofs; ++d) {
    T sum = 0;
    for (int e = 0; e < kDofs; ++e) sum = mul_add(joint.inverse[d * kDofs + e], g[e], sum);
    z[d] = sum;
  }
  for (int k = 0; k < joint.count; ++k) {
    T* const to = force + 8 * joint.neighbour[2 * k];
    Row row = Row::at(to);
    for (int d = 0; d < kDofs; ++d) row = sum(row, -z[d], Row::at(joint.left + 8 * (d * joint.count + k)));
    row.store(to);
  }
}
/// q -= D⁻¹ H_qy v for the motions v of these links.
template <int kDofs, class T>
TARSUS_INLINE void take_in_joint(const CoupledJoint<T>& joint, const T* motion, T* q) {
  using Row = RowOfEight<T>;
  Row all[kDofs] = {};
  for (int k = 0; k < joint.count; ++k) {
    const Row v = Row::at(motion + 8 * joint.neighbour[2 * k]);
    for (int d = 0; d < kDofs; ++d) {
      const Row right = Row::at(joint.right + 8 * (d * joint.count + k));
      for (int p = 0; p < Row::kPacks; ++p) all[d].part[p] = mul_add(right.part[p], v.part[p], all[d].part[p]);
    }
  }
  for (int d = 0; d < kDofs; ++d) {
    T x[8];
    all[d].store(x);
    q[d] -= ((x[0] + x[1]) + (x[2] + x[3])) + (x[4] + x[5]);
  }
}

template <class T>
void hand_on_kernel(const CoupledJoint<T>& joint, const T* g, T* z, T* force) {
  switch (joint.dofs) {
    case 1: return hand_on_joint<1>(joint, g, z, force);
    case 3: return hand_on_joint<3>(joint, g, z, force);
    default: return hand_on_joint<6>(joint, g, z, force);
  }
}
template <class T>
void take_in_kernel(const CoupledJoint<T>& joint, const T* motion, T* q) {
  switch (joint.dofs) {
    case 1: return take_in_joint<1>(joint, motion, q);
    case 3: return take_in_joint<3>(joint, motion, q);
    default: return take_in_joint<6>(joint, motion, q);
  }
}

/// hand_on_joint() for forces [link][6][8]; those of the link become zero.
template <int kDofs, class T>
TARSUS_INLINE void hand_on_columns(CoupledColumns<T>& s, T* force) {
  using Row = RowOfEight<T>;
  const CoupledJoint<T>& joint = s.joint;
  T* const own = force + 48 * s.link;
  Row g[kDofs], reduced[kDofs];
  if constexpr (kDofs == 1) {
    T* const f = own + 8 * s.axis_at;
    g[0] = sum(sum(sum(Row{}, s.axis[0], Row::at(f)), s.axis[1], Row::at(f + 8)), s.axis[2], Row::at(f + 16));
  } else {
    for (int d = 0; d < kDofs; ++d) g[d] = Row::at(own + 8 * d);
  }
  for (int d = 0; d < kDofs; ++d) {
    reduced[d] = Row{};
    for (int e = 0; e < kDofs; ++e) reduced[d] = sum(reduced[d], joint.inverse[d * kDofs + e], g[e]);
    reduced[d].store(s.reduced + 8 * d);
  }
  for (int k = 0; k < joint.count; ++k) {
    T* const to = force + 48 * joint.neighbour[2 * k];
    for (int r = 0; r < 6; ++r) {
      Row row = Row::at(to + 8 * r);
      for (int d = 0; d < kDofs; ++d) row = sum(row, -joint.left[8 * (d * joint.count + k) + r], reduced[d]);
      row.store(to + 8 * r);
    }
  }
  if (s.parent >= 0) shift_rows<true>(s.offset, own, force + 48 * s.parent);
  for (int c = 0; c < 6; ++c) Row{}.store(own + 8 * c);
}
/// take_in_joint(), followed by the link's motion X v_p + S q.
template <int kDofs, class T>
TARSUS_INLINE void take_in_columns(const CoupledColumns<T>& s, T* motion) {
  using Row = RowOfEight<T>;
  const CoupledJoint<T>& joint = s.joint;
  Row x[kDofs], v[6] = {};
  for (int d = 0; d < kDofs; ++d) x[d] = Row::at(s.reduced + 8 * d);
  for (int k = 0; k < joint.count; ++k) {
    const T* const from = motion + 48 * joint.neighbour[2 * k];
    for (int c = 0; c < 6; ++c) {
      const Row m = Row::at(from + 8 * c);
      for (int d = 0; d < kDofs; ++d) x[d] = sum(x[d], -joint.right[8 * (d * joint.count + k) + c], m);
    }
  }
  if (s.parent >= 0) {
    const T *const p = motion + 48 * s.parent, *const r = s.offset;
    for (int c = 0; c < 6; ++c) v[c] = Row::at(p + 8 * c);
    v[3] = sum(sum(v[3], r[2], v[1]), -r[1], v[2]);
    v[4] = sum(sum(v[4], r[0], v[2]), -r[2], v[0]);
    v[5] = sum(sum(v[5], r[1], v[0]), -r[0], v[1]);
  }
  for (int c = 0; c < (kDofs == 6 ? 6 : 3); ++c) {
    if constexpr (kDofs == 1)
      v[s.axis_at + c] = sum(v[s.axis_at + c], s.axis[c], x[0]);
    else
      v[c] = v[c] + x[c];
  }
  for (int c = 0; c < 6; ++c) v[c].store(motion + 48 * s.link + 8 * c);
}

/// Solves for eight right sides of forces. @param reached [link] in: whether a force on it is not zero
template <class T>
void solve_columns_kernel(CoupledColumns<T>* steps, int count, char* reached, T* force, T* motion) {
  for (CoupledColumns<T>* s = steps; s < steps + count; ++s) {
    if (!reached[s->link]) {
      for (int d = 0; d < s->joint.dofs; ++d) RowOfEight<T>{}.store(s->reduced + 8 * d);
      continue;
    }
    for (int k = 0; k < s->joint.count; ++k) reached[s->joint.neighbour[2 * k]] = 1;
    switch (s->joint.dofs) {
      case 1: hand_on_columns<1>(*s, force); break;
      case 3: hand_on_columns<3>(*s, force); break;
      default: hand_on_columns<6>(*s, force);
    }
  }
  for (const CoupledColumns<T>* s = steps + count; s-- > steps;) {
    switch (s->joint.dofs) {
      case 1: take_in_columns<1>(*s, motion); break;
      case 3: take_in_columns<3>(*s, motion); break;
      default: take_in_columns<6>(*s, motion);
    }
  }
}
/// J x of eight motions [link][6][8]. @param end [row] end of its arms @param out [row][stride]
template <class T>
void along_columns_kernel(const LinkArm* arms, const int* end, int rows, const T* motion, T* out, int stride) {
  using Row = RowOfEight<T>;
  const LinkArm* arm = arms;
  for (int row = 0; row < rows; ++row) {
    Row all{};
    for (; arm < arms + end[row]; ++arm) {
      for (int c = 0; c < 6; ++c) all = sum(all, T(arm->f[c]), Row::at(motion + 48 * arm->link + 8 * c));
    }
    all.store(out + long(row) * stride);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
