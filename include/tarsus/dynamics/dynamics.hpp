// Dynamics of articulated trees: free functions over (model, data, inputs…, outputs…).
//
// All arrays follow Data's layout, so that the same call serves one world or a batch: [n] for a single world,
// [pack][n][lane] for many. q has nq numbers per world; v, a and tau have nv. Units: SI; frames: model/joint_type.hpp.
// Every function throws ShapeError if the size of a span is wrong. No function allocates or throws for numerical
// reasons: a singular mass matrix leads to inf or nan in the result (see first_bad_world). R is double or float and is
// deduced from `data`.
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

/// Inverse dynamics: tau = M qacc + C(qpos, qvel), armature included, O(nlink). [Featherstone 2008, ch. 5]
/// @param external [nlink][6] (moment, force) at each link's origin in world axes, or empty
template <class R>
void rnea(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> qacc, Out<R> tau, In<R> external = {});

/// C(qpos, qvel): gravity, centrifugal and Coriolis force; MuJoCo's qfrc_bias. O(nlink).
template <class R>
void bias_force(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, Out<R> bias);

/// Mass matrix M(qpos), [nv][nv] per world, armature of joints included; for that of tendons see tendon_inertia.hpp.
/// O(nlink depth). [Featherstone 2008, ch. 6]
template <class R>
void crba(const Model& model, BasicData<R>& data, In<R> qpos, Out<R> mass_matrix);

/// Forward dynamics: qacc = M⁻¹ (tau - C), O(nlink). [Featherstone 2008, ch. 7]
template <class R>
void aba(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> tau, Out<R> qacc, In<R> external = {});

/// MABA: qacc = (M₀ + diag K)⁻¹ (Q - C), where M₀ is the mass matrix without armature. With K = armature and Q = tau it
/// equals aba() to the bit. [Yin 2020, app. A]
/// @param joint_inertia K [nv] >= 0. A ball joint uses its first entry for all three axes. A free joint uses its first
/// three for translation and its fourth for all rotations.
template <class R>
void maba(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, In<R> joint_force, In<R> joint_inertia,
          Out<R> qacc, In<R> external = {});

/// Factors M̂ = M₀ + diag K for minv(). aba() and maba() leave the same factors behind. O(nlink).
/// @param qpos empty: use the poses that data holds
template <class R>
void factor(const Model& model, BasicData<R>& data, In<R> qpos, In<R> joint_inertia);

/// x = M̂⁻¹ y with the factors of the last aba(), maba() or factor(). O(nlink). x may alias y.
template <class R>
void minv(const Model& model, BasicData<R>& data, In<R> y, Out<R> x);

/// Jacobian of a point fixed to a body, at the configuration of the last kinematics(): [6][nv], angular rows first,
/// world axes. Single world. @param point world frame [m]
template <class R>
void jacobian(const Model& model, BasicData<R>& data, int body, In<R> point, Out<R> J);

/// qpos ⊞ dt qvel, exact for constant qvel. The resulting quaternions have unit length. out may alias qpos.
template <class R>
void integrate(const Model& model, BasicData<R>& data, In<R> qpos, In<R> qvel, R dt, Out<R> out);

/// b ⊟ a: the constant velocity that moves a to b in one second. Single world, double.
void difference(const Model& model, std::span<const double> a, std::span<const double> b, std::span<double> velocity);

/// Pose of a body in the world after kinematics() (or rnea, crba, aba: orientation only).
template <class R>
Transformd body_pose(const Model& model, const BasicData<R>& data, int body);

/// Velocity of a body's frame after kinematics() with qvel: angular and linear at the body's origin, world axes.
template <class R>
Motion<double> body_velocity(const Model& model, const BasicData<R>& data, int body);

/// Energy and momentum after kinematics() with qvel. Single world.
struct Energy {
  double kinetic = 0;    ///< of the bodies and, through armature, of the rotors [J]
  double potential = 0;  ///< gravitational energy of all bodies, zero at the world's origin [J]
  double spring = 0;     ///< of joint and tendon springs [J]
  double total() const { return kinetic + potential + spring; }
};
template <class R>
Energy energy(const Model& model, const BasicData<R>& data, In<R> qpos, In<R> qvel);

struct Momentum {
  double mass = 0;
  Vec3d com{};      ///< centre of mass of all moving bodies [m]
  Vec3d linear{};   ///< [kg m/s]
  Vec3d angular{};  ///< about the centre of mass [kg m²/s]
};
template <class R>
Momentum momentum(const Model& model, const BasicData<R>& data);

/// Index of the first world with a number that is not finite; -1 if there is none.
template <class R>
int first_bad_world(const BasicData<R>& data, In<R> values, int n);

}  // namespace tarsus
