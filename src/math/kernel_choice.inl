// Selects the instance of a table of kernels for this processor. Included by the source that cmake/TarsusKernels.cmake
// writes.
#pragma once

#include "tarsus/base/error.hpp"
#include "tarsus/math/cpu.hpp"
#include "tarsus/math/kernels.hpp"

namespace tarsus {

/// make(wide) of one table; the macros below specialise it.
template <class Table>
struct KernelChoice;

/// A table for single worlds and one for packs.
template <class Table>
const Table& kernels(int width) {
  static const Table narrow = KernelChoice<Table>::make(false), wide = KernelChoice<Table>::make(true);
  return width == 1 ? narrow : wide;
}

}  // namespace tarsus

#define TARSUS_DEFINE_KERNELS(TABLE, ...)           \
  namespace tarsus {                                \
  template <>                                       \
  struct KernelChoice<TABLE> {                      \
    static TABLE make([[maybe_unused]] bool wide) { \
      using Table [[maybe_unused]] = TABLE;         \
      __VA_ARGS__                                   \
    }                                               \
  };                                                \
  template const TABLE& kernels<TABLE>(int width);  \
  }
/// The available instances of TABLE, the best first, as TARSUS_KERNELS_FOR entries.
#define TARSUS_CHOOSE_KERNELS(TABLE, ...) \
  TARSUS_DEFINE_KERNELS(TABLE, __VA_ARGS__ throw Error("this build has no kernels for this processor");)
#define TARSUS_KERNELS_FOR(ISA) \
  if (isa_level() >= IsaLevel::ISA) return isa_##ISA::make_table<Table>(wide);
#define TARSUS_NO_KERNELS(TABLE) \
  TARSUS_DEFINE_KERNELS(TABLE, throw Error("this build has double precision only; `make build` adds float");)
