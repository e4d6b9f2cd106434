// Loops add no energy where links turn far: the bound of dynamics/energy_bound.inl, beside loops.
//
// Rows of loops are those of the step's start. Where a link turns by radians within the step they lead elsewhere, and
// what pulls the error back, against the forces of what swings round, is work: a limp character that hangs by its hand
// at 60 Hz was lost within a second. Where loops do more work than the step has left, joints are damped,
//
//     (M + K + λ D) q̈ = Q - C - λ D v / h,
//
// D what a joint carries at rest, errors are pulled back less, and the step is solved anew, each time with more of
// both. Damping is internal: momentum stays.
#pragma once

#include "tarsus/constraint/constrained_dynamics.hpp"

namespace tarsus {

/// How much joints are damped and errors pulled back in each world of a Stepper.
template <class R>
class LoopBound {
 public:
  LoopBound(const Model& model, const BasicData<R>& data);

  /// A step without damping and without a bound.
  void begin();
  /// Adds the damping to what a step of h seconds is solved with, all [pack][nv][lane].
  void damp(R h, In<R> qvel, Out<R> joint_force, Out<R> joint_inertia) const;
  /// How much of the loops' errors is pulled back, as a share of what usually is [pack][lane]; empty: all of it.
  In<R> pull() const { return damped_ ? In<R>(pull_) : In<R>(); }
  /// What the loops' solve starts from: v⁰ = qvel + h qacc.
  void start(R h, In<R> qvel, In<R> qacc);
  /// Energy that loops may add [pack][lane], as VelocityProducts::accelerate_step() finds it.
  Out<R> left() { return left_; }
  /// After a solve to the velocity `next`. @return whether the step is to be solved anew
  bool again(ConstrainedDynamics<R>& loops, const BasicData<R>& data, R h, In<R> qpos, In<R> qvel, In<R> next);

 private:
  static constexpr int kTries = 5;
  /// That of a try: λ = 4^level, or none, and 2^-level of the pull.
  void set(std::size_t world, int level);

  /// ½ vᵀ (M + K) v of one world, K data's.
  R energy_of(const BasicData<R>& data, In<R> qpos, In<R> v);

  const Model& model_;
  int nv_, width_;
  AlignedVector<R> inertia_;                      // D [nv]
  AlignedVector<R> left_, work_, lambda_, pull_;  // [pack][lane]
  AlignedVector<R> start_, both_;                 // [pack][nv][lane]
  AlignedVector<R> least_;                        // gain of the best try so far [pack][lane]
  std::vector<int> best_;                         // which it was
  BasicData<R> workspace_;                        // of one world
  int tried_ = 0;
  bool damped_ = false;
};

extern template class LoopBound<double>;
extern template class LoopBound<float>;

}  // namespace tarsus
