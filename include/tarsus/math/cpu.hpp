// Selects the instruction set of the kernels: the best that the processor supports, or a lower TARSUS_ISA_LEVEL.
#pragma once

namespace tarsus {

enum class IsaLevel : int { baseline, avx2, avx512 };

/// The level, determined at the first call. The environment variable TARSUS_ISA_LEVEL (baseline, avx2, avx512) can only
/// lower it.
IsaLevel isa_level();
const char* name(IsaLevel level);

/// Number of worlds in a pack of doubles or floats at the current level.
template <class R>
constexpr int lanes(IsaLevel level) {
  return int((16 << int(level)) / sizeof(R));
}

}  // namespace tarsus
