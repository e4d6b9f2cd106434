// Trees whose links and joints carry linear loads: what a contact or a limit is to one round of Newton's method.
//
//     (M̂ + Σ_l J_lᵀ B_l J_l) x = Q + Σ_l J_lᵀ f_l
//
// with J_l the motion of link l at its origin. A load is an inertia and a force that the link has besides its own, so
// the passes are ABA's and the cost is O(nlink), however many loads there are.
#pragma once

#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/dynamics/link_load.hpp"

namespace tarsus {

/// Prepares data for solve_loaded(): to be called when poses have changed. Poses must be there, as after maba() or
/// kinematics().
template <class R>
void prepare_loads(const Model& model, BasicData<R>& data);

/// x of the equation above; data.links()[l].a is then J_l x. Single world. The factors in data become those of the
/// loaded matrix.
/// @param joint_inertia K of M̂ [nv]  @param joint_force Q [nv] or empty for zero
/// @param load_of_link [njoint] index into loads, -1: none
template <class R>
void solve_loaded(const Model& model, BasicData<R>& data, In<R> joint_inertia, In<R> joint_force,
                  std::span<const int> load_of_link, std::span<const LinkLoad<R>> loads, Out<R> x);

}  // namespace tarsus
