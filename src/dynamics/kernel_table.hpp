// The kernels of this room as function pointers: one table for each real type, instruction set and width.
#pragma once

#include <cstddef>

#include "tarsus/math/isa.hpp"
#include "tarsus/model/view.hpp"

namespace tarsus {

/// Arrays are those of one pack: [n][lane]. `state` is LinkState<T>[nlink].
template <class R>
struct KernelTable {
  int width = 0;  ///< lanes; 0: not built
  void (*kinematics)(const ModelView<R>&, void* state, const R* qpos, const R* qvel);
  void (*jacobian)(const ModelView<R>&, const void* state, int link, const R* point, R* J);
  void (*rnea)(const ModelView<R>&, void* state, const R* qpos, const R* qvel, const R* qacc, const R* external,
               R* tau);
  void (*crba)(const ModelView<R>&, void* state, const R* qpos, R* M);
  void (*aba)(const ModelView<R>&, void* state, const R* qpos, const R* qvel, const R* Q, const R* K, const R* external,
              R* qacc);
  void (*factor)(const ModelView<R>&, void* state, const R* qpos, const R* K);
  void (*minv)(const ModelView<R>&, void* state, const R* y, R* x);
  void (*prepare_loads)(const ModelView<R>&, void* state);
  /// loads: LinkLoad of the table's lanes
  void (*solve_loaded)(const ModelView<R>&, void* state, const R* K, const R* Q, const int* load_of_link,
                       const void* loads, R* x);
  void (*integrate)(const ModelView<R>&, const R* qpos, const R* qvel, R dt, R* out);
};

/// The table for this processor. @throws Error if the library was built without this real type.
template <class R>
const KernelTable<R>& kernel_table(int width);

// One function for each file in isa/.
namespace isa_baseline {
KernelTable<double> kernels_double(bool wide);
KernelTable<float> kernels_float(bool wide);
}  // namespace isa_baseline
namespace isa_avx2 {
KernelTable<double> kernels_double(bool wide);
KernelTable<float> kernels_float(bool wide);
}  // namespace isa_avx2
namespace isa_avx512 {
KernelTable<double> kernels_double(bool wide);
KernelTable<float> kernels_float(bool wide);
}  // namespace isa_avx512

}  // namespace tarsus
