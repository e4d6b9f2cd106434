// Gathers the numbers of four records of one layout into packs, a lane for each record, and scatters them back. Kernels
// of one world use it to process four links at once. Each lane performs the same operations as a scalar, hence gives
// the same bits.
#pragma once

#include <utility>

#include "tarsus/math/row_pack.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// The pack whose lanes hold T's of different records. It is T itself if T is already a pack, or if the instruction set
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
/// Number of records processed together.
template <class T>
inline constexpr int kRecords = int(sizeof(typename RecordPack<T>::type) / sizeof(T));

/// Lane j of pack i becomes lane i of pack j.
template <class R>
TARSUS_INLINE void transpose(Pack<R, 4>& a, Pack<R, 4>& b, Pack<R, 4>& c, Pack<R, 4>& d) {
  using P = Pack<R, 4>;
  if constexpr (sizeof(R) == 8) {  // halves of a register are exchanged last, or first, at one instruction each
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

/// The inverse: to[l][at] becomes lane l of a, …
template <class R>
TARSUS_INLINE void scatter(R* const (&to)[4], int at, Pack<R, 4> a, Pack<R, 4> b, Pack<R, 4> c, Pack<R, 4> d) {
  transpose(a, b, c, d);
  store_rows(to[0] + at, a), store_rows(to[1] + at, b), store_rows(to[2] + at, c), store_rows(to[3] + at, d);
}

/// As scatter(), but adds to the present values.
template <class R>
TARSUS_INLINE void scatter_add(R* const (&to)[4], int at, Pack<R, 4> a, Pack<R, 4> b, Pack<R, 4> c, Pack<R, 4> d) {
  using P = Pack<R, 4>;
  transpose(a, b, c, d);
  store_rows(to[0] + at, load_rows<P>(to[0] + at) + a), store_rows(to[1] + at, load_rows<P>(to[1] + at) + b);
  store_rows(to[2] + at, load_rows<P>(to[2] + at) + c), store_rows(to[3] + at, load_rows<P>(to[3] + at) + d);
}

#if defined(__AVX2__)
/// Four numbers at p, or the first `n` and zeros, in P's precision.
template <class P, int n = 4, class R>
TARSUS_INLINE P load_four(const R* p) {
  if constexpr (n == 3 && sizeof(R) == 8 && sizeof(Real<P>) == 8) {
    return P((typename P::Vector)_mm256_maskload_pd(p, _mm256_setr_epi64x(-1, -1, -1, 0)));
  } else if constexpr (n < 4) {
    P x = P(Real<P>(0));
    for (int k = 0; k < n; ++k) x.set(k, Real<P>(p[k]));
    return x;
  } else if constexpr (sizeof(R) == sizeof(Real<P>)) {
    return load_rows<P>(p);
  } else {
    return P(__builtin_convertvector(load_rows<Pack<R, 4>>(p).value, typename P::Vector));
  }
}
template <int n = 4, class P, class R>
TARSUS_INLINE void store_four(R* p, const P& x) {
  if constexpr (n == 3 && sizeof(R) == 8 && sizeof(Real<P>) == 8) {
    _mm256_maskstore_pd(p, _mm256_setr_epi64x(-1, -1, -1, 0), x.value);
  } else if constexpr (n < 4) {
    for (int k = 0; k < n; ++k) p[k] = R(x[k]);
  } else if constexpr (sizeof(R) == sizeof(Real<P>)) {
    store_rows(p, x);
  } else {
    store_rows(p, Pack<R, 4>(__builtin_convertvector(x.value, typename Pack<R, 4>::Vector)));
  }
}

#endif

/// The numbers from[l][at] to from[l][at + n - 1] of as many records as P has lanes, one or four.
template <int n, class P, class R>
TARSUS_INLINE void gather_numbers(const R* const* from, int at, P* out) {
  if constexpr (kWidth<P> == 1) {
    for (int k = 0; k < n; ++k) out[k] = P(from[0][at + k]);
  } else if constexpr (n == 1) {
    using E = Real<P>;
    out[0] = P(typename P::Vector{E(from[0][at]), E(from[1][at]), E(from[2][at]), E(from[3][at])});
  } else {
    constexpr int kMost = n < 4 ? n : 4;  // read and transposed at once; the final block may overlap the previous one
    P x[4];
    for (int l = 0; l < 4; ++l) x[l] = load_four<P, kMost>(from[l] + at);
    transpose(x[0], x[1], x[2], x[3]);
    for (int k = 0; k < kMost; ++k) out[k] = x[k];
    if constexpr (n > 4) {
      constexpr int kStep = n < 8 ? n - 4 : 4;
      gather_numbers<n - kStep>(from, at + kStep, out + kStep);
    }
  }
}

/// The inverse. @param add to the present values
template <int n, bool add = false, class P, class R>
TARSUS_INLINE void scatter_numbers(R* const* to, int at, const P* x) {
  if constexpr (kWidth<P> == 1) {
    for (int k = 0; k < n; ++k) to[0][at + k] = R(x[k]) + (add ? to[0][at + k] : R(0));
  } else {
    constexpr int kMost = n < 4 ? n : 4;
    P y[4] = {};
    for (int k = 0; k < kMost; ++k) y[k] = x[k];
    transpose(y[0], y[1], y[2], y[3]);
    for (int l = 0; l < 4; ++l) {  // sequentially, because two records may be the same
      R* p = to[l] + at;
      store_four<kMost>(p, add ? load_four<P, kMost>(p) + y[l] : y[l]);
    }
    if constexpr (n > 4) scatter_numbers<n - 4, add>(to, at + 4, x + 4);
  }
}

/// Three numbers of each of several contiguous records: p[3 l], p[3 l + 1], p[3 l + 2].
template <class P>
TARSUS_INLINE void load_threes(const Real<P>* p, P* out) {
  if constexpr (kWidth<P> == 1) {
    for (int k = 0; k < 3; ++k) out[k] = P(p[k]);
  } else {
    const auto x = load_rows<P>(p).value, y = load_rows<P>(p + 4).value, z = load_rows<P>(p + 8).value;
    const auto a = __builtin_shufflevector(x, y, 0, 3, 6, 6), b = __builtin_shufflevector(x, y, 1, 4, 7, 7),
               c = __builtin_shufflevector(x, y, 2, 5, 5, 5);
    out[0] = P(__builtin_shufflevector(a, z, 0, 1, 2, 5)), out[1] = P(__builtin_shufflevector(b, z, 0, 1, 2, 6));
    out[2] = P(__builtin_shufflevector(c, z, 0, 1, 4, 7));
  }
}
template <class P>
TARSUS_INLINE void store_threes(Real<P>* p, const P* in) {
  if constexpr (kWidth<P> == 1) {
    for (int k = 0; k < 3; ++k) p[k] = in[k];
  } else {
    const auto a = in[0].value, b = in[1].value, c = in[2].value;
    const auto ab = __builtin_shufflevector(a, b, 0, 4, 1, 1), bc = __builtin_shufflevector(b, c, 1, 5, 2, 2),
               ca = __builtin_shufflevector(c, a, 2, 7, 3, 3);
    store_rows(p, P(__builtin_shufflevector(ab, c, 0, 1, 4, 2)));
    store_rows(p + 4, P(__builtin_shufflevector(__builtin_shufflevector(bc, a, 0, 1, 6, 2), b, 0, 1, 2, 6)));
    store_rows(p + 8, P(__builtin_shufflevector(__builtin_shufflevector(ca, b, 0, 1, 7, 2), c, 0, 1, 2, 7)));
  }
}

/// Three rows of each of several contacts, in arrays of all rows.
template <class P>
struct RowTriples {
  int first[kWidth<P>];    ///< row of each
  bool neighbours = true;  ///< consecutive, so that whole registers can be read and written
  TARSUS_INLINE void find() {
    for (int l = 1; l < kWidth<P>; ++l) neighbours &= first[l] == first[l - 1] + 3;
  }
  TARSUS_INLINE Vec3<P> load(const Real<P>* rows) const {
    P x[4];
    if (neighbours) {
      load_threes(rows + first[0], x);
    } else {
      const Real<P>* from[kWidth<P>];
      for (int l = 0; l < kWidth<P>; ++l) from[l] = rows + first[l];
      gather_numbers<3>(from, 0, x);
    }
    return {x[0], x[1], x[2]};
  }
  TARSUS_INLINE void store(Real<P>* rows, const Vec3<P>& x) const {
    if (neighbours) return store_threes(rows + first[0], &x.x);
    Real<P>* to[kWidth<P>];
    for (int l = 0; l < kWidth<P>; ++l) to[l] = rows + first[l];
    scatter_numbers<3>(to, 0, &x.x);
  }
};

/// Records of a list from `first` on, each with a first_row of three rows. Lanes beyond its end repeat the last record.
template <class P, class Record>
struct RecordRun {
  static constexpr int kLanes = kWidth<P>;
  const Record* at[kLanes];
  int live;
  RowTriples<P> triples;
  TARSUS_INLINE RecordRun(const Record* all, int first, int count)
      : live(count - first < kLanes ? count - first : kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      at[l] = all + first + (l < live ? l : live - 1);
      triples.first[l] = at[l]->first_row;
    }
    triples.find();
  }
};

/// Eight contiguous numbers.
template <class T>
struct RowOfEight {
  using P = typename RecordPack<T>::type;
  static constexpr int kPacks = 8 / kRecords<T>;
  P part[kPacks];

  /// Assembled from numbers in registers, without a detour through memory.
  TARSUS_INLINE static RowOfEight of(const T (&numbers)[8]) {
    RowOfEight row;
    for (int k = 0; k < kPacks; ++k) {
      const T* from = numbers + k * kRecords<T>;
      if constexpr (kPacks == 8)
        row.part[k] = *from;
      else
        row.part[k] = P(typename P::Vector{from[0], from[1], from[2], from[3]});
    }
    return row;
  }
  TARSUS_INLINE static RowOfEight at(const T* p) {
    RowOfEight row;
    for (int k = 0; k < kPacks; ++k) row.part[k] = load_rows<P>(p + k * kRecords<T>);
    return row;
  }
  TARSUS_INLINE void store(T* p) const {
    for (int k = 0; k < kPacks; ++k) store_rows(p + k * kRecords<T>, part[k]);
  }
  TARSUS_INLINE friend RowOfEight operator+(RowOfEight a, const RowOfEight& b) {
    for (int k = 0; k < kPacks; ++k) a.part[k] = a.part[k] + b.part[k];
    return a;
  }
  /// a + x b.
  TARSUS_INLINE friend RowOfEight sum(RowOfEight a, T x, const RowOfEight& b) {
    for (int k = 0; k < kPacks; ++k) a.part[k] = mul_add(P(x), b.part[k], a.part[k]);
    return a;
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
