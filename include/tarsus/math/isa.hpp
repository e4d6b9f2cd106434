// The inline namespace that every kernel and every type used inside kernels lives in.
//
// Kernels are compiled once for each instruction set, in sources that cmake/TarsusKernels.cmake writes. Each sets
// TARSUS_ISA to its own name, so that no inline function compiled for AVX2 can be picked by the linker for a
// program that runs on SSE2. Everybody else sees isa_plain, which never fuses a multiplication with an addition,
// whatever the compiler may use: so all but the kernels gives the same bits everywhere.
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
