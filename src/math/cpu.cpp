#include "tarsus/math/cpu.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

#include "tarsus/base/error.hpp"

namespace tarsus {

namespace {

// cmake/TarsusKernels.cmake defines the sets of this build, TARSUS_HAS_*.
bool built(IsaLevel level) {
  switch (level) {
#if defined(TARSUS_HAS_avx512)
    case IsaLevel::avx512: return true;
#endif
#if defined(TARSUS_HAS_avx2)
    case IsaLevel::avx2: return true;
#endif
#if defined(TARSUS_HAS_baseline)
    case IsaLevel::baseline: return true;
#endif
    default: return false;
  }
}

bool processor_has([[maybe_unused]] IsaLevel level) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (level == IsaLevel::avx2) return avx2;
  if (level == IsaLevel::avx512) {
    return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
  }
#endif
  return level == IsaLevel::baseline;
}

IsaLevel best_at_most(IsaLevel limit) {
  for (int level = int(limit); level >= 0; --level) {
    if (built(IsaLevel(level)) && processor_has(IsaLevel(level))) return IsaLevel(level);
  }
  throw Error("this build has no kernels for this processor" +
              std::string(limit == IsaLevel::avx512 ? "" : " at or below TARSUS_ISA_LEVEL") +
              "; configure the build with TARSUS_ISA=all");
}

IsaLevel decide() {
  const char* wish = std::getenv("TARSUS_ISA_LEVEL");
  if (!wish || !*wish) return best_at_most(IsaLevel::avx512);
  for (const IsaLevel level : {IsaLevel::baseline, IsaLevel::avx2, IsaLevel::avx512}) {
    if (std::string_view(wish) == name(level)) return best_at_most(level);
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
