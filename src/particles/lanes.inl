// Operations on packs for the kernels of this folder: loads, stores, transposes, reciprocal square roots.
#pragma once

#include "tarsus/math/scalar.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

#if defined(__AVX2__) || !defined(__SSE2__)  // NEON: two registers, with the same sums as AVX2
inline constexpr int kLanes = 4;
#else
inline constexpr int kLanes = 2;
#endif
using Lanes = Pack<double, kLanes>;

TARSUS_INLINE Lanes load(const double* p) {
  Lanes r;
  __builtin_memcpy(&r.value, p, sizeof(r.value));
  return r;
}
TARSUS_INLINE void store(double* p, Lanes a) { __builtin_memcpy(p, &a.value, sizeof(a.value)); }

TARSUS_INLINE double sum_of(Lanes a) {
  double sum = a[0];
  for (int i = 1; i < kLanes; ++i) sum += a[i];
  return sum;
}
TARSUS_INLINE double largest_of(Lanes a) {
  double worst = a[0];
  for (int i = 1; i < kLanes; ++i) worst = a[i] > worst ? a[i] : worst;
  return worst;
}
/// One bit for each lane.
TARSUS_INLINE unsigned bits(Lanes::Mask mask) {
#if defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_pd(reinterpret_cast<__m256d>(mask)));
#elif defined(__SSE2__)
  return static_cast<unsigned>(_mm_movemask_pd(reinterpret_cast<__m128d>(mask)));
#else
  unsigned word = 0;
  for (int i = 0; i < kLanes; ++i) word |= (mask[i] ? 1u : 0u) << i;
  return word;
#endif
}
TARSUS_INLINE Lanes::Mask both(Lanes::Mask a, Lanes::Mask b) { return a & b; }

/// Nearest integer, for |x| < 2^51.
TARSUS_INLINE Lanes nearest(Lanes x) {
  const Lanes magic(6755399441055744.0);
  return (x + magic) - magic;
}
TARSUS_INLINE double nearest(double x) { return (x + 6755399441055744.0) - 6755399441055744.0; }

/// A square root and a division take 2 instructions. The processor's estimate with two refinements takes 14. It has a
/// higher throughput, but is slower in the pair loop, which is bound by latency.
TARSUS_INLINE Lanes inverse_square_root(Lanes x) { return Lanes(1.0) / square_root(x); }

/// The four numbers (x, y, z, w) of kLanes particles, transposed.
struct Quad {
  Lanes x, y, z, w;
};
TARSUS_INLINE Quad gather(const double* base, const int* index) {
#if defined(__AVX2__)
  const __m256d a = _mm256_loadu_pd(base + 4 * static_cast<std::int64_t>(index[0]));
  const __m256d b = _mm256_loadu_pd(base + 4 * static_cast<std::int64_t>(index[1]));
  const __m256d c = _mm256_loadu_pd(base + 4 * static_cast<std::int64_t>(index[2]));
  const __m256d d = _mm256_loadu_pd(base + 4 * static_cast<std::int64_t>(index[3]));
  const __m256d ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
  const __m256d cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
  return {Lanes(_mm256_permute2f128_pd(ab0, cd0, 0x20)), Lanes(_mm256_permute2f128_pd(ab1, cd1, 0x20)),
          Lanes(_mm256_permute2f128_pd(ab0, cd0, 0x31)), Lanes(_mm256_permute2f128_pd(ab1, cd1, 0x31))};
#else
  Quad q{Lanes(0.0), Lanes(0.0), Lanes(0.0), Lanes(0.0)};
  for (int i = 0; i < kLanes; ++i) {
    const double* p = base + 4 * static_cast<std::int64_t>(index[i]);
    q.x.set(i, p[0]), q.y.set(i, p[1]), q.z.set(i, p[2]), q.w.set(i, p[3]);
  }
  return q;
#endif
}
/// x, y, z of kLanes consecutive particles.
TARSUS_INLINE void load_consecutive(const double* p, Lanes& x, Lanes& y, Lanes& z) {
#if defined(__AVX2__)
  const __m256d a = _mm256_loadu_pd(p), b = _mm256_loadu_pd(p + 4), c = _mm256_loadu_pd(p + 8);
  const __m256d ab = _mm256_blend_pd(a, b, 0b1100), ac = _mm256_permute2f128_pd(a, c, 0x21);
  const __m256d bc = _mm256_blend_pd(b, c, 0b1100);
  x = Lanes(_mm256_shuffle_pd(ab, ac, 0b1010)), y = Lanes(_mm256_shuffle_pd(ab, bc, 0b0101));
  z = Lanes(_mm256_shuffle_pd(ac, bc, 0b1010));
#else
  for (int i = 0; i < kLanes; ++i) x.set(i, p[3 * i]), y.set(i, p[3 * i + 1]), z.set(i, p[3 * i + 2]);
#endif
}
TARSUS_INLINE void store_consecutive(double* p, Lanes x, Lanes y, Lanes z) {
#if defined(__AVX2__)
  const __m256d xy = _mm256_shuffle_pd(x.value, y.value, 0b0000), zx = _mm256_shuffle_pd(z.value, x.value, 0b1010);
  const __m256d yz = _mm256_shuffle_pd(y.value, z.value, 0b1111);
  _mm256_storeu_pd(p, _mm256_permute2f128_pd(xy, zx, 0x20));
  _mm256_storeu_pd(p + 4, _mm256_blend_pd(yz, xy, 0b1100));
  _mm256_storeu_pd(p + 8, _mm256_permute2f128_pd(zx, yz, 0x31));
#else
  for (int i = 0; i < kLanes; ++i) p[3 * i] = x[i], p[3 * i + 1] = y[i], p[3 * i + 2] = z[i];
#endif
}
/// Subtracts (x, y, z) from the particles' entries, one particle after another, so that an index may repeat.
TARSUS_INLINE void scatter_subtract(double* base, const int* index, Lanes x, Lanes y, Lanes z) {
#if defined(__AVX2__)
  const __m256d o = _mm256_setzero_pd();
  const __m256d xy0 = _mm256_unpacklo_pd(x.value, y.value), xy1 = _mm256_unpackhi_pd(x.value, y.value);
  const __m256d zo0 = _mm256_unpacklo_pd(z.value, o), zo1 = _mm256_unpackhi_pd(z.value, o);
  const __m256d parts[4] = {_mm256_permute2f128_pd(xy0, zo0, 0x20), _mm256_permute2f128_pd(xy1, zo1, 0x20),
                            _mm256_permute2f128_pd(xy0, zo0, 0x31), _mm256_permute2f128_pd(xy1, zo1, 0x31)};
  for (int i = 0; i < 4; ++i) {
    double* p = base + 4 * static_cast<std::int64_t>(index[i]);
    _mm256_storeu_pd(p, _mm256_sub_pd(_mm256_loadu_pd(p), parts[i]));
  }
#else
  for (int i = 0; i < kLanes; ++i) {
    double* p = base + 4 * static_cast<std::int64_t>(index[i]);
    p[0] -= x[i], p[1] -= y[i], p[2] -= z[i];
  }
#endif
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
