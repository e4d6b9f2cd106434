#include "tarsus/math/elementary.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "tarsus/math/rotation.hpp"
#include "tarsus/math/trig.hpp"

namespace tarsus::elementary {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
// ln 2 in two parts; the first has 33 bits, so that its product with an exponent is exact.
constexpr double kLn2High = 0.6931471804855391, kLn2Low = 7.440617110012397e-11;

/// c[0] + c[1] x + c[2] x² + ... by Horner's scheme.
template <std::size_t N>
double horner(double x, const double (&c)[N]) {
  double sum = c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

double reduced(double x) { return std::abs(x) <= 1e5 ? x : std::remainder(x, 2 * kPi); }

}  // namespace

double sin(double x) {
  double s, c;
  sincos(reduced(x), s, c);
  return s;
}

double cos(double x) {
  double s, c;
  sincos(reduced(x), s, c);
  return c;
}

double atan2(double y, double x) {
  if (std::isnan(x) || std::isnan(y)) return kNaN;
  double high = std::abs(x), low = std::abs(y);
  const bool swapped = low > high;
  if (swapped) std::swap(high, low);
  if (high == kInfinity) low = low == kInfinity ? 1 : 0, high = 1;
  if (high > 1e300) low *= 0x1p-10, high *= 0x1p-10;
  // The angle is a multiple of pi/4 and atan q with |q| <= tan(pi/8).
  int eighths = 0;
  double q = high > 0 ? low / high : 0;
  if (q > 0.41421356237309503) eighths = 1, q = (low - high) / (low + high);
  if (swapped) eighths = 2 - eighths, q = -q;
  if (std::signbit(x)) eighths = 4 - eighths, q = -q;
  // (atan q / q - 1)/q² at Chebyshev's nodes
  constexpr double kAtan[] = {-0.33333333333333331,  0.19999999999995513,  -0.1428571428466518,   0.11111111015146714,
                              -0.090909045736690605, 0.076921830873420263, -0.066645099898180446, 0.058581362519061465,
                              -0.050853834888428311, 0.039229744536612231, -0.019174543572021332};
  constexpr double kHigh[] = {0, 0.7853981633974483, 1.5707963267948966, 2.356194490192345, 3.141592653589793};
  constexpr double kLow[] = {0, 3.061616997868383e-17, 6.123233995736766e-17, 9.184850993605148e-17,
                             1.2246467991473532e-16};
  const double z = q * q, rest = q * (z * horner(z, kAtan)) + kLow[eighths];
  return std::copysign(kHigh[eighths] + (q + rest), y);
}

double acos(double x) { return atan2(std::sqrt((1 - x) * (1 + x)), x); }

double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.79) return kInfinity;
  if (x < -745.2) return 0;
  const double k = std::nearbyint(x * 1.4426950408889634), high = x - k * kLn2High, low = k * kLn2Low;
  const double r = high - low, lost = (high - r) - low;
  // (e^r - 1 - r)/r² at Chebyshev's nodes
  constexpr double kExp[] = {0.5,
                             0.16666666666666671,
                             0.041666666666666671,
                             0.0083333333333261202,
                             0.0013888888888883737,
                             0.00019841269874873975,
                             2.4801587325585839e-05,
                             2.7557255332554409e-06,
                             2.7557273594799413e-07,
                             2.5105245153901371e-08,
                             2.0914707069612355e-09};
  return std::ldexp(1 + (r + (r * r * horner(r, kExp) + lost)), static_cast<int>(k));
}

double log(double x) {
  if (std::isnan(x) || x < 0) return kNaN;
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) m *= 2, exponent -= 1;
  // log(1 + f) = f - f²/2 + s (f²/2 + R) with s = f/(2 + f) and R = 2 atanh(s)/s - 2
  constexpr double kLog[] = {0.66666666666666696, 0.39999999999899238, 0.28571428626095891, 0.22222211115144161,
                             0.18182890556695602, 0.15331674030167861, 0.1461703754879165};
  const double f = m - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
  const double small = half - (s * (half + z * horner(z, kLog)) + exponent * kLn2Low);
  return exponent * kLn2High - (small - f);
}

double pow(double x, double y) {
  if (std::abs(y) <= 64 && y == std::nearbyint(y)) {
    double product = 1, factor = x;
    for (int n = static_cast<int>(std::abs(y)); n > 0; n /= 2, factor *= factor) {
      if (n % 2) product *= factor;
    }
    return y < 0 ? 1 / product : product;
  }
  if (x == 1) return 1;
  return exp(y * log(x));
}

double hypot(double x, double y) {
  const double sum = x * x + y * y;
  if (sum > 1e-280 && sum < 1e300) return std::sqrt(sum);
  if (std::isinf(x) || std::isinf(y)) return kInfinity;
  const double largest = std::max(std::abs(x), std::abs(y));
  if (std::isnan(sum) || largest == 0) return sum;
  const int exponent = std::ilogb(largest);
  x = std::ldexp(x, -exponent), y = std::ldexp(y, -exponent);
  return std::ldexp(std::sqrt(x * x + y * y), exponent);
}

double hypot(double x, double y, double z) { return hypot(hypot(x, y), z); }

int cube_root(int n) {
  std::int64_t root = 0;
  while ((root + 1) * (root + 1) * (root + 1) <= n) ++root;
  return static_cast<int>(root);
}

}  // namespace tarsus::elementary
