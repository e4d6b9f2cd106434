// Picks, once, the table of kernels that this processor runs best. Used by each room that has an isa/ folder.
#pragma once

#include <type_traits>

#include "tarsus/base/error.hpp"
#include "tarsus/math/cpu.hpp"

namespace tarsus {

/// Calls the maker of the best instruction set that was built. Makers are functions (bool wide) -> Table.
/// @throws Error for float in a build with double kernels only
template <class R, class Table>
Table select_isa(bool wide, Table (*baseline)(bool), [[maybe_unused]] Table (*avx2)(bool),
                 [[maybe_unused]] Table (*avx512)(bool)) {
  if (!baseline) throw Error("this build has double kernels only (TARSUS_DOUBLE_ONLY)");
  if (isa_level() == IsaLevel::avx512 && avx512) return avx512(wide);
  if (isa_level() >= IsaLevel::avx2 && avx2) return avx2(wide);
  return baseline(wide);
}

}  // namespace tarsus

// The makers that exist in this build: NAME is the function's name in each instruction set's namespace.
#if defined(__x86_64__)
#define TARSUS_X86(FUNCTION) FUNCTION
#else
#define TARSUS_X86(FUNCTION) static_cast<decltype(&FUNCTION)>(nullptr)
#endif
#if defined(TARSUS_DOUBLE_ONLY)
#define TARSUS_SELECT_DOUBLE(WIDE, NAME) \
  select_isa<double>(WIDE, isa_baseline::NAME, TARSUS_X86(isa_avx2::NAME), decltype (&isa_baseline::NAME)(nullptr))
#define TARSUS_SELECT_FLOAT(WIDE, NAME)                                                                     \
  select_isa<float>(WIDE, decltype (&isa_baseline::NAME)(nullptr), decltype (&isa_baseline::NAME)(nullptr), \
                    decltype (&isa_baseline::NAME)(nullptr))
#else
#define TARSUS_SELECT_DOUBLE(WIDE, NAME) \
  select_isa<double>(WIDE, isa_baseline::NAME, TARSUS_X86(isa_avx2::NAME), TARSUS_X86(isa_avx512::NAME))
#define TARSUS_SELECT_FLOAT(WIDE, NAME) \
  select_isa<float>(WIDE, isa_baseline::NAME, TARSUS_X86(isa_avx2::NAME), TARSUS_X86(isa_avx512::NAME))
#endif
