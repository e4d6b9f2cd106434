// How a step takes a spring of the model.
#pragma once

#include "tarsus/math/scalar.hpp"

namespace tarsus {

/// Of a step of h seconds: the force -k (q + h ahead v), with the inertia h² k share. With v⁺ = v + h q̈ and
/// q⁺ = q + h v⁺, 0 and 1/4 are the implicit midpoint rule for the position at the middle of the step, q - h v/2:
/// stable at every step, it neither adds energy nor takes any. 1 and 1 are the force at its end, which damps.
template <class T>
struct SpringRule {
  T ahead, share;
};

/// A vibration that steps resolve is kept, one that is too quick for them dies away: the midpoint rule would turn its
/// sign from step to step for ever, and contacts, limits and loops feed on it (decision 409). In a step the square of
/// the amplitude falls to 1 - ahead w/(1 + share w), w = (h ω)².
/// @param rate2 ω² = k over what the spring moves [1/s²]
template <class T>
TARSUS_INLINE SpringRule<T> spring_rule(T rate2, Real<T> h) {
  constexpr Real<T> kUnresolved = 2.25;  // (h ω)² at which half of the way is gone: four steps a period
  const T one = T(Real<T>(1)), w = T(h * h) * rate2, ratio = T(kUnresolved) / w, ahead = one / (one + ratio * ratio);
  return {ahead, T(Real<T>(0.25)) + T(Real<T>(0.75)) * ahead};
}

}  // namespace tarsus
