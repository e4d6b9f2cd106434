// Constants of a step's terms that step_terms.hpp and lane_terms.hpp share.
#pragma once

namespace tarsus {

/// Links that are deep in one another separate so slowly that each joint between them moves no faster than this [rad/s
/// | m/s]. Near a joint's axis, kContactReturn would be hundreds of radians a second. The bound is evaluated if they
/// would separate faster than kSlowReturn [m/s].
inline constexpr double kContactTurn = 1;
inline constexpr double kSlowReturn = 0.02;
/// Time in which a deep contact recovers at least [s], if it has no τ of its own. Four steps of 1/60 s are longer;
/// shorter steps would part shapes that overlap at the start in less, and give them more energy. Not of mocap bodies
/// that push.
inline constexpr double kReturnTime = 0.066;
/// Least τ in steps of a law whose tangent is steep, unless its own τ is shorter. SPOOK without damping keeps motions
/// that change their sign from step to step.
inline constexpr double kTangentDamping = 1;
/// Largest speed of what lies deep in a mocap body that pushes, over the body's.
inline constexpr double kOvertakes = 1.25;
/// Mocap bodies push by their mean velocity over this time [s], or over the step if it is longer: callers may set poses
/// less often than they step. What is faster has jumped [m/s], [rad/s].
inline constexpr double kPushTime = 1.0 / 60, kFastestPush = 12, kFastestPushTurn = 24;
inline constexpr double kLimitReach =
    0.02;  ///< distance from the end of a joint's range at which it gets a row [m | rad]
/// Largest recovery speed of a joint beyond its range [rad/s | m/s]. Robot files often start at zero, a radian outside;
/// four steps of half a millisecond would make that hundreds of radians a second.
inline constexpr double kLimitReturn = 5;
/// Relative to the inertia that a drive moves. A drive with an explicit spring alone would otherwise be a constant
/// force.
inline constexpr double kLeastStiffness = 1e-9;
/// Least change of speed by a limit that counts as active; less is rounding [m/s | rad/s].
template <class R>
inline constexpr R kActiveChange = sizeof(R) == 8 ? R(1e-9) : R(1e-6);
/// Relative to the inverse mass. In float it is √ε: the compliance's velocity then equals the effect of rounding on the
/// force.
template <class R>
inline constexpr double kLeastCompliance = sizeof(R) == 8 ? 1e-6 : 2.4e-4;
/// Largest RowsReport::between of a world that SIMD lanes solve (decision 509).
template <class R>
inline constexpr int kMostBetween = sizeof(R) == 8 ? 16 : 24;

}  // namespace tarsus
