// Whether a ball joint is far from the end of its range, by the quaternion and without its angle.
#pragma once

#include <algorithm>
#include <numbers>

#include "tarsus/math/elementary.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Of half of the angle at which a range ends.
struct HalfTurn {
  double cosine, sine;
  explicit HalfTurn(double end)
      : cosine(elementary::cos(std::min(end, std::numbers::pi) / 2)),
        sine(elementary::sin(std::min(end, std::numbers::pi) / 2)) {}
};

/// A turn whose quaternion has that |w| is short of the range's end by more than `way` [rad]: w, the cosine of half its
/// angle, is above cos((end - way) / 2), which is cosine + way/2 sine at most.
template <class T>
TARSUS_INLINE Mask<T> ends_before(T w, T way, T cosine, T sine) {
  return w > mul_add(way * T(Real<T>(0.5)), sine, cosine + T(8 * kUnitRounding<Real<T>>));
}

}  // namespace tarsus
