// The force of a ball joint's range turns with the joint. It acts along the axis e of the joint's turn from rest; the
// angle θ of that turn has the second derivative ½ cot(θ/2) across e, so that a force f is a spring of
//
//     k = ½ f cot(θ/2)
//
// against what goes round the end of the range, as tension is in what hangs (geometric_inertia.inl). A light branch
// between a joint at the end of its range and something heavy has next to no inertia about its own axis: h ω is 10 and
// more. Such a spring is taken at the step's end, as any that a step cannot resolve (spring_rule.hpp): with the inertia
// h² k and the force -h k v. Decision 413.
#pragma once

#include <algorithm>
#include <cmath>

#include "constraint/term_constants.hpp"
#include "tarsus/constraint/half_turn.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/data.hpp"

namespace tarsus {

/// Times what was found of k, in so many tries: what is held pushes more than what gives way.
inline constexpr double kRangeSpringFactor = 4;
inline constexpr int kRangeSprings = 4;

/// Whether a ball joint with a range holds a light link between heavy ones: both what is beyond the joint and what is
/// beyond the link, the world among it, have more than 2.5 times its mass. Such trees gain energy at the end of the
/// range where a step turns little too, and are bounded there (VelocityProducts).
bool holds_light_link(const Model& model, int joint);

/// Whether it goes round the end of its range, in a step of h seconds.
template <class R>
bool goes_round(const Quat<R>& turn, const Vec3<R>& rate, double h, const HalfTurn& range) {
  constexpr R kRound = R(0.005);  // [rad]
  if (ends_before(std::abs(turn.w), R(kLimitReach), R(range.cosine), R(range.sine))) return false;
  const Vec3<R> axis{turn.x, turn.y, turn.z};
  const R along = dot(axis, rate), square = dot(rate, rate) - along * along / dot(axis, axis);
  return square * R(h * h) > kRound * kRound;
}

struct RangeSpring {
  double stiffness;  ///< k [N m/rad]
  Vec3d axis;        ///< e, in the joint's own axes

  RangeSpring(const Quatd& turn, double force) {
    const Vec3d v{turn.x, turn.y, turn.z};
    const double sine = std::max(norm(v), 1e-6);
    stiffness = 0.5 * force * std::abs(turn.w) / sine, axis = v * (1 / sine);
  }
  Vec3d across(const Vec3d& rate) const { return rate - axis * dot(axis, rate); }
  /// Whether a step of h seconds that ends with that rate turns the force far, and is too long for the joint's links.
  /// @param K joint inertia
  template <class R>
  bool is_needed(const Model& model, const BasicData<R>& data, int world, int joint, double K, const Vec3d& rate,
                 double h) const;
};

}  // namespace tarsus
