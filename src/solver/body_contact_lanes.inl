// Transposes records of eight numbers of W bodies into eight packs and back.
#pragma once

#include "tarsus/math/gather.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

#if defined(__AVX2__)

TARSUS_INLINE void transpose4(__m256& a, __m256& b, __m256& c, __m256& d) {  // within each half
  const __m256 ab0 = _mm256_unpacklo_ps(a, b), ab1 = _mm256_unpackhi_ps(a, b);
  const __m256 cd0 = _mm256_unpacklo_ps(c, d), cd1 = _mm256_unpackhi_ps(c, d);
  a = _mm256_shuffle_ps(ab0, cd0, 0x44), b = _mm256_shuffle_ps(ab0, cd0, 0xee);
  c = _mm256_shuffle_ps(ab1, cd1, 0x44), d = _mm256_shuffle_ps(ab1, cd1, 0xee);
}
TARSUS_INLINE void gather_records(const float* base, const int* body, Pack<float, 8>* out) {
  for (int half = 0; half < 2; ++half) {
    __m256 r[4];
    for (int i = 0; i < 4; ++i) {
      r[i] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(base + 8 * std::size_t(body[i]) + 4 * half)),
                                  _mm_load_ps(base + 8 * std::size_t(body[i + 4]) + 4 * half), 1);
    }
    transpose4(r[0], r[1], r[2], r[3]);
    for (int i = 0; i < 4; ++i) out[4 * half + i].value = r[i];
  }
}
TARSUS_INLINE void scatter_records(float* base, const int* body, const Pack<float, 8>* in) {
  for (int half = 0; half < 2; ++half) {
    __m256 r[4];
    for (int i = 0; i < 4; ++i) r[i] = in[4 * half + i].value;
    transpose4(r[0], r[1], r[2], r[3]);
    for (int i = 0; i < 4; ++i) {
      _mm_store_ps(base + 8 * std::size_t(body[i]) + 4 * half, _mm256_castps256_ps128(r[i]));
      _mm_store_ps(base + 8 * std::size_t(body[i + 4]) + 4 * half, _mm256_extractf128_ps(r[i], 1));
    }
  }
}

#endif

template <class R>
TARSUS_INLINE void gather_records(const R* base, const int* body, Pack<R, 4>* out) {
  const R* from[4];
  for (int i = 0; i < 4; ++i) from[i] = base + 8 * std::size_t(body[i]);
  gather(from, 0, out[0], out[1], out[2], out[3]), gather(from, 4, out[4], out[5], out[6], out[7]);
}
template <class R>
TARSUS_INLINE void scatter_records(R* base, const int* body, const Pack<R, 4>* in) {
  R* to[4];
  for (int i = 0; i < 4; ++i) to[i] = base + 8 * std::size_t(body[i]);
  scatter(to, 0, in[0], in[1], in[2], in[3]), scatter(to, 4, in[4], in[5], in[6], in[7]);
}

template <class R, int W>
TARSUS_INLINE void gather_records(const R* base, const int* body, Pack<R, W>* out) {
  for (int k = 0; k < 8; ++k) {
    R numbers[W];
    for (int lane = 0; lane < W; ++lane) numbers[lane] = base[8 * std::size_t(body[lane]) + std::size_t(k)];
    out[k] = load_rows<Pack<R, W>>(numbers);
  }
}
template <class R, int W>
TARSUS_INLINE void scatter_records(R* base, const int* body, const Pack<R, W>* in) {
  for (int lane = 0; lane < W; ++lane) {
    for (int k = 0; k < 8; ++k) base[8 * std::size_t(body[lane]) + std::size_t(k)] = in[k].value[lane];
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
