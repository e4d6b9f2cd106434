// Which instruction set the kernels run with: the best that the processor has, unless TARSUS_ISA_LEVEL says otherwise.
#pragma once

namespace tarsus {

enum class IsaLevel : int { baseline, avx2, avx512 };

/// Decided once, at the first call. The environment variable TARSUS_ISA_LEVEL (baseline, avx2, avx512) can only lower
/// it.
IsaLevel isa_level();
const char* name(IsaLevel level);

/// Worlds in a pack of doubles or floats at that level.
template <class R>
constexpr int lanes(IsaLevel level) {
  return int((16 << int(level)) / sizeof(R));
}

}  // namespace tarsus
