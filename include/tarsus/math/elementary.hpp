// Elementary functions of doubles that give the same bits on every machine. The system's mathematical library rounds
// differently from version to version (docs/decisions/0006-the-same-bits.md). These functions use only operations that
// IEEE 754 defines: sums, products, divisions, roots, remainders and scaling by powers of two. They are for code
// outside of kernels; kernels use trig.hpp. `make lint` rejects std's functions of these names in the library.
//
// Arguments outside a function's domain give NaN; infinities give the results of std's functions. The stated errors are
// in units in the last place, the largest that tests/math/elementary_test.cpp allows.
#pragma once

namespace tarsus::elementary {

/// 3 ulp for |x| <= 1e5. Beyond, x is first reduced by the double next to 2 pi: absolute error 4e-17 |x|.
double sin(double x);
double cos(double x);
/// 2 ulp, in all quadrants; respects signs of zeros like std::atan2.
double atan2(double y, double x);
/// 3 ulp.
double acos(double x);
/// 1 ulp; 0 below -745.2, infinite above 709.79.
double exp(double x);
/// 1 ulp.
double log(double x);
/// x^y for whole |y| <= 64 by products, |y| ulp at most; else exp(y log x): 2 + 2 |y log x| ulp, NaN for x < 0.
double pow(double x, double y);
/// sqrt(x² + y²) without overflow, 1.5 ulp.
double hypot(double x, double y);
double hypot(double x, double y, double z);
/// The largest integer whose cube is at most n; n must not be negative.
int cube_root(int n);

}  // namespace tarsus::elementary
