// Stable PD with force limits that hold at the end of the step, exactly.
//
// A limited drive applies u = clamp(PD force, ±limit), where the PD force is that of drive.hpp at the END of the step.
// Clamping the force of an unlimited solve afterwards, or dropping a saturated drive's implicit term, blows up at gains
// and steps that MABA itself bears; here the acceleration minimises a convex function of which the clamped drives are
// part (semismooth Newton on MABA's passes 2 and 3, warm-started). What that buys is stability, not fidelity: at steps
// that do not resolve the motion the implicit clamp over-damps (docs/force_limits.md has figures).
//
// Limits act on each hinge, slide and translation of a free joint alone, and on the length of the torque vector of a
// ball joint and of a free joint's rotation.
#pragma once

#include "tarsus/control/drive.hpp"

namespace tarsus {

/// How one world's last limited solve went.
struct LimitReport {
  int iterations = 0;     ///< factorisations of the tree; 1: last step's guess was right
  double residual = 0;    ///< largest |force in the equations of motion - force clamped at the end of the step| / limit
  bool converged = true;  ///< residual within DriveLimiter::tolerance()
  int saturated = 0;      ///< drives at their limit; a ball counts once
};

/// Limits of every joint that has actuatorfrcrange (MJCF) or effort (URDF) into drives.force_limit; infinite elsewhere.
void take_force_limits(const Model& model, Drives& drives);

/// The limited solve of one model's worlds, with its scratch and its warm start. Not for use by two threads at once.
template <class R>
class DriveLimiter {
 public:
  DriveLimiter(const Model& model, const BasicData<R>& data);

  /// drive_terms() and maba() in one, with drives.force_limit kept. data's joint_force and joint_inertia become those
  /// of the last round's pieces; call factor() with them before minv() (a drive at its limit adds nothing to M̂ then, a
  /// rotation at its limit adds its K times limit / |torque|, which leaves out the direction of the torque).
  /// Sizes as drive_terms().  @throws ShapeError, ValueError
  void solve(BasicData<R>& data, const Drives& drives, double dt, In<R> qpos, In<R> qvel, In<R> qpos_target,
             In<R> qvel_target, In<R> tau, Out<R> qacc);

  LimitReport report(int world) const;
  /// The drives' forces over the last step [pack][nv][lane], all within their limits.
  std::span<const R> applied() const { return applied_; }
  /// The unclamped forces of the last solve [pack][nv][lane]: where the next one starts. Fill it to start elsewhere
  /// (zero: no drive at its limit).
  std::span<R> guess() { return demand_; }

  /// Bound on LimitReport::residual at which rounds stop.
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
