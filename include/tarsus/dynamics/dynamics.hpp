// Dynamics of articulated trees: free functions over (model, data, inputs…, outputs…).
//
// All arrays follow Data's layout, so that the same call serves one world or a batch: [n] for a single world,
// [pack][n][lane] for many. R is double or float and is deduced from `data`.
//
// qpos has nq numbers per world: positions [m], angles [rad] and quaternions of any length. qvel [m/s | rad/s], qacc
// [m/s² | rad/s²] and joint forces [N | N m] have nv. model/joint_type.hpp has the layout and the frames of each joint.
//
// Errors: ShapeError if the size of a span is wrong; ValueError if `data` was made for another model, if a function for
// a single world gets a batch, or for a body's index out of range. No function throws for numerical reasons: a
// singular mass matrix leads to inf or nan in the result (see first_bad_world). Only energy() allocates.
#pragma once

#include <span>

#include "tarsus/model/data.hpp"

namespace tarsus {

template <class R>
using In = std::type_identity_t<std::span<const R>>;
template <class R>
using Out = std::type_identity_t<std::span<R>>;

/// Computes the poses (and velocities, unless qvel is empty) of all links in data's workspace. Read them with
/// body_pose() and body_velocity(). O(nlink).
template <class R>
void kinematics(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel = {});

/// Inverse dynamics: tau = M qacc + C(qpos, qvel) - Σ Jᵀ external, armature included, O(nlink).
/// [Featherstone 2008, ch. 5]
/// @param external [nlink][6] (moment [N m], force [N]) on each link at its origin, world axes; empty: none
template <class R>
void rnea(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> qacc, Out<R> tau, In<R> external = {});

/// C(qpos, qvel) = rnea() with qacc = 0: gravity, centrifugal and Coriolis force; MuJoCo's qfrc_bias. O(nlink).
/// [Featherstone 2008, ch. 5]
template <class R>
void bias_force(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, Out<R> bias);

/// Mass matrix M(qpos) with the armature of joints; for the armature of tendons see tendon_inertia.hpp. O(nlink depth).
/// [Featherstone 2008, ch. 6]
/// @param mass_matrix out: [nv][nv] per world, both triangles
template <class R>
void crba(const Model& model, BasicData<R>& data, In<R> qpos, Out<R> mass_matrix);

/// Forward dynamics: qacc = M⁻¹ (tau - C), O(nlink). [Featherstone 2008, ch. 7] Sets data.joint_inertia to the
/// armature.
/// @param external as in rnea(); with it, qacc = M⁻¹ (tau - C + Σ Jᵀ external)
template <class R>
void aba(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> tau, Out<R> qacc, In<R> external = {});

/// MABA: qacc = (M₀ + diag K)⁻¹ (Q - C), where M₀ is the mass matrix without armature. With K = armature and Q = tau it
/// equals aba() to the bit. [Yin 2020, app. A]
/// @param joint_force Q [nv]  @param external as in rnea()
/// @param joint_inertia K [nv] >= 0 [kg | kg m²]. A ball joint uses its first entry for all three axes. A free joint
/// uses its first three for translation and its fourth for all rotations.
template <class R>
void maba(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> joint_force, In<R> joint_inertia,
          Out<R> qacc, In<R> external = {});

/// Factors M̂ = M₀ + diag K for minv(). aba() and maba() leave the same factors in data. O(nlink).
/// @param qpos empty: use the poses that data holds  @param joint_inertia K [nv], as in maba()
template <class R>
void factor(const Model& model, BasicData<R>& data, In<R> qpos, In<R> joint_inertia);

/// x = M̂⁻¹ y after aba(), maba() or factor(), without another qpos in between. O(nlink). x [nv] may alias y [nv].
template <class R>
void minv(const Model& model, BasicData<R>& data, In<R> y, Out<R> x);

/// Jacobian of a point fixed to a body after kinematics(), without another qpos between: (w, v) = J qvel. One world.
/// @param point [3] in the world [m]  @param J out: [6][nv] row-major, angular rows first, world axes
template <class R>
void jacobian(const Model& model, BasicData<R>& data, int body, In<R> point, Out<R> J);

/// out = qpos ⊞ dt qvel, exact for constant qvel. The resulting quaternions have unit length. out may alias qpos.
/// @param dt [s], of any sign
template <class R>
void integrate(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, R dt, Out<R> out);

/// velocity = b ⊟ a: the constant velocity that moves a to b in one second. Single world, double.
/// @param a, b [nq]  @param velocity [nv] out
void difference(const Model& model, std::span<const double> a, std::span<const double> b, std::span<double> velocity);

/// Pose of a body's frame in the world after kinematics(), position in m. After rnea(), crba() or aba() only the
/// orientation is valid. Single world.
template <class R>
Transformd body_pose(const Model& model, const BasicData<R>& data, int body);

/// Velocity of a body's frame after kinematics() with qvel: angular [rad/s], and linear [m/s] at the body's origin,
/// world axes. Zero for bodies without a link. Single world.
template <class R>
Motion<double> body_velocity(const Model& model, const BasicData<R>& data, int body);

struct Energy {
  double kinetic = 0;    ///< of the bodies and of the armature of joints and tendons [J]
  double potential = 0;  ///< gravitational energy of all bodies, zero at the world's origin [J]
  double spring = 0;     ///< of joint and tendon springs [J]
  double total() const { return kinetic + potential + spring; }
};
/// Energy after kinematics(qpos, qvel) on the same arguments. Single world. @param qpos [nq]  @param qvel [nv]
template <class R>
Energy energy(const Model& model, const BasicData<R>& data, In<R> qpos, In<R> qvel);

struct Momentum {
  double mass = 0;  ///< of all moving bodies [kg]
  Vec3d com{};      ///< their centre of mass, in the world [m]
  Vec3d linear{};   ///< [kg m/s]
  Vec3d angular{};  ///< about the centre of mass [kg m²/s]
};
/// Momentum in world axes after kinematics() with qvel. Bodies on mocap bodies do not count. Single world.
template <class R>
Momentum momentum(const Model& model, const BasicData<R>& data);

/// Index of the first world with a number that is not finite; -1 if there is none. @param values [n] per world
template <class R>
int first_bad_world(const BasicData<R>& data, In<R> values, int n);

}  // namespace tarsus
