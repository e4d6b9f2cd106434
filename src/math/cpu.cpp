#include "tarsus/math/cpu.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "tarsus/base/error.hpp"

namespace tarsus {

namespace {

IsaLevel best_of_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return IsaLevel::avx512;
  }
  if (avx2) return IsaLevel::avx2;
#endif
  return IsaLevel::baseline;
}

IsaLevel decide() {
  const IsaLevel best = best_of_processor();
  const char* wish = std::getenv("TARSUS_ISA_LEVEL");
  if (!wish || !*wish) return best;
  for (const IsaLevel level : {IsaLevel::baseline, IsaLevel::avx2, IsaLevel::avx512}) {
    if (std::string_view(wish) == name(level)) return std::min(level, best);
  }
  throw ValueError("TARSUS_ISA_LEVEL", wish, "baseline, avx2 or avx512");
}

}  // namespace

const char* name(IsaLevel level) {
  switch (level) {
    case IsaLevel::baseline: return "baseline";
    case IsaLevel::avx2: return "avx2";
    case IsaLevel::avx512: return "avx512";
  }
  return "baseline";
}

IsaLevel isa_level() {
  static const IsaLevel level = decide();
  return level;
}

}  // namespace tarsus
