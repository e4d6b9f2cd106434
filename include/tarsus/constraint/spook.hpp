// SPOOK: the right-hand side and the compliance that keep a constraint g(q) = 0 or g(q) >= 0 over a step of h seconds.
//
//     G v⁺ + Σ λ = b,   b = -4/(h (1 + 4τ/h)) g + 1/(1 + 4τ/h) G v,   Σ = 4 ε / (h² (1 + 4τ/h))
//
// λ is an impulse. A row at rest under the force λ/h has g = -ε λ/h, whatever the step. A position error decays over a
// few τ.  [Lacoursière 2013, eq. 17 with its slips corrected: theory.md, section 4]
#pragma once

#include <algorithm>

namespace tarsus {

struct Spook {
  double compliance = 0;    ///< ε >= 0: inverse stiffness [m/N | rad/(N m)]
  double damping_time = 0;  ///< τ >= 0 [s]; 0: kDampingSteps steps
};

/// Default of τ/h.
inline constexpr double kDampingSteps = 4;

/// Largest recovery speed of shapes that begin deep in one another, if no compliance in m/N is given [m/s].
inline constexpr double kContactReturn = 3;

/// τ for steps of h.
inline double damping_time(const Spook& spook, double h) {
  return spook.damping_time > 0 ? spook.damping_time : kDampingSteps * h;
}

/// g, limited to the depth that is recovered at `fastest` [m/s | rad/s]. Shapes that begin deep in one another, or a
/// joint far outside its range, then return slowly.
inline double recoverable(const Spook& spook, double g, double h, double fastest) {
  return std::max(g, -fastest * damping_time(spook, h));
}

/// Right-hand side and compliance of a row for one step.
struct SpookRow {
  double target = 0;      ///< b [m/s | rad/s]
  double compliance = 0;  ///< Σ
};

/// A row that holds g at zero. @param g [m | rad] @param speed G v at the start of the step @param h step [s] > 0
inline SpookRow spook_bilateral(const Spook& spook, double g, double speed, double h) {
  const double share = 1 / (1 + 4 * (damping_time(spook, h) / h));
  return {share * (speed - 4 / h * g), 4 * spook.compliance * share / (h * h)};
}

/// Largest depth that a row g >= 0 reaches in one step, at any approach speed [m | rad]. SPOOK alone keeps 1/(1 + 4τ/h)
/// of that speed, which lets fast bodies penetrate deeply.
inline constexpr double kDeepestStep = 0.01;

/// A row that keeps g >= 0. While g > 0, the two may just close the gap, without compliance. With restitution, two that
/// would meet within the step faster than `threshold` [m/s] separate at that speed times `restitution` at once: closing
/// the gap first would remove the speed.
inline SpookRow spook_unilateral(const Spook& spook, double g, double speed, double h, double restitution = 0,
                                 double threshold = 0) {
  SpookRow row = g > 0 ? SpookRow{-g / h, 0} : spook_bilateral(spook, g, speed, h);
  if (g <= 0) row.target = std::max(row.target, -kDeepestStep / h);
  if (restitution > 0 && -speed > threshold && g + h * speed <= 0 && row.target < -restitution * speed) {
    row.target = -restitution * speed;
  }
  return row;
}

}  // namespace tarsus
