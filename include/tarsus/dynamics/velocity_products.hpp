// Forward dynamics with Coriolis and gyroscopic forces taken linearly implicitly:
//
//     (M₀ + diag K + θh ∂C/∂v) q̈ = Q - C(q, v)
//
// Explicit velocity products make undamped characters gain energy at long steps. This equation does not, and the
// articulated-body pass that solves it with two matrices a link is O(nlink) like ABA; see
// src/dynamics/velocity_products.inl for the derivation.
#pragma once

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

/// Scratch of the pass for one pack of worlds, kept between calls. Not for use by two threads at once.
template <class R>
class VelocityProducts {
 public:
  VelocityProducts(const Model& model, const BasicData<R>& data);

  /// q̈ of the equation above.
  /// @param theta_h θh [pack][lane] of each world [s], not negative; 0 gives maba()
  /// @param tangent [pack][nlink][6][6][lane] B of each link, or empty: the force B w that resists the change w = J q̈
  ///   of its velocity, about its origin in world axes, moment and angular velocity first; B need not be symmetric.
  /// The other arguments are maba()'s. Afterwards data holds poses and velocities, but no factors for minv(); a single
  /// world's data.links()[i].a is J_i q̈. @throws ShapeError if a span's size is wrong
  void accelerate(const Model& model, BasicData<R>& data, In<R> theta_h, In<R> qpos, In<R> qvel, In<R> joint_force,
                  In<R> joint_inertia, Out<R> qacc, In<R> external = {}, In<R> tangent = {});

  /// The same for a step of h seconds, with θ of each tree from its own state: ½ + h|ω|, at most 1, ω the angular
  /// velocity of its fastest link, and ½ of one link alone; and with the damping of joints that change the inertia of
  /// what they carry by a large share within the step, which the derivation describes. Unless `always`, worlds with
  /// h|ω| below 3e-4 take maba(): there explicit velocity products cost nothing. Trees with h|ω| above 0.2, long
  /// chains with less, and those with a link that slides close to the axis that it is turned about gain no more energy
  /// than forces give them (dynamics/energy_bound.inl). qacc must not be joint_force.
  /// @param alone no loop holds the trees: these are bounded with less damping
  /// @param stiff [pack][nv][lane] trees in which it is positive are bounded however they turn; empty: none
  /// @return whether all worlds took maba(): then, and only then, data holds the factors of M̂
  bool accelerate_step(const Model& model, BasicData<R>& data, R h, bool always, bool alone, In<R> qpos, In<R> qvel,
                       In<R> joint_force, In<R> joint_inertia, Out<R> qacc, In<R> stiff = {});

  enum class Use { never, where_needed, always };
  /// What a step begins with that solves for the rest, maba() included, together with its constraints: poses,
  /// velocities and bias forces in data; and qacc as accelerate_step() finds it, bounded, in worlds where it would not
  /// take maba(). There found [pack][lane] is 1, elsewhere it and qacc are 0. A single world that is found keeps what
  /// accelerate_step() leaves in data.
  void begin_step(const Model& model, BasicData<R>& data, R h, Use use, In<R> qpos, In<R> qvel, In<R> joint_force,
                  In<R> joint_inertia, Out<R> qacc, Out<R> found, In<R> stiff = {});

 private:
  AlignedVector<std::byte> links_;
  AlignedVector<R> scratch_;
};

extern template class VelocityProducts<double>;
extern template class VelocityProducts<float>;

}  // namespace tarsus
