// Trees whose links and joints have linear stiffnesses. A contact or limit acts as such a stiffness in one iteration of
// Newton's method.
//
//     (M̂ + Σ_l J_lᵀ B_l J_l) x = Q + Σ_l J_lᵀ (f_l - p_l)
//
// J_l maps x to the motion of link l at its origin. A stiffness adds an inertia and a force to the link's own. The
// passes are therefore those of ABA, and the cost is O(nlink) for any number of stiffnesses.
#pragma once

#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/dynamics/link_stiffness.hpp"

namespace tarsus {

/// Prepares data for solve_stiffened(). Call it after the poses have changed; they must be set, as by maba() or
/// kinematics().
template <class R>
void prepare_stiffened(const Model& model, BasicData<R>& data);

/// Like prepare_stiffened(), but needs only pass 1 of ABA, as VelocityProducts::begin_step() leaves data. Also computes
/// the bias forces p_l of a step of h seconds: with these p_l and Q = h times the joint forces, the solution x without
/// stiffnesses is v⁰ - v.
/// @param bias [njoint][6] out: p_l = h times the force, moment first, that the link needs for q̈ = 0
template <class R>
void prepare_step(const Model& model, BasicData<R>& data, R h, Out<R> bias);

/// Solves the equation above for x [nv] and sets data.links()[l].a = J_l x. Single world. The factors in data become
/// those of the stiffened matrix, together with u. If x is empty, only the factors and u are computed. Units of x, Q
/// and p are the caller's: an acceleration and forces, or a change of velocity and impulses. Errors as in dynamics.hpp.
/// @param joint_inertia K of M̂ [nv]  @param joint_force Q [nv], may alias x  @param bias p_l [njoint][6]; empty: zero
/// @param stiffness_of_link [njoint] index into stiffnesses, -1: none
template <class R>
void solve_stiffened(const Model& model, BasicData<R>& data, In<R> joint_inertia, In<R> joint_force, In<R> bias,
                     std::span<const int> stiffness_of_link, std::span<const LinkStiffness<R>> stiffnesses, Out<R> x);

/// The same for other forces, Q = 0 and p = 0, with the factors of the last solve_stiffened(): only the forces of the
/// stiffnesses are used.
template <class R>
void solve_factored(const Model& model, BasicData<R>& data, std::span<const int> stiffness_of_link,
                    std::span<const LinkStiffness<R>> stiffnesses, Out<R> x);

/// Sets data.links()[l].a = J_l x, as the solves do for their solution, at the poses that data holds. x [nv]
template <class R>
void spread_acceleration(const Model& model, BasicData<R>& data, In<R> x);

}  // namespace tarsus
