// Scalar: double, float, or a Pack of worlds. Kernels are templates over these types.
//
// A Pack<R, W> holds one number for each of W worlds. Arithmetic is by lane. There is no branch on data, only
// select(mask, a, b). Every multiply-add that matters is written mul_add(), and contraction is off in the whole
// library, so that a lane and a scalar run perform the same roundings and agree to the bit.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "tarsus/math/isa.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// The compiler's vector type with W elements.
template <class E, int W>
struct VectorOf {
  typedef E type __attribute__((vector_size(sizeof(E) * W)));
};

template <class R, int W>
struct Pack {
  static_assert(std::is_floating_point_v<R> && W >= 2 && (W & (W - 1)) == 0);
  using Vector = typename VectorOf<R, W>::type;
  using Mask = typename VectorOf<std::conditional_t<sizeof(R) == 8, std::int64_t, std::int32_t>, W>::type;
  Vector value;

  Pack() = default;
  TARSUS_INLINE Pack(R x) : value(x - Vector{}) {}  // all lanes equal
  TARSUS_INLINE explicit Pack(Vector v) : value(v) {}

  R operator[](int lane) const { return value[lane]; }
  void set(int lane, R x) { value[lane] = x; }

  friend TARSUS_INLINE Pack operator+(Pack a, Pack b) { return Pack(a.value + b.value); }
  friend TARSUS_INLINE Pack operator-(Pack a, Pack b) { return Pack(a.value - b.value); }
  friend TARSUS_INLINE Pack operator*(Pack a, Pack b) { return Pack(a.value * b.value); }
  friend TARSUS_INLINE Pack operator/(Pack a, Pack b) { return Pack(a.value / b.value); }
  friend TARSUS_INLINE Pack operator-(Pack a) { return Pack(-a.value); }
  TARSUS_INLINE Pack& operator+=(Pack b) { return value += b.value, *this; }
  TARSUS_INLINE Pack& operator-=(Pack b) { return value -= b.value, *this; }
  TARSUS_INLINE Pack& operator*=(Pack b) { return value *= b.value, *this; }

  friend TARSUS_INLINE Mask operator<(Pack a, Pack b) { return (Mask)(a.value < b.value); }
  friend TARSUS_INLINE Mask operator>(Pack a, Pack b) { return (Mask)(a.value > b.value); }
  friend TARSUS_INLINE Mask operator<=(Pack a, Pack b) { return (Mask)(a.value <= b.value); }
  friend TARSUS_INLINE Mask operator>=(Pack a, Pack b) { return (Mask)(a.value >= b.value); }
  friend TARSUS_INLINE Mask operator==(Pack a, Pack b) { return (Mask)(a.value == b.value); }
};

// Traits: the real number type of a scalar, and its number of worlds.
template <class T>
struct ScalarTraits {
  using Real = T;
  using Mask = bool;
  using Bits = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  static constexpr int width = 1;
};
template <class R, int W>
struct ScalarTraits<Pack<R, W>> {
  using Real = R;
  using Mask = typename Pack<R, W>::Mask;
  using Bits = typename Pack<R, W>::Mask;
  static constexpr int width = W;
};
template <class T>
using Real = typename ScalarTraits<T>::Real;
template <class T>
using Mask = typename ScalarTraits<T>::Mask;
/// The integers that hold a scalar's bits, lane by lane.
template <class T>
using Bits = typename ScalarTraits<T>::Bits;
template <class T>
inline constexpr int kWidth = ScalarTraits<T>::width;

template <class T>
TARSUS_INLINE Bits<T> to_bits(T x) {
  return __builtin_bit_cast(Bits<T>, x);
}
template <class T>
TARSUS_INLINE T from_bits(std::type_identity_t<Bits<T>> x) {
  return __builtin_bit_cast(T, x);
}

/// mask ? a : b by lane; scalars also avoid a jump that could be mispredicted.
TARSUS_INLINE double select(bool mask, double a, double b) {
  const std::int64_t m = -std::int64_t(mask);
  return from_bits<double>((to_bits(a) & m) | (to_bits(b) & ~m));
}
TARSUS_INLINE float select(bool mask, float a, float b) {
  const std::int32_t m = -std::int32_t(mask);
  return from_bits<float>((to_bits(a) & m) | (to_bits(b) & ~m));
}
template <class R, int W>
TARSUS_INLINE Pack<R, W> select(typename Pack<R, W>::Mask mask, Pack<R, W> a, Pack<R, W> b) {
  return Pack<R, W>(mask ? a.value : b.value);
}

/// a b + c with one rounding if the instruction set has it, else with two; the same for scalars and packs.
#if defined(TARSUS_FUSED)
TARSUS_INLINE double mul_add(double a, double b, double c) { return __builtin_fma(a, b, c); }
TARSUS_INLINE float mul_add(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
#else
TARSUS_INLINE double mul_add(double a, double b, double c) { return a * b + c; }
TARSUS_INLINE float mul_add(float a, float b, float c) { return a * b + c; }
#endif
template <class R, int W>
TARSUS_INLINE Pack<R, W> mul_add(Pack<R, W> a, Pack<R, W> b, Pack<R, W> c) {
#if !defined(TARSUS_FUSED)
  return a * b + c;
#elif defined(__FMA__)
  if constexpr (std::is_same_v<R, double> && W == 4) {
    return Pack<R, W>(_mm256_fmadd_pd(a.value, b.value, c.value));
  } else if constexpr (std::is_same_v<R, float> && W == 8) {
    return Pack<R, W>(_mm256_fmadd_ps(a.value, b.value, c.value));
  } else if constexpr (std::is_same_v<R, double> && W == 2) {
    return Pack<R, W>(_mm_fmadd_pd(a.value, b.value, c.value));
  } else if constexpr (std::is_same_v<R, float> && W == 4) {
    return Pack<R, W>(_mm_fmadd_ps(a.value, b.value, c.value));
#if defined(__AVX512F__)
  } else if constexpr (std::is_same_v<R, double> && W == 8) {
    return Pack<R, W>(_mm512_fmadd_pd(a.value, b.value, c.value));
  } else if constexpr (std::is_same_v<R, float> && W == 16) {
    return Pack<R, W>(_mm512_fmadd_ps(a.value, b.value, c.value));
#endif
  } else {
    Pack<R, W> r;
    for (int i = 0; i < W; ++i) r.value[i] = mul_add(a.value[i], b.value[i], c.value[i]);
    return r;
  }
#else
  Pack<R, W> r;
  for (int i = 0; i < W; ++i) r.value[i] = mul_add(a.value[i], b.value[i], c.value[i]);
  return r;
#endif
}
/// c - a b, rounded as mul_add(-a, b, c).
TARSUS_INLINE double neg_mul_add(double a, double b, double c) { return mul_add(-a, b, c); }
TARSUS_INLINE float neg_mul_add(float a, float b, float c) { return mul_add(-a, b, c); }
template <class R, int W>
TARSUS_INLINE Pack<R, W> neg_mul_add(Pack<R, W> a, Pack<R, W> b, Pack<R, W> c) {
  // Uses the instruction directly: for a number that is equal in all lanes, the compiler would emit a separate
  // negation.
#if defined(TARSUS_FUSED) && defined(__FMA__)
  if constexpr (std::is_same_v<R, double> && W == 4)
    return Pack<R, W>(_mm256_fnmadd_pd(a.value, b.value, c.value));
  else if constexpr (std::is_same_v<R, float> && W == 8)
    return Pack<R, W>(_mm256_fnmadd_ps(a.value, b.value, c.value));
  else
#endif
    return mul_add(-a, b, c);
}

TARSUS_INLINE double square_root(double x) { return __builtin_sqrt(x); }
TARSUS_INLINE float square_root(float x) { return __builtin_sqrtf(x); }
template <class R, int W>
TARSUS_INLINE Pack<R, W> square_root(Pack<R, W> x) {
  [[maybe_unused]] constexpr int kBytes = sizeof(R) * W;
#if defined(__AVX512F__)
  if constexpr (kBytes == 64) {
    if constexpr (sizeof(R) == 8)
      return Pack<R, W>(_mm512_sqrt_pd(x.value));
    else
      return Pack<R, W>(_mm512_sqrt_ps(x.value));
  }
#endif
#if defined(__AVX__)
  if constexpr (kBytes == 32) {
    if constexpr (sizeof(R) == 8)
      return Pack<R, W>(_mm256_sqrt_pd(x.value));
    else
      return Pack<R, W>(_mm256_sqrt_ps(x.value));
  }
#endif
#if defined(__SSE2__)
  if constexpr (kBytes == 16) {
    if constexpr (sizeof(R) == 8)
      return Pack<R, W>(_mm_sqrt_pd(x.value));
    else
      return Pack<R, W>(_mm_sqrt_ps(x.value));
  }
#endif
  for (int i = 0; i < W; ++i) x.value[i] = square_root(x.value[i]);
  return x;
}

/// Whether the mask holds in every lane.
TARSUS_INLINE bool all_lanes(bool mask) { return mask; }
template <class V>
requires(sizeof(V) >= 16) TARSUS_INLINE bool all_lanes(V mask) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64)
    return _mm512_movepi32_mask((__m512i)mask) == 0xffff;  // by halves if lanes have 64 bits
#endif
#if defined(__AVX__)
  if constexpr (sizeof(V) == 32) return _mm256_movemask_ps((__m256)mask) == 0xff;
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(V) == 16) return _mm_movemask_epi8((__m128i)mask) == 0xffff;
#endif
  bool all = true;
  for (std::size_t i = 0; i < sizeof(V) / sizeof(mask[0]); ++i) all = all && mask[i];
  return all;
}
/// Whether the mask holds in at least one lane.
TARSUS_INLINE bool any_lane(bool mask) { return mask; }
template <class V>
requires(sizeof(V) >= 16) TARSUS_INLINE bool any_lane(V mask) {
#if defined(__AVX512F__)
  if constexpr (sizeof(V) == 64) return _mm512_movepi32_mask((__m512i)mask) != 0;
#endif
#if defined(__AVX__)
  if constexpr (sizeof(V) == 32) return _mm256_movemask_ps((__m256)mask) != 0;
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(V) == 16) return _mm_movemask_epi8((__m128i)mask) != 0;
#endif
  bool any = false;
  for (std::size_t i = 0; i < sizeof(V) / sizeof(mask[0]); ++i) any = any || mask[i];
  return any;
}

/// Lane l of the result is lane from[l] of the vector, modulo the width.
template <class V, class I>
TARSUS_INLINE V permute_bits(V x, I from) {
#if defined(__clang__)  // which has no shuffle by numbers that are not constant
  constexpr int kWords = sizeof(V) / sizeof(x[0]);
  V out;
  for (int l = 0; l < kWords; ++l) out[l] = x[from[l] & (kWords - 1)];
  return out;
#else
  return __builtin_shuffle(x, from);
#endif
}
template <class R, int W>
TARSUS_INLINE Pack<R, W> permute(Pack<R, W> x, typename Pack<R, W>::Mask from) {
  return Pack<R, W>(permute_bits(x.value, from));
}

TARSUS_INLINE double absolute(double x) { return __builtin_fabs(x); }
TARSUS_INLINE float absolute(float x) { return __builtin_fabsf(x); }
template <class R, int W>
TARSUS_INLINE Pack<R, W> absolute(Pack<R, W> x) {
  using Word = Bits<R>;
  constexpr Word kAllButTheSign = Word(~(std::make_unsigned_t<Word>(1) << (8 * sizeof(Word) - 1)));
  return from_bits<Pack<R, W>>(to_bits(x) & kAllButTheSign);
}
/// a < b ? a : b; b if either is NaN. One instruction.
TARSUS_INLINE double minimum(double a, double b) { return a < b ? a : b; }
TARSUS_INLINE float minimum(float a, float b) { return a < b ? a : b; }
template <class R, int W>
TARSUS_INLINE Pack<R, W> minimum(Pack<R, W> a, Pack<R, W> b) {
  return Pack<R, W>(a.value < b.value ? a.value : b.value);
}
/// a > b ? a : b; b if either is NaN.
TARSUS_INLINE double maximum(double a, double b) { return a > b ? a : b; }
TARSUS_INLINE float maximum(float a, float b) { return a > b ? a : b; }
template <class R, int W>
TARSUS_INLINE Pack<R, W> maximum(Pack<R, W> a, Pack<R, W> b) {
  return Pack<R, W>(a.value > b.value ? a.value : b.value);
}
template <class T>
TARSUS_INLINE T clamp(T x, T low, T high) {
  return minimum(maximum(x, low), high);
}

/// 2 to minus the exponent of x > 0, so that x times the result is in [1, 2). Subnormal numbers give the result of the
/// least normal number.
template <class T>
TARSUS_INLINE T power_to_unit(T x) {
  using R = Real<T>;
  constexpr int kFraction = std::numeric_limits<R>::digits - 1;
  constexpr Bits<R> kExponent = Bits<R>(std::numeric_limits<R>::max_exponent * 2 - 1) << kFraction;
  return from_bits<T>((kExponent - (Bits<R>(1) << kFraction)) - (to_bits(x) & kExponent));
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
