// Instantiates the tables of one instruction set. Included last by the sources that cmake/TarsusKernels.cmake writes.
#pragma once

#include "math/kernel_call.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

#if defined(__AVX512F__)
inline constexpr int kPackBytes = 64;
#elif defined(__AVX2__)
inline constexpr int kPackBytes = 32;
#else
inline constexpr int kPackBytes = 16;
#endif

/// Number of adjacent rows of one world in a pack. It is the same for AVX2, AVX-512 (where more gives no gain) and
/// NEON, because sums over rows are formed pack by pack (docs/decisions/0006-the-same-bits.md).
#if defined(__AVX2__) || !defined(__SSE2__)
inline constexpr int kRowBytes = 32;
#else
inline constexpr int kRowBytes = 16;
#endif
template <class R>
using RowPack = Pack<R, kRowBytes / int(sizeof(R))>;
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
