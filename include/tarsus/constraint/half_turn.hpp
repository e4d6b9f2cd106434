// Test on the quaternion, without the angle, whether a ball joint is far from the end of its range.
#pragma once

#include <algorithm>
#include <numbers>

#include "tarsus/math/elementary.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Cosine and sine of half the angle at which a range ends.
struct HalfTurn {
  double cosine, sine;
  explicit HalfTurn(double end)
      : cosine(elementary::cos(std::min(end, std::numbers::pi) / 2)),
        sine(elementary::sin(std::min(end, std::numbers::pi) / 2)) {}
};

/// Whether a rotation whose quaternion has this |w| is short of the range's end by more than `way` [rad]. w is the
/// cosine of half the angle, and so the condition is w > cos((end - way) / 2). That cosine is at most cosine + way/2
/// sine, which the test uses.
template <class T>
TARSUS_INLINE Mask<T> ends_before(T w, T way, T cosine, T sine) {
  return w > mul_add(way * T(Real<T>(0.5)), sine, cosine + T(8 * kUnitRounding<Real<T>>));
}

}  // namespace tarsus
