// The inline namespace that every kernel and every type used inside kernels lives in.
//
// Kernels are compiled once for each instruction set, in files of ours (src/dynamics/isa/). Each such file sets
// TARSUS_ISA to its own name, so that no inline function compiled for AVX2 can be picked by the linker for a
// program that runs on SSE2. Everybody else sees the baseline.
#pragma once

#ifndef TARSUS_ISA
#define TARSUS_ISA isa_baseline
#endif

#define TARSUS_INLINE inline __attribute__((always_inline))

namespace tarsus {
inline namespace TARSUS_ISA {}  // namespace TARSUS_ISA
}  // namespace tarsus
