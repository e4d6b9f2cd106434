// Tendons, actuators and passive forces of one world at one state: the quantities that MuJoCo calls ten_*, actuator_*,
// act_dot, qfrc_actuator and qfrc_passive.
#pragma once

#include "tarsus/control/actuator.hpp"

namespace tarsus {

class Actuation {
 public:
  /// Keeps a reference to the model. @throws InputError naming an object that a tendon or an actuator refers to and
  /// that does not exist
  explicit Actuation(const Model& model);

  const ActuatorSet& actuators() const { return actuators_; }
  const TendonSet& tendons() const { return passive_.tendons(); }
  const PassiveForces& passive() const { return passive_; }

  /// Evaluates all quantities below at a state.  @param dt of the step, for activation_early [s]
  void evaluate(std::span<const double> qpos, std::span<const double> qvel, std::span<const double> ctrl,
                std::span<const double> act, double dt);

  /// Evaluates only passive() at a state.
  void evaluate_passive(std::span<const double> qpos, std::span<const double> qvel);

  // Results of the last evaluate(): length, velocity and force of each actuator; [na] act_dot; [nv] the others.
  std::span<const double> length() const { return length_; }
  std::span<const double> velocity() const { return velocity_; }
  std::span<const double> force() const { return force_; }  ///< clamped to forcerange
  /// Factor that scales the sum of the actuators on this actuator's tendon to the tendon's actuatorfrcrange.
  double tendon_share(const Actuator& a) const { return a.tendon >= 0 ? tendon_share_[a.tendon] : 1; }
  std::span<const double> moment() const { return moment_; }  ///< of each actuator over its dofs, from its `first`
  std::span<const double> act_dot() const { return act_dot_; }
  const MotorStep& motor(int actuator) const { return motors_[actuator]; }  ///< of an actuator that is a motor
  /// Clamped to the joints' actuatorfrcrange, including the gravity compensation that belongs to actuators.
  std::span<const double> actuator_force() const { return qfrc_actuator_; }
  /// Total passive force, including joint springs and dampers. Call evaluate() first.
  void passive_force(std::span<const double> qpos, std::span<const double> qvel, std::span<double> out) const;
  /// Whether the gravity compensation of a DoF belongs to its actuators.
  bool compensates(int dof) const { return compensated_by_actuator_[dof]; }
  double compensation_by_actuator(int dof) const {
    return compensated_by_actuator_[dof] ? passive_.gravity_compensation()[dof] : 0;
  }
  /// Workspace with the poses and velocities of the links, if kinematics were needed or requested.
  const Data& data() const { return data_; }
  Data& workspace() { return data_; }
  /// Sets the mocap bodies' poses for the next evaluate(); empty: those of the file.  @param pos, quat as in Data
  void set_mocap(std::span<const double> pos, std::span<const double> quat);
  void scale_damping(std::span<const double> factors) { passive_.scale_damping(factors); }
  bool scale_actuators(const ActuatorScales& factors) { return actuators_.scale(model_, factors); }
  void ask_for_kinematics() { needs_kinematics_ = true; }

 private:
  void forces(std::span<const double> ctrl, std::span<const double> act, double dt);
  void limit_tendon_forces();

  const Model& model_;
  PassiveForces passive_;
  ActuatorSet actuators_;
  Data data_;
  bool needs_kinematics_;
  std::vector<char> compensated_by_actuator_;  // [nv]
  std::vector<MotorStep> motors_;              // [actuator], if any is a motor
  std::vector<double> tendon_share_;           // [tendon]
  std::vector<double> length_, velocity_, force_, moment_, act_dot_, qfrc_actuator_, row_;
};

}  // namespace tarsus
