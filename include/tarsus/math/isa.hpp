// The inline namespace of all kernels and of all types used inside kernels.
//
// Kernels are compiled once for each instruction set, in sources that cmake/TarsusKernels.cmake writes. Each source
// sets TARSUS_ISA to its own name, so that the linker cannot pick an inline function compiled for AVX2 for a program
// that runs on SSE2. All other code sees isa_plain, which never fuses a multiplication with an addition, whatever the
// compiler may use. Code outside the kernels therefore gives the same bits everywhere.
#pragma once

#if defined(TARSUS_ISA) && (defined(__FMA__) || defined(__aarch64__))
#define TARSUS_FUSED
#endif
#ifndef TARSUS_ISA
#define TARSUS_ISA isa_plain
#define TARSUS_PLAIN  // not a source of kernels
#endif

#define TARSUS_INLINE inline __attribute__((always_inline))

namespace tarsus {
inline namespace TARSUS_ISA {}  // namespace TARSUS_ISA
}  // namespace tarsus
