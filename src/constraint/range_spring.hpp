// Springs for ball joints at the end of their range. The range's force acts along the axis e of the joint's rotation
// from rest, and turns with the joint. The angle θ of that rotation has the second derivative ½ cot(θ/2) across e. A
// force f is therefore a spring of stiffness
//
//     k = ½ f cot(θ/2)
//
// against motion round the end of the range, like tension in a pendulum (geometric_inertia.inl). A light link between a
// joint at the end of its range and a heavy part has almost no inertia about its axis, and h ω reaches 10 and more.
// Like every spring that a step cannot resolve (spring_rule.hpp), this one is taken at the step's end: inertia h² k and
// force -h k v. Decision 413.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "constraint/term_constants.hpp"
#include "tarsus/constraint/half_turn.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/data.hpp"

namespace tarsus {

/// Factor on the computed k, and the number of tries: forces are larger where a joint is held than where it yields.
inline constexpr double kRangeSpringFactor = 4;
inline constexpr int kRangeSprings = 4;

/// Whether a ball joint with a range holds a light link between heavy parts: the parts beyond the joint and beyond the
/// link (the world counts) each have more than 2.5 times the link's mass. Such trees gain energy at the end of the
/// range even if a step turns little. VelocityProducts bounds that.
/// @param inertia [link] of the model, or of a world
bool holds_light_link(const Model& model, std::span<const RigidInertia<double>> inertia, int joint);

/// The same in a world, whose masses may be its own.  @param otherwise that of the model
template <class R>
bool holds_light_link(const BasicData<R>& data, int world, int joint, bool otherwise) {
  const int width = data.width();
  if (!data.own || data.own[world / width].light.empty()) return otherwise;
  return data.own[world / width].light[std::size_t(joint * width + world % width)] > 0;
}

/// Whether the joint moves round the end of its range in a step of h seconds.
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
  Vec3d axis;        ///< e, in the joint's axes

  RangeSpring(const Quatd& turn, double force) {
    const Vec3d v{turn.x, turn.y, turn.z};
    const double sine = std::max(norm(v), 1e-6);
    stiffness = 0.5 * force * std::abs(turn.w) / sine, axis = v * (1 / sine);
  }
  Vec3d across(const Vec3d& rate) const { return rate - axis * dot(axis, rate); }
  /// Whether a step of h seconds that ends with that rate turns the force far, and is too long for the inertia of the
  /// joint's links.
  /// @param K joint inertia
  template <class R>
  bool is_needed(const Model& model, const BasicData<R>& data, int world, int joint, double K, const Vec3d& rate,
                 double h) const;
};

}  // namespace tarsus
