// What the elimination of a joint takes from the links that it coupled; see tarsus/dynamics/coupled.hpp.
#pragma once

#include "tarsus/math/gather.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// B_xy -= H_xq (D⁻¹ H_qy) over all pairs x, y of `count` links. Rows of eight numbers, of which six count.
/// @param block [count][count] B_xy's place among blocks of 48 @param left, right H_xq and D⁻¹ H_qy, [dofs][count][8]
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

template <class T>
void eliminate_kernel(int dofs, int count, const int* block, const T* left, const T* right, T* blocks) {
  switch (dofs) {
    case 1: return eliminate_dofs<1>(count, block, left, right, blocks);
    case 3: return eliminate_dofs<3>(count, block, left, right, blocks);
    default: return eliminate_dofs<6>(count, block, left, right, blocks);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
