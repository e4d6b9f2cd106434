// Forward dynamics with linearly implicit Coriolis and gyroscopic forces:
//
//     (M₀ + diag K + θh ∂C/∂v) q̈ = Q - C(q, v)
//
// With explicit velocity products, undamped characters gain energy at long steps; with this equation they do not. An
// articulated-body pass with two matrices per link solves it at O(nlink), like ABA. src/dynamics/velocity_products.inl
// has the derivation.
#pragma once

#include <cstdint>
#include <vector>

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// Of `held`: a tree of a linkage, whose energy is balanced after its loops are solved.
inline constexpr std::uint8_t kLinkage = 2;

/// Solver with scratch memory for one pack of worlds. Not for use by two threads at once.
template <class R>
class VelocityProducts {
 public:
  /// @param held [njoint] at the root joint of each tree that a loop holds, whose parameters of θ and of the bound
  /// differ, 1 or kLinkage; at round links kRoundLink; empty: none  @throws ShapeError
  VelocityProducts(const Model& model, const BasicData<R>& data, std::vector<std::uint8_t> held = {});

  /// Computes q̈ of the equation above. Afterwards data holds poses and velocities but no factors for minv();
  /// data.links()[i].a of a single world is J_i q̈.
  /// @param theta_h θh [pack][lane] of each world [s], not negative; 0 is equivalent to maba()
  /// @param tangent [pack][nlink][6][6][lane] B of each link, or empty. The force B w opposes the change w = J q̈ of
  /// the link's velocity; it acts at the link's origin, world axes, moment and angular velocity first. B need not be
  /// symmetric. The other arguments are those of maba().
  /// @throws ShapeError if the size of a span is wrong
  void accelerate(const Model& model, BasicData<R>& data, In<R> theta_h, In<R> qpos, In<R> qvel, In<R> joint_force,
                  In<R> joint_inertia, Out<R> qacc, In<R> external = {}, In<R> tangent = {});

  /// Computes q̈ for a step of h seconds. Each tree has its own θ = ½ + h|ω|, at most 1, where ω is the angular
  /// velocity of its fastest link that is not round (spin_response.hpp); for a tree of one link that no loop holds
  /// θ = ½. Joints that change the inertia of their subtree by a large fraction within the step are damped, as the
  /// derivation describes. Unless `always`, worlds with h|ω| below 3e-4 use maba(): explicit velocity products are
  /// harmless there. Free balls, which have none, do not count. The energy of some trees is bounded by the work of the
  /// forces (dynamics/energy_bound.inl): those with h|ω| above 0.2 (long chains: less), and those with a link that
  /// slides close to the axis about which its carrier turns. qacc must not alias joint_force.
  /// @param stiff [pack][nv][lane] trees with a positive entry are bounded at any angular velocity; empty: none
  /// @return whether all worlds used maba(). Data holds the factors of M̂ if and only if they did.
  bool accelerate_step(const Model& model, BasicData<R>& data, R h, bool always, In<R> qpos, In<R> qvel,
                       In<R> joint_force, In<R> joint_inertia, Out<R> qacc, In<R> stiff = {});

  enum class Use { never, where_needed, always };
  /// Starts a step whose remaining equations, maba() included, are solved together with the constraints. Sets poses,
  /// velocities and bias forces in data. In worlds where accelerate_step() would not use maba(), qacc is its result
  /// with bounded energy, and found [pack][lane] is 1; elsewhere both are 0. A single world with found = 1 keeps what
  /// accelerate_step() leaves in data.
  void begin_step(const Model& model, BasicData<R>& data, R h, Use use, In<R> qpos, In<R> qvel, In<R> joint_force,
                  In<R> joint_inertia, Out<R> qacc, Out<R> found, In<R> stiff = {});

  /// Whether there are free bodies, which the next two functions change.
  bool has_free_bodies() const { return !bodies_.empty(); }
  /// Changes data.qvel, which is the velocity at data.qpos, to that with which a step of h seconds begins: the numbers
  /// for data.qpos ⊟ h v. Only the linear velocity of free bodies differs that turn about another point than the
  /// origin of their frame.
  void leave_pose(const Model& model, BasicData<R>& data, R h);
  /// Changes the result of a step of h seconds from data.qpos: next_qvel, numbers for data.qpos, to the velocity at
  /// next_qpos, and next_qpos so that the centre of mass of a free body moves by h times its velocity.
  void reach_pose(const Model& model, const BasicData<R>& data, R h, Out<R> next_qpos, Out<R> next_qvel);

 private:
  const std::uint8_t* held() const { return held_.empty() ? nullptr : held_.data(); }

  std::vector<std::uint8_t> held_;
  AlignedVector<std::byte> links_;
  AlignedVector<R> scratch_;
  std::vector<int> bodies_;  ///< links on free joints that carry no others
};

extern template class VelocityProducts<double>;
extern template class VelocityProducts<float>;

}  // namespace tarsus
