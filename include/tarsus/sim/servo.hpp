// A model's actuators and passive forces over one step, as what the step solves: drives, applied forces, and rows.
//
//   what                                               becomes
//   servo on a hinge or slide: falls with q or q̇       a drive, its force range a limit that holds at the end
//                                                      of the step; several on one DoF add up, so do their ranges
//   other actuators                                    their force at the start of the step, within its range
//   servo on a tendon, a site, a slider-crank;         a row f = clamp(f₀ - D J q̈): its law, linear in the velocity at
//   spring, damper, armature of a tendon;              the end of the step (springs: at its middle, as those of
//   polynomial spring and damper of a joint            joints, drive.inl)
//   range and dry friction of a tendon                 a rigid row: what it may hold, it holds
//   drag of a fluid where it brakes a body by more     a row along and about each axis that is so dragged, which falls
//   than a quarter within the step                     to zero with the velocity against the fluid
//   other drag, lift, gravity compensation, adhesion   their force at the start of the step
//
// The actuatorfrcrange of a joint or a tendon bounds the sum of what its actuators bring. Gains and bounds of drives
// are shared by lanes, targets, applied forces and rows are each lane's own: servos_refusal() names what needs more.
#pragma once

#include "tarsus/constraint/force_row.hpp"
#include "tarsus/control/actuation.hpp"
#include "tarsus/control/drive.hpp"
#include "tarsus/sim/adhesion.hpp"

namespace tarsus {

/// What a step takes from a model's actuators and passive forces.
struct ServoStep {
  double dt = 0;            ///< [s] > 0
  bool implicit = true;     ///< false: every force is that of the start
  bool actuators = true;    ///< false: passive forces alone
  bool row_limits = false;  ///< ranges and dry friction of tendons too
  bool contacts = false;    ///< adhesion, which needs them
  bool start = true;        ///< false: a stage within a step, from whose state no activation goes on
};

/// Why worlds with these actuators and passive forces cannot be stepped in lanes; empty if they can.
/// @param actuators false: passive forces alone act
std::string servos_refusal(const Model& model, const Actuation& actuation, bool actuators);

template <class R>
class Servos {
 public:
  /// Keeps a reference to the model. @param row_limits of some step  @throws InputError as Actuation
  Servos(const Model& model, const BasicData<R>& data, bool row_limits = true);

  /// The model has neither actuators nor passive forces of its own: prepare() would leave tau as it is.
  bool idle() const { return is_.idle; }

  /// What acts over the next step from (qpos, qvel), under data.ctrl, data.act and the user's tau.
  void prepare(const BasicData<R>& data, const ServoStep& step, In<R> qpos, In<R> qvel, In<R> tau);
  /// @throws InputError naming each actuator whose law is not computed
  void require_computed() const { actuation_.actuators().require_computed(); }

  // Of the last prepare().
  const Drives& drives() const { return drives_; }
  In<R> qpos_target() const { return qpos_target_; }
  In<R> qvel_target() const { return qvel_target_; }
  In<R> tau() const { return tau_; }  ///< the user's and all that is not a drive or a row
  std::span<const ForceRow> rows(int world) const { return rows_.of[world]; }
  bool has_rows() const { return is_.has_rows; }  ///< in some world
  /// Of all rows that there may be in some step, and whether there are some that act.
  std::span<const ForceSlot> slots() const { return slots_.all; }
  bool may_have_rows() const { return is_.may_have_rows; }
  bool passive() const { return !actuation_.passive().empty(); }  ///< some of it acts without actuators

  /// data.act after dt seconds, in the worlds of which `advance` says so; data.qvel at the end of the step.
  template <class F>
  void advance(BasicData<R>& data, double dt, F advance);

 private:
  struct Is {
    bool idle = false, plain_only = false, has_rows = false, damped_by_control = false, heavy_paths = false;
    bool has_motors = false, implicit = false, may_have_rows = false;
  };
  struct OneWorld {  ///< its numbers one after another
    std::vector<double> qpos, qvel, ctrl, act, tendon_bias, adhesion;
    std::span<const double> carried_inertia;
    std::vector<ForceRow> drags;  ///< without arms
    std::vector<double> arm;      ///< [nv]
  };
  /// The actuators of one DoF. Its servos together are c - kp q - kd q̇.
  struct Joined {
    double kp = 0, kd = 0;     ///< of those whose gains are constant
    double low = 0, high = 0;  ///< range of the only one; of several, none has any
    bool servo = false;
    int count = 0;  ///< of all actuators
  };
  struct Slots {
    std::vector<ForceSlot> all;
    int first_drag = 0;  ///< six for each body in the fluid, from here on
  };
  struct Rows {  ///< [world]
    std::vector<std::vector<ForceRow>> of;
    std::vector<std::vector<double>> arms;  ///< what they point into
  };
  void find_joined();
  void joint_actuators(const BasicData<R>& data, double dt, In<R> qpos, In<R> qvel);
  void all_worlds(const BasicData<R>& data, const ServoStep& step, In<R> qpos, In<R> qvel);
  void add_tendon_rows(int world, const ServoStep& step);
  double tendon_return(int world, int tendon) const;
  void add_tendon_limits(int world, double dt, int tendon);
  void add_polynomial_rows(int world, double dt);
  void find_drags(const BasicData<R>& data, int world, double dt);
  void mend_lift(const BasicData<R>& data, int world, double dt);
  void find_arm(const Immersion& body, const Vec3d& at, const Force<double>& force);
  void push_arm(const Immersion& body, double factor, int world);
  void add_drag_rows(int world);
  void add_servo_rows(int world, double dt);
  void add_motor_rows(int world, double dt, int actuator, std::span<const double> arm);
  /// Within the actuator's own range and its tendon's.  @param force the row's at the start of the step
  void bound(const Actuator& a, double& force, ForceRow& row) const;
  void add_servo_row(int world, double force, ForceRow row);
  void add_along(AlignedVector<R>& to, std::span<const int> dofs, std::span<const double> arm, double force,
                 int world) const;
  std::span<const double> tendon_arm(int world, int tendon) const;
  void settle();
  MotorStep motor_here(const BasicData<R>& data, const Actuator& a, double dt, int world, double length,
                       double velocity) const;
  /// What motors that are not affine take on from a step's start to its end.
  struct MotorRun {
    MotorStep step;
    double length = 0, velocity = 0;
  };
  void advance_motor(BasicData<R>& data, int actuator, double dt, int world);
  std::size_t at(int n, int i, int world) const {
    return (std::size_t(world / width_) * n + i) * width_ + world % width_;
  }

  /// The tendons' are the first, four for each; then the actuators', two for each.
  int actuator_slot() const { return 4 * actuation_.tendons().size(); }
  int polynomial_slot() const { return actuator_slot() + 2 * actuation_.actuators().size(); }
  void find_slots(bool row_limits);

  const Model& model_;
  Actuation actuation_;
  Adhesion adhesion_;
  int worlds_, width_, packs_;
  Is is_;
  std::vector<Joined> joined_;  // [nv]
  std::vector<int> servo_dofs_;
  Drives drives_;
  /// fixed_: of actuators, from the step's start; row_force_: what rows give then to joints whose range bounds a sum.
  AlignedVector<R> tau_, fixed_, servo_, row_force_, qpos_target_, qvel_target_;
  Slots slots_;
  Rows rows_;
  std::vector<std::vector<MotorRun>> motors_;  // [world][actuator]
  OneWorld one_;
};

extern template class Servos<double>;
extern template class Servos<float>;

template <class R>
template <class F>
void Servos<R>::advance(BasicData<R>& data, double dt, F advance) {
  const ActuatorSet& actuators = actuation_.actuators();
  for (int i = 0; i < actuators.size() && model_.na > 0; ++i) {
    const Actuator& a = actuators[i];
    if (a.act < 0 || !a.active) continue;
    for (int world = 0; world < worlds_; ++world) {
      if (!advance(world)) continue;
      if (a.motor) {
        advance_motor(data, i, dt, world);
        continue;
      }
      R& act = data.act[at(model_.na, a.act, world)];
      const double ctrl = a.clamped_control(double(data.ctrl[at(model_.nu, a.ctrl, world)]));
      act = R(a.next_activation(double(act), ctrl, dt));
    }
  }
}

}  // namespace tarsus
