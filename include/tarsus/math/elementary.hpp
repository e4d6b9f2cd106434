// Elementary functions of doubles with the same bits on every machine: the system's mathematical library rounds them as
// it likes, differently from version to version (docs/decisions/0006-the-same-bits.md). Made of what IEEE 754 fixes:
// sums, products, divisions, roots, remainders and scaling by powers of two. For code outside of kernels; kernels have
// trig.hpp. `make lint` refuses std's functions of these names in the library.
//
// Arguments outside of a function's domain give NaN, infinities what std's functions give. Errors are in units in the
// last place, the largest that tests/math/elementary_test.cpp allows.
#pragma once

namespace tarsus::elementary {

/// 3 ulp for |x| <= 1e5. Beyond, x is first reduced by the double next to 2 pi: absolute error 4e-17 |x|.
double sin(double x);
double cos(double x);
/// 2 ulp, in all quadrants; signs of zeros count as in std::atan2.
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
/// The largest whole number whose cube is at most n; n not negative.
int cube_root(int n);

}  // namespace tarsus::elementary
