// Numbers of a step's terms that one world's (step_terms.hpp) and lanes' (lane_terms.hpp) have in common.
#pragma once

namespace tarsus {

/// Shapes that are deep in one another come back so that each joint between the two moves no faster than this
/// [rad/s | m/s]: near its axis kContactReturn is hundreds of radians a second. It is looked at where they would come
/// back faster than kSlowReturn [m/s].
inline constexpr double kContactTurn = 1;
inline constexpr double kSlowReturn = 0.02;
/// Steps in τ, at least, of a law that the tangent makes steep, if its own τ is as long: SPOOK with none keeps what
/// turns its sign from step to step.
inline constexpr double kTangentDamping = 1;
inline constexpr double kLimitReach = 0.02;  ///< how near a joint's range gets a row [m | rad]
/// Fastest way back of a joint that is beyond its range [rad/s | m/s]. Robots' files often start at zero, a radian off;
/// in four steps of half a millisecond that would be hundreds of radians a second.
inline constexpr double kLimitReturn = 5;
/// Of the inertia that a drive moves: one with an explicit spring alone is a constant force but for this.
inline constexpr double kLeastStiffness = 1e-9;
/// Change of speed by a limit that holds a joint; less is rounding [m/s | rad/s].
template <class R>
inline constexpr R kActingChange = sizeof(R) == 8 ? R(1e-9) : R(1e-6);
/// Of the inverse mass. In float √ε, where a velocity gives by as much as its rounding tells in the force.
template <class R>
inline constexpr double kLeastCompliance = sizeof(R) == 8 ? 1e-6 : 2.4e-4;

}  // namespace tarsus
