// What acts in one world besides the user's forces: tendons, actuators, passive forces, at one state. The numbers that
// MuJoCo calls ten_*, actuator_*, act_dot, qfrc_actuator and qfrc_passive.
#pragma once

#include "tarsus/control/actuator.hpp"

namespace tarsus {

class Actuation {
 public:
  /// Keeps a reference to the model. @throws InputError naming what a tendon or an actuator refers to and is not there
  explicit Actuation(const Model& model);

  const ActuatorSet& actuators() const { return actuators_; }
  const TendonSet& tendons() const { return passive_.tendons(); }
  const PassiveForces& passive() const { return passive_; }

  /// Everything below at that state.  @param dt of the step whose end activation_early asks for [s]
  void evaluate(std::span<const double> qpos, std::span<const double> qvel, std::span<const double> ctrl,
                std::span<const double> act, double dt);

  /// passive() alone at that state.
  void evaluate_passive(std::span<const double> qpos, std::span<const double> qvel);

  // Of the last evaluate(); length, velocity, force of each actuator; [na] act_dot; [nv] the others.
  std::span<const double> length() const { return length_; }
  std::span<const double> velocity() const { return velocity_; }
  std::span<const double> force() const { return force_; }  ///< within forcerange
  /// Of what several actuators give to this one's tendon, the part that is within the tendon's actuatorfrcrange.
  double tendon_share(const Actuator& a) const { return a.tendon >= 0 ? tendon_share_[a.tendon] : 1; }
  std::span<const double> moment() const { return moment_; }  ///< over the dofs of each, from its `first`
  std::span<const double> act_dot() const { return act_dot_; }
  const MotorStep& motor(int actuator) const { return motors_[actuator]; }  ///< of those that are motors
  /// Within the joints' actuatorfrcrange, with the gravity compensation that belongs to actuators.
  std::span<const double> actuator_force() const { return qfrc_actuator_; }
  /// Joint springs and dampers included. By calling evaluate() first.
  void passive_force(std::span<const double> qpos, std::span<const double> qvel, std::span<double> out) const;
  /// Gravity compensation that belongs to the actuators of that DoF.
  bool compensates(int dof) const { return compensated_by_actuator_[dof]; }
  double compensation_by_actuator(int dof) const {
    return compensated_by_actuator_[dof] ? passive_.gravity_compensation()[dof] : 0;
  }
  /// Workspace with the links' poses and velocities, if kinematics were needed (or asked for).
  const Data& data() const { return data_; }
  Data& workspace() { return data_; }
  /// Where mocap bodies are, for the next evaluate(); empty: where the file has them.  @param pos, quat as Data's
  void set_mocap(std::span<const double> pos, std::span<const double> quat);
  void scale_damping(std::span<const double> factors) { passive_.scale_damping(factors); }
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
