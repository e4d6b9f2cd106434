// Kernels of delassus.hpp as function pointers; see kernel_table.hpp.
#pragma once

#include <cstddef>

#include "tarsus/math/isa.hpp"
#include "tarsus/model/view.hpp"

namespace tarsus {

/// One block as the kernels see it. Strides count numbers (scalar worlds) or packs.
template <class R>
struct RowBlockView {
  int a, b, nrow, stride, ndof;
  int nlink;
  const int* links;         ///< [nlink] descending
  const int* dofs;          ///< [ndof] in their order
  const R* force;           ///< [12][stride] or null
  const R* joint;           ///< [2][stride] (pair), [ndof][stride] (joint block), or null
  R *W, *DW;                ///< [ndof][stride]
  bool below_root = false;  ///< of a free root W alone is wanted
};

template <class R>
struct DelassusTable {
  int row_width;  ///< rows side by side in one vector
  void (*inward)(const ModelView<R>&, void* state, const R* y, R* u);
  void (*outward)(const ModelView<R>&, void* state, const R* u, R* x);
  void (*read_u)(const ModelView<R>&, const void* state, R* u);
  void (*sweep_pair)(const ModelView<R>&, const void* state, const RowBlockView<R>&);
  void (*sweep_joints)(const ModelView<R>&, const void* state, const RowBlockView<R>&, R* scratch);
  /// out[i][j] (+)= sum over k < count of W[k][i] DW[k][j], i < nrow, j < stride of DW; adds if `add`.
  /// upper: what lies below the diagonal of out is not asked for.
  void (*gram)(int count, int nrow, const R* W, int stride, const R* DW, int stride_d, bool add, bool upper, R* out,
               int ld);
  void (*velocity)(int ndof, const int* dofs, int nrow, int stride, const R* DW, const R* u, R* Jv);
  void (*push)(int ndof, const int* dofs, int nrow, int stride, const R* W, const R* lambda, R sign, R* u);
};

template <class R>
const DelassusTable<R>& delassus_table(int width);

namespace isa_baseline {
DelassusTable<double> delassus_double(bool wide);
DelassusTable<float> delassus_float(bool wide);
}  // namespace isa_baseline
namespace isa_avx2 {
DelassusTable<double> delassus_double(bool wide);
DelassusTable<float> delassus_float(bool wide);
}  // namespace isa_avx2
namespace isa_avx512 {
DelassusTable<double> delassus_double(bool wide);
DelassusTable<float> delassus_float(bool wide);
}  // namespace isa_avx512

}  // namespace tarsus
