// One text, many instances: how a kernel gets from its .inl file to its callers.
//
// A room lists its kernels once, in a macro of its table's header (src/dynamics/kernel_table.hpp), for example:
//
//   KERNEL(void, minv, (const ModelView<R>&, void* state, const R* y, R* x), minv_kernel<T>)
//
// Each entry is: result, name, arguments as callers pass them, the kernel. T is the scalar of the worlds (R, or a pack
// of worlds), P that of rows side by side (a pack of rows where T is R, else T). Callers pass plain numbers; what a
// kernel takes as T* or LinkState<T>* they pass as R* or void*. A SCALAR_KERNEL exists for single worlds only.
// From the list come the table of function pointers (TARSUS_KERNEL_TABLE) and its filling (TARSUS_FILL_KERNELS, in the
// room's .inl). cmake/TarsusKernels.cmake writes the sources that instantiate it for each instruction set and
// precision, and the one that chooses.
#pragma once

#include "tarsus/math/isa.hpp"

namespace tarsus {

#if defined(TARSUS_PLAIN)
// Defined by src/math/kernel_instance.inl in the sources that CMake writes.
namespace isa_baseline {
template <class Table>
Table make_table(bool wide);
}  // namespace isa_baseline
namespace isa_avx2 {
template <class Table>
Table make_table(bool wide);
}  // namespace isa_avx2
namespace isa_avx512 {
template <class Table>
Table make_table(bool wide);
}  // namespace isa_avx512
#endif

/// The kernels that this processor runs best of those that were built (cpu.hpp), chosen at the first call.
/// @param width worlds in a pack: 1, or lanes<R>(isa_level())
/// @throws Error for float in a build with double kernels only
template <class Table>
const Table& kernels(int width = 1);

}  // namespace tarsus

/// The members of a table of kernels: `using Real` and a function pointer for each kernel of LIST.
#define TARSUS_KERNEL_TABLE(REAL, LIST) \
  using Real = REAL;                    \
  LIST(TARSUS_KERNEL_MEMBER, TARSUS_KERNEL_MEMBER)
#define TARSUS_KERNEL_MEMBER(RESULT, NAME, ARGUMENTS, ...) RESULT(*NAME) ARGUMENTS = nullptr;
