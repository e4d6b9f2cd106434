// Translates a model's actuators and passive forces over one step into drives, applied forces and rows, which the step
// solves.
//
//   quantity                                           treatment
//   servo on a hinge or slide: force decreases with    a drive; the force range is a limit on the force at the end of
//   q or q̇                                             the step; several servos on one DoF add up, ranges included
//   other actuators                                    their force at the start of the step, clamped to the range
//   servo on a tendon, a site, a slider-crank;         a row f = clamp(f₀ - D J q̈): the law linearised in the velocity
//   spring, damper, armature of a tendon;              at the end of the step (springs: at its middle, as for
//   polynomial spring and damper of a joint            joint springs, drive.inl)
//   range and dry friction of a tendon                 a rigid row with a bounded force
//   fluid drag that slows a body by more than a        one row along and one about each axis with such drag; its force
//   quarter within the step                            falls to zero with the velocity relative to the fluid
//   other drag, lift, gravity compensation, adhesion   their force at the start of the step
//
// The actuatorfrcrange of a joint or a tendon bounds the sum of its actuators' forces. All lanes of a pack share the
// gains and bounds of drives, up to their worlds' factors (WorldTable); targets, applied forces and rows differ by
// lane. servos_refusal() names the features that would need more.
#pragma once

#include "tarsus/constraint/force_row.hpp"
#include "tarsus/control/actuation.hpp"
#include "tarsus/control/drive.hpp"
#include "tarsus/sim/adhesion.hpp"

namespace tarsus {

/// Selects which actuator and passive forces a step includes, and how.
struct ServoStep {
  double dt = 0;                   ///< [s] > 0
  bool implicit = true;            ///< false: all forces are evaluated at the start of the step, except for
  bool damping = true;             ///< polynomial dampers of joints; false: these too
  bool actuators = true;           ///< false: only passive forces
  bool row_limits = false;         ///< includes ranges and dry friction of tendons
  bool contacts = false;           ///< contacts are on, which adhesion needs
  bool start = true;               ///< false: an intermediate stage, from which no activation advances
  double relative_compliance = 0;  ///< of the tendons' ranges, as TermOptions::relative_compliance
};

/// Reason why worlds with these actuators and passive forces cannot be stepped in SIMD lanes; empty if they can.
/// @param actuators false: only passive forces act
std::string servos_refusal(const Model& model, const Actuation& actuation, bool actuators);

template <class R>
class Servos {
 public:
  /// Keeps a reference to the model.
  /// @param row_limits whether any step will have ServoStep::row_limits  @throws InputError as Actuation
  Servos(const Model& model, const BasicData<R>& data, bool row_limits = true);

  /// Whether the model has neither actuators nor passive forces, so that prepare() leaves tau unchanged.
  bool idle() const { return is_.idle; }

  /// Evaluates the actuator and passive forces for the next step from (qpos, qvel), under data.ctrl, data.act and the
  /// user's tau.
  void prepare(const BasicData<R>& data, const ServoStep& step, In<R> qpos, In<R> qvel, In<R> tau);
  /// @throws InputError naming every actuator whose law is not implemented
  void require_computed() const { actuation_.actuators().require_computed(); }

  // Results of the last prepare().
  const Drives& drives() const { return drives_; }
  In<R> qpos_target() const { return qpos_target_; }
  In<R> qvel_target() const { return qvel_target_; }
  In<R> tau() const { return tau_; }  ///< the user's tau plus all forces that are neither drives nor rows
  std::span<const ForceRow> rows(int world) const { return rows_.of[world]; }
  bool has_rows() const { return is_.has_rows; }  ///< in at least one world
  /// Slots for all rows that any step may have; may_have_rows() tells whether a row can be active.
  std::span<const ForceSlot> slots() const { return slots_.all; }
  bool may_have_rows() const { return is_.may_have_rows; }
  bool passive() const { return !actuation_.passive().empty(); }  ///< the model has passive forces

  /// Advances data.act by dt seconds in the worlds for which `advance` returns true; data.qvel is that of the step's
  /// end.
  template <class F>
  void advance(BasicData<R>& data, double dt, F advance);

 private:
  struct Is {
    bool idle = false, plain_only = false, has_rows = false, damped_by_control = false, heavy_paths = false;
    bool has_motors = false, implicit = false, may_have_rows = false;
  };
  struct OneWorld {  ///< the numbers of one world, contiguous
    std::vector<double> qpos, qvel, ctrl, act, tendon_bias, adhesion;
    std::span<const double> carried_inertia;
    std::vector<ForceRow> drags;  ///< without moment arms
    std::vector<double> arm;      ///< [nv]
    std::vector<double> turn;     ///< [nv] by which a tendon's return moves the joints in a step
    std::optional<Data> ahead;    ///< the pose to which it leads
  };
  /// The actuators of one DoF. The sum of its servos is c - kp q - kd q̇.
  struct Joined {
    double kp = 0, kd = 0;     ///< of the servos with constant gains
    double low = 0, high = 0;  ///< force range of a single actuator; several actuators have none
    bool servo = false;
    int count = 0;  ///< number of actuators
  };
  struct Slots {
    std::vector<ForceSlot> all;
    int first_drag = 0;  ///< first drag slot; each body in the fluid has six
  };
  struct Rows {  ///< [world]
    std::vector<std::vector<ForceRow>> of;
    std::vector<std::vector<double>> arms;  ///< storage for the arms of the rows
  };
  void find_joined();
  void joint_actuators(const BasicData<R>& data, double dt, In<R> qpos, In<R> qvel);
  void all_worlds(const BasicData<R>& data, const ServoStep& step, In<R> qpos, In<R> qvel);
  void add_tendon_rows(int world, const ServoStep& step);
  double tendon_return(int world, double dt, int tendon, double lacking);
  double tendon_compliance(int world, const ServoStep& step, int tendon, double gap, double now);
  void add_tendon_limits(int world, const ServoStep& step, int tendon);
  void add_polynomial_rows(int world, const ServoStep& step);
  void find_drags(const BasicData<R>& data, int world, double dt);
  void mend_lift(const BasicData<R>& data, int world, double dt);
  void find_arm(const Immersion& body, const Vec3d& at, const Force<double>& force);
  void push_arm(const Immersion& body, double factor, int world);
  void add_drag_rows(int world);
  void add_servo_rows(int world, double dt);
  void add_motor_rows(int world, double dt, int actuator, std::span<const double> arm);
  /// Clamps to the force ranges of the actuator and of its tendon.  @param force of the row at the start of the step
  void bound(const Actuator& a, double& force, ForceRow& row) const;
  /// Range of the sum of the actuators' forces on a hinge or slide; null: none.
  const std::array<double, 2>* range_of_sum(int dof) const;
  void add_servo_row(int world, double force, ForceRow row, bool whole = true);
  void add_along(AlignedVector<R>& to, std::span<const int> dofs, std::span<const double> arm, double force,
                 int world) const;
  std::span<const double> tendon_arm(int world, int tendon) const;
  void settle(const BasicData<R>& data);
  void scale_actuators(const BasicData<R>& data, int world);
  MotorStep motor_here(const BasicData<R>& data, const Actuator& a, double dt, int world, double length,
                       double velocity) const;
  /// State of a motor without an affine law between the start and the end of a step.
  struct MotorRun {
    MotorStep step;
    double length = 0, velocity = 0;
  };
  void advance_motor(BasicData<R>& data, int actuator, double dt, int world);
  std::size_t at(int n, int i, int world) const { return batch_index(width_, n, i, world); }

  /// Slot order: four for each tendon, then two for each actuator, then the polynomial springs.
  int actuator_slot() const { return 4 * actuation_.tendons().size(); }
  void find_slots(bool row_limits);

  const Model& model_;
  Actuation actuation_;
  Adhesion adhesion_;
  int worlds_, width_, packs_;
  Is is_;
  std::vector<Joined> joined_;  // [nv]
  std::vector<int> servo_dofs_;
  Drives drives_;
  /// fixed_: actuator forces at the start of the step; row_force_: the rows' force then, for joints that bound a sum.
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
