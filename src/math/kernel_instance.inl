// Makes the tables of one instruction set. Included last by the sources that cmake/TarsusKernels.cmake writes.
#pragma once

#include "math/kernel_call.inl"

namespace tarsus {
namespace TARSUS_ISA {

#if defined(__AVX512F__)
inline constexpr int kPackBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kPackBytes = 32;
#else
inline constexpr int kPackBytes = 16;
#endif

/// Rows side by side of one world: what a vector holds, but no more than eight.
template <class R>
using RowPack = Pack<R, (kPackBytes / int(sizeof(R)) < 8 ? kPackBytes / int(sizeof(R)) : 8)>;
template <class R>
using WorldPack = Pack<R, kPackBytes / int(sizeof(R))>;

template <class Table>
Table make_table(bool wide) {
  using R = typename Table::Real;
  Table table;
  if (wide)
    fill_table<WorldPack<R>, WorldPack<R>>(table);
  else
    fill_table<R, RowPack<R>>(table);
  return table;
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
