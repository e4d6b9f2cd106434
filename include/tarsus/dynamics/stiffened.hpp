// Trees whose links and joints carry linear stiffnesses: what a contact or a limit is to one round of Newton's method.
//
//     (M̂ + Σ_l J_lᵀ B_l J_l) x = Q + Σ_l J_lᵀ (f_l - p_l)
//
// with J_l the motion of link l at its origin. A stiffness is an inertia and a force that the link has besides its own,
// so the passes are ABA's and the cost is O(nlink), however many stiffnesses there are.
#pragma once

#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/dynamics/link_stiffness.hpp"

namespace tarsus {

/// Prepares data for solve_stiffened(): to be called when poses have changed. Poses must be there, as after maba() or
/// kinematics().
template <class R>
void prepare_stiffened(const Model& model, BasicData<R>& data);

/// The same after pass 1 of ABA alone, as VelocityProducts::begin_step() leaves data, and what moves the links by
/// themselves in a step of h seconds: with these p_l, and Q = h times the joints' forces, x without stiffnesses is v⁰ -
/// v.
/// @param bias [njoint][6] out: p_l = h times the force, moment first, that the link needs where q̈ is zero
template <class R>
void prepare_step(const Model& model, BasicData<R>& data, R h, Out<R> bias);

/// x of the equation above; data.links()[l].a is then J_l x. Single world. The factors in data become those of the
/// stiffened matrix, with u; where x is empty that is all.
/// @param joint_inertia K of M̂ [nv]  @param joint_force Q [nv], may be x  @param bias p_l [njoint][6]; empty: zero
/// @param stiffness_of_link [njoint] index into stiffnesses, -1: none
template <class R>
void solve_stiffened(const Model& model, BasicData<R>& data, In<R> joint_inertia, In<R> joint_force, In<R> bias,
                     std::span<const int> stiffness_of_link, std::span<const LinkStiffness<R>> stiffnesses, Out<R> x);

}  // namespace tarsus
