// Time discretisation of the model's springs.
#pragma once

#include "tarsus/math/scalar.hpp"

namespace tarsus {

/// In a step of h seconds the spring exerts the force -k (q + h ahead v) and adds the inertia h² k share. With v⁺ = v +
/// h q̈ and q⁺ = q + h v⁺, ahead = 0 and share = 1/4 are the implicit midpoint rule for positions at the middle of the
/// step, q - h v/2. It is stable at every step and conserves energy. With ahead = share = 1 the force is that of the
/// end of the step, which damps.
template <class T>
struct SpringRule {
  T ahead, share;
};

/// The rule preserves vibrations that the step resolves and damps those that are too fast for it. The midpoint rule
/// would reverse the sign of a fast vibration in every step without damping it, and would excite contacts, limits and
/// loops (decision 409). In one step the square of the amplitude decreases by the factor 1 - ahead w/(1 + share w), w =
/// (h ω)².
/// @param rate2 ω² = k over the inertia that the spring moves [1/s²]  @param h [s]
template <class T>
TARSUS_INLINE SpringRule<T> spring_rule(T rate2, Real<T> h) {
  constexpr Real<T> kHalfAhead = 2.25;  // (h ω)² at which ahead = ½: four steps per period
  const T one = T(Real<T>(1)), w = T(h * h) * rate2, ratio = T(kHalfAhead) / w, ahead = one / (one + ratio * ratio);
  return {ahead, T(Real<T>(0.25)) + T(Real<T>(0.75)) * ahead};
}

}  // namespace tarsus
