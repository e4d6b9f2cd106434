// Kernels of delassus.hpp; see kernel_table.hpp.
#pragma once

#include "tarsus/dynamics/delassus.hpp"
#include "tarsus/math/kernels.hpp"
#include "tarsus/model/view.hpp"

namespace tarsus {

/// One block as kernels see it. Strides count numbers (scalar worlds) or packs.
template <class R>
struct RowBlockView {
  int a, b, nrow, stride, ndof;
  int nlink;
  const int* links;         ///< [nlink] descending
  const int* dofs;          ///< [ndof] in their order
  const R* force;           ///< [12][stride] or null
  const R* joint;           ///< [2][stride] (pair), [ndof][stride] (joint block), or null
  R *W, *DW;                ///< [ndof][stride]
  bool below_root = false;  ///< compute only W of a free root
};

template <class R>
RowBlockView<R> view_of(const typename DelassusRows<R>::Block& block, bool below_root = false) {
  return {block.a,
          block.b,
          block.nrow,
          block.stride,
          int(block.dofs.size()),
          int(block.links.size()),
          block.links.data(),
          block.dofs.data(),
          block.force,
          block.joint,
          block.W,
          block.DW,
          below_root};
}

// row_width: rows per vector.
// gram: out[i][j] (+)= sum over k < count of W[k][i] DW[k][j], i < nrow, j < stride of DW; adds if `add`.
//   upper: entries below the diagonal of out are not needed.
#define TARSUS_DELASSUS_KERNELS(KERNEL, SCALAR_KERNEL)                                                                \
  KERNEL(int, row_width, (), row_width_kernel<T, P>)                                                                  \
  KERNEL(void, inward, (const ModelView<R>&, void* state, const R* y, R* u), inward_kernel<T>)                        \
  KERNEL(void, outward, (const ModelView<R>&, void* state, const R* u, R* x), outward_kernel<T>)                      \
  KERNEL(void, read_u, (const ModelView<R>&, const void* state, R* u), read_u_kernel<T>)                              \
  KERNEL(void, sweep_pair, (const ModelView<R>&, const void* state, const RowBlockView<R>&), sweep_pair_kernel<T, P>) \
  KERNEL(void, pair_jacobian, (const ModelView<R>&, const void* state, const RowBlockView<R>&, R* J),                 \
         pair_jacobian_kernel<T, P>)                                                                                  \
  KERNEL(void, sweep_joints, (const ModelView<R>&, const void* state, const RowBlockView<R>&, R* scratch),            \
         sweep_joints_kernel<T, P>)                                                                                   \
  KERNEL(                                                                                                             \
      void, gram,                                                                                                     \
      (int count, int nrow, const R* W, int stride, const R* DW, int stride_d, bool add, bool upper, R* out, int ld), \
      gram_kernel<T, P>)                                                                                              \
  KERNEL(void, velocity, (int ndof, const int* dofs, int nrow, int stride, const R* DW, const R* u, R* Jv),           \
         velocity_kernel<T, P>)                                                                                       \
  KERNEL(void, push, (int ndof, const int* dofs, int nrow, int stride, const R* W, const R* lambda, R sign, R* u),    \
         push_kernel<T, P>)

template <class R>
struct DelassusTable {
  TARSUS_KERNEL_TABLE(R, TARSUS_DELASSUS_KERNELS)
};

template <class R>
const DelassusTable<R>& delassus_table(int width) {
  return kernels<DelassusTable<R>>(width);
}

}  // namespace tarsus
