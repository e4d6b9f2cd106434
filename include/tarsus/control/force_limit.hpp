// Stable PD with force limits that hold exactly at the end of the step.
//
// A limited drive applies u = clamp(PD force, ±limit), where the PD force is that of drive.hpp at the END of the step.
// Two simpler methods diverge at gains and steps for which MABA is stable: clamping the force of an unlimited solve
// afterwards, and dropping the implicit term of a saturated drive. Here the acceleration minimises a convex function
// that includes the clamped drives (semismooth Newton on MABA's passes 2 and 3, warm-started). This gives stability,
// not accuracy: at steps that do not resolve the motion the implicit clamp over-damps (docs/force_limits.md has
// figures).
//
// Limits act individually on each hinge, slide and translation of a free joint, and on the length of the torque vector
// of a ball joint and of a free joint's rotation.
#pragma once

#include "tarsus/control/drive.hpp"

namespace tarsus {

/// Result of one world's last limited solve.
struct LimitReport {
  int iterations = 0;     ///< factorisations of the tree; 1: the warm start was right
  double residual = 0;    ///< largest |force in the equations of motion - force clamped at the end of the step| / limit
  bool converged = true;  ///< residual within DriveLimiter::tolerance()
  int saturated = 0;      ///< saturated drives; a ball counts once
};

/// Copies the limits of joints with actuatorfrcrange (MJCF) or effort (URDF) to drives.force_limit; other entries
/// become infinite.
void take_force_limits(const Model& model, Drives& drives);

/// The limited solver for the worlds of one model, with scratch memory and warm start. Not for use by two threads at
/// once.
template <class R>
class DriveLimiter {
 public:
  DriveLimiter(const Model& model, const BasicData<R>& data);

  /// drive_terms() and maba() in one, with drives.force_limit enforced. data's joint_force and joint_inertia become
  /// those of the active set of the last iteration; call factor() with them before minv(). In them a saturated drive
  /// adds nothing to M̂. A saturated rotation adds its K times limit / |torque|, which neglects the change of the
  /// torque's direction. Sizes as for drive_terms().
  /// @throws ShapeError, ValueError; as Drives::check
  void solve(BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel, In<R> qpos_target,
             In<R> qvel_target, In<R> tau, Out<R> qacc);

  LimitReport report(int world) const;
  /// The drive forces over the last step [pack][nv][lane], all within their limits.
  std::span<const R> applied() const { return applied_; }
  /// The unclamped forces of the last solve [pack][nv][lane], with which the next solve starts. Overwrite them to start
  /// elsewhere (zero: no drive saturated).
  std::span<R> guess() { return demand_; }

  /// Bound on LimitReport::residual at which the iterations stop.
  static constexpr double tolerance() { return sizeof(R) == 8 ? 5e-10 : 2e-5; }
  static constexpr int kMaxIterations = 400;

 private:
  void take_limits(const Model& model, const Drives& drives);

  const Model& model_;
  int width_;
  bool rotations_ = false;
  AlignedVector<R> demand_, applied_, rounds_, residual_, work_;
  std::vector<R> kp_, kd_, low_, high_, inverse_size_;
};

extern template class DriveLimiter<double>;
extern template class DriveLimiter<float>;

}  // namespace tarsus
