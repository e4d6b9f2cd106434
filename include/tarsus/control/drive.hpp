// Stable PD drives.  [Yin 2020; Tan 2011]
//
// A drive pulls its joint towards a target with the PD force at the END of the step,
//   -kp (q + h q̇ + h² q̈ - q̄) - kd (q̇ + h q̈ - q̄̇)
// The force is solved together with the dynamics: maba() with K = h kd + h² kp added to the joint's inertia. It is
// therefore stable at every step. Targets are those of the end of the step. The model's springs, damping and armature
// are treated in the same way. The plain law, eq. 6 of the source, predicts the position with the old velocity, without
// h² q̈ and h² kp. It is stable iff 3 h² kp < 4 m + 2 h kd.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// Gains of each DoF. A ball joint uses its first DoF's gains for all three axes. A free joint uses its first three for
/// its position (world axes) and its fourth for its orientation.
struct Drives {
  std::vector<double> kp;  ///< [nv] N m/rad | N/m
  std::vector<double> kd;  ///< [nv] N m s/rad | N s/m
  bool plain = false;      ///< the plain law
  /// Largest force [nv] (N m | N), infinity: none; empty: no limits at all. A ball joint limits the length of its
  /// torque by its first entry. A free joint limits each direction by its first three entries and the length of its
  /// torque by its fourth. DriveLimiter (force_limit.hpp) and Stepper enforce the limits; drive_terms() and
  /// drive_force() ignore them.
  std::vector<double> force_limit = {};
  std::vector<double> force_floor = {};  ///< least force [nv]; empty: -force_limit. Rotations ignore it
  /// α of the joint damping α h ω² D [N m s] that accompanies limited drives (D: inertia that the joint carries, ω: its
  /// fastest angular velocity). Semi-implicit Euler treats velocity-product forces explicitly, which adds energy at the
  /// rate ½ h ω². Drives without limits absorb this energy, but a joint whose drive is saturated moves freely, and the
  /// character can diverge. With α = ½ the damping removes the energy that this error adds; it does not affect rigid
  /// rotation and vanishes with h. On the rotation of a free root it is an external torque. 0: none.
  double spin_damping = 0.5;

  bool limited() const { return !force_limit.empty() || !force_floor.empty(); }
  /// Least and largest force of a DoF.
  std::pair<double, double> bounds(int v) const {
    const double high = force_limit.empty() ? kInfinity : force_limit[v];
    return {force_floor.empty() ? -high : force_floor[v], high};
  }

  /// Zero gains everywhere.
  static Drives none(const Model& model);
  /// The same gains at every joint below the root, and separate gains for a free root (the "hand of God" of motion
  /// tracking). The defaults are the paper's (section 4.1). @throws ValueError for gains that are negative or not
  /// finite
  static Drives uniform(const Model& model, double kp = 75000, double kd = 4000, double root_kp = 20000,
                        double root_kd = 2000);
  /// @throws ShapeError, ValueError naming the first bad gain
  void check(const Model& model) const;
};

/// MABA's terms for one step of `dt` seconds: joint_force Q = tau + drives + springs + damping; joint_inertia K =
/// armature + the implicit terms. dt = 0 gives explicit PD without implicit terms. O(nv). All worlds of a batch share
/// the gains; each has its own targets.
/// @param qpos_target [nq] @param qvel_target [nv] or empty for zero @param tau [nv] applied force or empty
template <class R>
void drive_terms(const Model& model, const BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel,
                 In<R> qpos_target, In<R> qvel_target, In<R> tau, Out<R> joint_force, Out<R> joint_inertia);

/// The force of the drives over the step, computed from the acceleration that maba() found (eq. 6). A torque sensor
/// would read it, and standalone SPD passes it to another simulator.
template <class R>
void drive_force(const Model& model, const BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel,
                 In<R> qpos_target, In<R> qvel_target, In<R> qacc, Out<R> force);

}  // namespace tarsus
