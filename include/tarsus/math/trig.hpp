// Branch-free sin, cos, exp and quaternion logarithm factor, with the same roundings for scalars and packs.
#pragma once

#include "tarsus/math/scalar.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// c[0] + c[1] x + c[2] x² + … by Estrin's scheme: halves are summed independently, so that the latency grows with the
/// logarithm of the degree.
template <int First, int Count, class T, std::size_t N>
TARSUS_INLINE T polynomial_part(const T* powers, const double (&c)[N]) {
  if constexpr (Count == 1) {
    return T(Real<T>(c[First]));
  } else {
    constexpr int kLog = Count <= 2 ? 0 : Count <= 4 ? 1 : Count <= 8 ? 2 : Count <= 16 ? 3 : 4;
    constexpr int kLow = 1 << kLog;
    return mul_add(polynomial_part<First + kLow, Count - kLow>(powers, c), powers[kLog],
                   polynomial_part<First, kLow>(powers, c));
  }
}
template <class T, std::size_t N>
TARSUS_INLINE T polynomial(T x, const double (&c)[N]) {
  static_assert(N <= 32);
  const T x2 = x * x, x4 = x2 * x2, x8 = x4 * x4;
  const T powers[5] = {x, x2, x4, x8, x8 * x8};
  return polynomial_part<0, N>(powers, c);
}

/// sin x and cos x. The error is under 1 ulp for |x| <= 1e5, and the absolute error is under 1e-15 |x| beyond. NaN for
/// |x| > 2^30 (such an angle indicates a diverged state, which the step's status check reports) and for NaN. Reduction
/// to [-pi/4, pi/4] by Cody and Waite, then the minimax polynomials of fdlibm.
template <class T>
TARSUS_INLINE void sincos(T x, T& s, T& c) {
  using R = Real<T>;
  constexpr bool kDouble = sizeof(R) == 8;
  constexpr R kRound = kDouble ? R(6755399441055744.0) : R(12582912.0);  // 1.5 * 2^(mantissa bits)
  constexpr R kLimit = kDouble ? R(1073741824.0) : R(4194304.0);
  // Adding kRound leaves the nearest integer k of x * 2/pi in the low bits. The three parts of pi/2 have trailing
  // zeros, so that k * part is exact even without a fused multiply-add.
  const T shifted = mul_add(x, T(R(0.63661977236758134308)), T(kRound));
  const T k = shifted - T(kRound);
  T r;
  if constexpr (kDouble) {
    r = neg_mul_add(k, T(R(1.57079632673412561417e+00)), x);
    r = neg_mul_add(k, T(R(6.07710050630396597660e-11)), r);
    r = neg_mul_add(k, T(R(2.02226624879595063154e-21)), r);
  } else {
    r = neg_mul_add(k, T(R(1.5703125f)), x);
    r = neg_mul_add(k, T(R(4.837512969970703125e-4f)), r);
    r = neg_mul_add(k, T(R(7.54978995489188216e-8f)), r);
  }
  r = select(absolute(x) <= T(kLimit), r, T(std::numeric_limits<R>::quiet_NaN()));
  const T z = r * r;
  T sin_r, cos_r;
  if constexpr (kDouble) {
    constexpr double kSin[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,  -1.98412698298579493134e-04,
                               2.75573137070700676789e-06,  -2.50507602534068634195e-08, 1.58969099521155010221e-10};
    constexpr double kCos[] = {4.16666666666666019037e-02,  -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                               -2.75573143513906633035e-07, 2.08757232129817482790e-09,  -1.13596475577881948265e-11};
    sin_r = polynomial(z, kSin), cos_r = polynomial(z, kCos);
  } else {
    constexpr double kSin[] = {-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4};
    constexpr double kCos[] = {4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5};
    sin_r = polynomial(z, kSin), cos_r = polynomial(z, kCos);
  }
  sin_r = mul_add(r * z, sin_r, r);
  cos_r = mul_add(z * z, cos_r, neg_mul_add(T(R(0.5)), z, T(R(1))));
  // Odd quadrants swap sin and cos; the second bit of the quadrant (of the next quadrant for cos) is the sign.
  const Bits<T> quadrant = to_bits(shifted);
  const Bits<T> odd = -(quadrant & 1);
  constexpr int kTop = 8 * sizeof(R) - 2;
  const Bits<T> sin_bits = to_bits(sin_r), cos_bits = to_bits(cos_r), mixed = (sin_bits ^ cos_bits) & odd;
  s = from_bits<T>(sin_bits ^ mixed ^ ((quadrant & 2) << kTop));
  c = from_bits<T>(cos_bits ^ mixed ^ (((quadrant + 1) & 2) << kTop));
}

/// e^x for x <= 0, 1 ulp; 0 where it would be under the smallest normal number. NaN for NaN.
template <class T>
TARSUS_INLINE T exp_of_negative(T x) {
  using R = Real<T>;
  constexpr bool kDouble = sizeof(R) == 8;
  constexpr R kRound = kDouble ? R(6755399441055744.0) : R(12582912.0);  // as above: 2^k e^r, k in the low bits
  const T shifted = mul_add(x, T(R(1.4426950408889634)), T(kRound)), k = shifted - T(kRound);
  T r, tail;  // e^r = 1 + r + r² tail; Taylor's series, |r| <= ln 2 / 2
  if constexpr (kDouble) {
    r = neg_mul_add(k, T(R(0.6931471804855391)), x);
    r = neg_mul_add(k, T(R(7.440617110012397e-11)), r);
    constexpr double kTail[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                                1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                                1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    tail = polynomial(r, kTail);
  } else {
    r = neg_mul_add(k, T(R(0.693359375f)), x);
    r = neg_mul_add(k, T(R(-2.12194440e-4f)), r);
    constexpr double kTail[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040};
    tail = polynomial(r, kTail);
  }
  const T e = T(R(1)) + mul_add(r * r, tail, r);
  const T scaled = from_bits<T>(to_bits(e) + (to_bits(shifted) << (kDouble ? 52 : 23)));
  constexpr R kLeast = kDouble ? R(-708) : R(-87);
  return select(x < T(kLeast), T(R(0)), select(x >= T(kLeast), scaled, x));
}

/// 2 acos(w) / sqrt(1 - w²), the factor from a unit quaternion's vector part to its rotation vector, for 0 <= w <= 1.
/// It is analytic there (its only singularity is w = -1), so the terms of a Chebyshev series in 2 w - 1 decrease by a
/// factor of 5.8 each. The relative error is 1.3e-16 with these 22 terms, and 2e-9 with the 11 for float. No root, no
/// division, no branch.
template <class T>
TARSUS_INLINE T log_factor(T w) {
  const T x = mul_add(T(Real<T>(2)), w, T(Real<T>(-1)));
  if constexpr (sizeof(Real<T>) == 8) {
    constexpr double c[] = {
        2.4183991523122903,     -0.5272002825625699,    0.1394663841040939,     -0.03967429384496078,
        0.011723257949912849,   -0.003545856922149861,  0.0010895479762903053,  -0.0003386198954768785,
        0.00010614740626590232, -3.349828269667793e-05, 1.0628575106955448e-05, -3.387290701190628e-06,
        1.0837147324937685e-06, -3.477453678471158e-07, 1.1151712305266348e-07, -3.596281510206841e-08,
        1.206432221021364e-08,  -3.906886478328325e-09, 9.371440136504279e-10,  -3.038239920526009e-10,
        2.3761443559639254e-10, -7.744796040381597e-11};
    return polynomial(x, c);
  } else {
    constexpr double c[] = {2.4183991523122903,     -0.5272003314071968,    0.13946639975516112,
                            -0.039673321982049016,  0.0117229465488944,     -0.0035512284509674497,
                            0.0010912687586588655,  -0.0003266685810977141, 0.00010231883534251416,
                            -4.477242279052833e-05, 1.4239097015550596e-05};
    return polynomial(x, c);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
