// Stable PD drives.  [Yin 2020; Tan 2011]
//
// A drive pulls its joint to a target with the force at the END of the step,
//   -kp (q + h q̇ + h² q̈ - q̄) - kd (q̇ + h q̈ - q̄̇)
// which is solved together with the dynamics: maba() with K = h kd + h² kp added to the joint's inertia, so that it is
// stable at every step. Targets are those at the end of the step. Springs, damping and armature of the model go the
// same way. The source's own law (eq. 6), plain, has the position by the old velocity, without h² q̈ and h² kp: it is
// stable iff 3 h² kp < 4 m + 2 h kd.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// Gains for each DoF. A ball joint uses its first DoF's gains for all three axes; a free joint its first three for its
/// position (world axes) and its fourth for its orientation.
struct Drives {
  std::vector<double> kp;  ///< [nv] N m/rad | N/m
  std::vector<double> kd;  ///< [nv] N m s/rad | N s/m
  bool plain = false;      ///< the source's law
  /// Largest force [nv] (N m | N), infinity: none; empty: no limits at all. A ball joint uses its first DoF's on the
  /// length of its torque, a free joint its first three for each direction and its fourth on the length of its torque.
  /// Kept by DriveLimiter (force_limit.hpp) and Stepper; drive_terms() and drive_force() know nothing of limits.
  std::vector<double> force_limit = {};
  std::vector<double> force_floor = {};  ///< least force [nv]; empty: -force_limit. Not used by rotations
  /// α of a joint damping α h ω² D [N m s] that limited drives bring along (D: inertia that the joint carries, ω:
  /// fastest spin in it). Semi-implicit Euler takes velocity-product forces explicitly, which makes energy at the rate
  /// ½ h ω²: drives without limits swallow it, but a joint whose drive is at its limit swings freely, and then a
  /// character blows up with no drive to blame. ½ takes out what that error puts in, leaves rigid rotation alone,
  /// vanishes with h. On a free root's rotation it is an outer torque. 0: none.
  double spin_damping = 0.5;

  bool limited() const { return !force_limit.empty() || !force_floor.empty(); }
  /// Least and largest force of a DoF.
  std::pair<double, double> bounds(int v) const {
    const double high = force_limit.empty() ? kInfinity : force_limit[v];
    return {force_floor.empty() ? -high : force_floor[v], high};
  }

  /// No drive anywhere.
  static Drives none(const Model& model);
  /// The same gains at every joint below the root and others for a free root (the "hand of God" of motion tracking);
  /// the defaults are the paper's (section 4.1). @throws ValueError for gains that are negative or not finite
  static Drives uniform(const Model& model, double kp = 75000, double kd = 4000, double root_kp = 20000,
                        double root_kd = 2000);
  /// @throws ShapeError, ValueError naming the first bad gain
  void check(const Model& model) const;
};

/// MABA's terms for one step of `dt` seconds: joint_force Q = tau + drives + springs and damping, joint_inertia K =
/// armature + what the implicit terms add. dt = 0 is explicit PD: nothing added. O(nv). Gains are shared by all worlds
/// of a batch, targets are each world's own.
/// @param qpos_target [nq] @param qvel_target [nv] or empty for zero @param tau [nv] applied force or empty
template <class R>
void drive_terms(const Model& model, const BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel,
                 In<R> qpos_target, In<R> qvel_target, In<R> tau, Out<R> joint_force, Out<R> joint_inertia);

/// The drives' own force over the step, from the acceleration that maba() found (eq. 6): what a torque sensor would
/// read and what standalone SPD hands to another simulator.
template <class R>
void drive_force(const Model& model, const BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel,
                 In<R> qpos_target, In<R> qvel_target, In<R> qacc, Out<R> force);

}  // namespace tarsus
