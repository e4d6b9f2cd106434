// Kernel instantiation: how a kernel gets from its .inl file to its callers.
//
// A library directory lists its kernels once, in a macro in the header of its table (src/dynamics/kernel_table.hpp),
// for example:
//
//   KERNEL(void, minv, (const ModelView<R>&, void* state, const R* y, R* x), minv_kernel<T>)
//
// Each entry has: result, name, arguments as callers pass them, the kernel. T is the scalar of the worlds (R, or a pack
// of worlds). P is the scalar of adjacent rows (a pack of rows if T is R, else T). Callers pass plain numbers: where a
// kernel takes T* or LinkState<T>*, they pass R* or void*. A SCALAR_KERNEL exists only for single worlds. The list
// generates the table of function pointers (TARSUS_KERNEL_TABLE) and the code that fills it (TARSUS_FILL_KERNELS, in
// the directory's .inl). cmake/TarsusKernels.cmake writes the sources that instantiate it for each instruction set and
// precision, and the one that selects among them.
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

/// The best kernels for this processor among those that were built (cpu.hpp), chosen at the first call.
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
