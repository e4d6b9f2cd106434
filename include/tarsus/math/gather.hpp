// Records side by side: the numbers of four records of one layout as packs, a lane for each record, and back. For
// kernels of one world that treat four links at once. The same operations on each lane as on a scalar, hence the same
// bits.
#pragma once

#include <utility>

#include "tarsus/math/row_pack.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// The pack whose lanes hold T's of different records; T itself where T is a pack already, or where the instruction set
/// has no registers of four.
template <class T>
struct RecordPack {
  using type = T;
};
#if defined(__AVX2__)
template <>
struct RecordPack<double> {
  using type = Pack<double, 4>;
};
template <>
struct RecordPack<float> {
  using type = Pack<float, 4>;
};
#endif
/// How many records stand side by side.
template <class T>
inline constexpr int kRecords = int(sizeof(typename RecordPack<T>::type) / sizeof(T));

/// Lane j of pack i becomes lane i of pack j.
template <class R>
TARSUS_INLINE void transpose(Pack<R, 4>& a, Pack<R, 4>& b, Pack<R, 4>& c, Pack<R, 4>& d) {
  using P = Pack<R, 4>;
  if constexpr (sizeof(R) == 8) {  // halves of a register change places last, or first, at one instruction each
    const P ab = P(__builtin_shufflevector(a.value, b.value, 0, 4, 2, 6)),
            AB = P(__builtin_shufflevector(a.value, b.value, 1, 5, 3, 7)),
            cd = P(__builtin_shufflevector(c.value, d.value, 0, 4, 2, 6)),
            CD = P(__builtin_shufflevector(c.value, d.value, 1, 5, 3, 7));
    a = P(__builtin_shufflevector(ab.value, cd.value, 0, 1, 4, 5));
    b = P(__builtin_shufflevector(AB.value, CD.value, 0, 1, 4, 5));
    c = P(__builtin_shufflevector(ab.value, cd.value, 2, 3, 6, 7));
    d = P(__builtin_shufflevector(AB.value, CD.value, 2, 3, 6, 7));
  } else {
    const P ab = P(__builtin_shufflevector(a.value, b.value, 0, 4, 1, 5)),
            AB = P(__builtin_shufflevector(a.value, b.value, 2, 6, 3, 7)),
            cd = P(__builtin_shufflevector(c.value, d.value, 0, 4, 1, 5)),
            CD = P(__builtin_shufflevector(c.value, d.value, 2, 6, 3, 7));
    a = P(__builtin_shufflevector(ab.value, cd.value, 0, 1, 4, 5));
    b = P(__builtin_shufflevector(ab.value, cd.value, 2, 3, 6, 7));
    c = P(__builtin_shufflevector(AB.value, CD.value, 0, 1, 4, 5));
    d = P(__builtin_shufflevector(AB.value, CD.value, 2, 3, 6, 7));
  }
}

/// The numbers from[l][at] to from[l][at + 3] of four records, lane l for record l.
template <class R>
TARSUS_INLINE void gather(const R* const (&from)[4], int at, Pack<R, 4>& a, Pack<R, 4>& b, Pack<R, 4>& c,
                          Pack<R, 4>& d) {
  using P = Pack<R, 4>;
  P w = load_rows<P>(from[0] + at), x = load_rows<P>(from[1] + at), y = load_rows<P>(from[2] + at),
    z = load_rows<P>(from[3] + at);
  transpose(w, x, y, z);
  a = w, b = x, c = y, d = z;
}

/// The other way: to[l][at] becomes lane l of a, …
template <class R>
TARSUS_INLINE void scatter(R* const (&to)[4], int at, Pack<R, 4> a, Pack<R, 4> b, Pack<R, 4> c, Pack<R, 4> d) {
  transpose(a, b, c, d);
  store_rows(to[0] + at, a), store_rows(to[1] + at, b), store_rows(to[2] + at, c), store_rows(to[3] + at, d);
}

/// As scatter(), added to what is there.
template <class R>
TARSUS_INLINE void scatter_add(R* const (&to)[4], int at, Pack<R, 4> a, Pack<R, 4> b, Pack<R, 4> c, Pack<R, 4> d) {
  using P = Pack<R, 4>;
  transpose(a, b, c, d);
  store_rows(to[0] + at, load_rows<P>(to[0] + at) + a), store_rows(to[1] + at, load_rows<P>(to[1] + at) + b);
  store_rows(to[2] + at, load_rows<P>(to[2] + at) + c), store_rows(to[3] + at, load_rows<P>(to[3] + at) + d);
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
