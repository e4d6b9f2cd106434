#include "tarsus/control/actuation.hpp"

#include <algorithm>
#include <cmath>

namespace tarsus {

Actuation::Actuation(const Model& model)
    : model_(model),
      passive_(model),
      actuators_(model, passive_.tendons()),
      data_(model),
      needs_kinematics_(passive_.needs_kinematics() || actuators_.needs_kinematics()),
      compensated_by_actuator_(model.nv, 0) {
  for (auto* v : {&length_, &velocity_, &force_}) v->resize(actuators_.size());
  moment_.resize(actuators_.moments()), act_dot_.resize(model.na), tendon_share_.assign(tendons().size(), 1);
  qfrc_actuator_.resize(model.nv), row_.resize(model.nv);
  for (int i = 0; i < actuators_.size(); ++i) {
    if (actuators_[i].motor) motors_.resize(actuators_.size());
  }
  for (int i = 0; i < model.njoint(); ++i) {
    const Joint& joint = model.joints[i];
    const JointSpec& spec = model.spec.bodies[joint.body].joints[i - model.bodies[joint.body].joint_first];
    for (int k = 0; k < joint.nv(); ++k)
      compensated_by_actuator_[joint.qvel + k] =
          spec.actuator_gravity_compensation && actuators_.size() > 0 && model.spec.option.actuation_enabled;
  }
}

void Actuation::set_mocap(std::span<const double> pos, std::span<const double> quat) {
  if (model_.nmocap() == 0) return;
  if (pos.empty()) {
    const Data drawn(model_);
    return set_mocap(drawn.mocap_pos, drawn.mocap_quat);
  }
  check_size("mocap_pos", pos.size(), data_.mocap_pos.size());
  check_size("mocap_quat", quat.size(), data_.mocap_quat.size());
  std::copy(pos.begin(), pos.end(), data_.mocap_pos.begin());
  std::copy(quat.begin(), quat.end(), data_.mocap_quat.begin());
}

void Actuation::evaluate_passive(std::span<const double> qpos, std::span<const double> qvel) {
  if (passive_.needs_kinematics()) kinematics<double>(model_, data_, qpos, qvel);
  passive_.evaluate(data_.links(), qpos, qvel);
}

void Actuation::evaluate(std::span<const double> qpos, std::span<const double> qvel, std::span<const double> ctrl,
                         std::span<const double> act, double dt) {
  check_size("ctrl", ctrl.size(), model_.nu);
  check_size("act", act.size(), model_.na);
  if (needs_kinematics_) kinematics<double>(model_, data_, qpos, qvel);
  const LinkState<double>* const links = data_.links();
  passive_.evaluate(links, qpos, qvel);
  transmissions(model_, actuators_, tendons(), links, qpos, passive_.tendon_length(), passive_.tendon_arm(), length_,
                moment_, row_);
  std::fill(qfrc_actuator_.begin(), qfrc_actuator_.end(), 0.0);
  for (int i = 0; i < actuators_.size(); ++i) {
    const Actuator& a = actuators_[i];
    velocity_[i] = 0;
    if (!a.active && a.computed) continue;  // actuation is disabled: MuJoCo reads 0
    for (std::size_t k = 0; k < a.dofs.size(); ++k) velocity_[i] += moment_[a.first + k] * qvel[a.dofs[k]];
  }
  forces(ctrl, act, dt);
  if (!model_.spec.option.actuation_enabled) std::fill(act_dot_.begin(), act_dot_.end(), 0.0);
  for (int i = 0; i < actuators_.size(); ++i) {
    const Actuator& a = actuators_[i];
    for (std::size_t k = 0; k < a.dofs.size(); ++k) qfrc_actuator_[a.dofs[k]] += moment_[a.first + k] * force_[i];
  }
  for (const Joint& joint : model_.joints) {
    for (int k = joint.qvel; k < joint.qvel + joint.nv(); ++k) qfrc_actuator_[k] += compensation_by_actuator(k);
    if (joint.force_limited && joint.nv() == 1) {
      double& force = qfrc_actuator_[joint.qvel];
      force = std::clamp(force, joint.force_range[0], joint.force_range[1]);
    }
  }
}

void Actuation::forces(std::span<const double> ctrl, std::span<const double> act, double dt) {
  for (int i = 0; i < actuators_.size(); ++i) {
    const Actuator& a = actuators_[i];
    if (a.motor) {
      const auto u = a.clamped_controls([&](int k) { return ctrl[a.ctrl + k]; });
      motors_[i] =
          motor_step(*a.motor, u.data(), act.data() + std::max(0, a.act), length_[i], velocity_[i], a.period, dt);
      std::copy_n(motors_[i].rates.begin(), a.motor->activations(), act_dot_.begin() + std::max(0, a.act));
      force_[i] = a.active ? motors_[i].torque(length_[i], velocity_[i]) : 0;
      continue;
    }
    double input = a.clamped_control(ctrl[a.ctrl]);
    if (a.act >= 0) {
      act_dot_[a.act] = a.activation_rate(input, act[a.act]);
      input = a.early ? a.next_activation(act[a.act], input, dt) : act[a.act];
    }
    force_[i] = a.active ? a.force(input, length_[i], velocity_[i]) : 0;
  }
  if (actuators_.limits_tendons()) limit_tendon_forces();
  for (int i = 0; i < actuators_.size(); ++i) {
    if (actuators_[i].active) force_[i] = actuators_[i].clamped_force(force_[i]);
    if (actuators_[i].motor && actuators_[i].active) force_[i] += motors_[i].cogging - motors_[i].friction;
  }
}

/// Scales the forces of actuators on one tendon so that their sum stays within its range.
void Actuation::limit_tendon_forces() {
  std::vector<double> total(tendons().size(), 0);
  for (int i = 0; i < actuators_.size(); ++i) {
    if (actuators_[i].tendon >= 0) total[actuators_[i].tendon] += force_[i];
  }
  for (int t = 0; t < tendons().size(); ++t) {
    if (!tendons()[t].force_limited) continue;
    const auto [low, high] = tendons()[t].force_range;
    tendon_share_[t] = total[t] == 0 ? 1 : std::clamp(total[t], low, high) / total[t];
  }
  for (int i = 0; i < actuators_.size(); ++i) force_[i] *= tendon_share(actuators_[i]);
}

void Actuation::passive_force(std::span<const double> qpos, std::span<const double> qvel, std::span<double> out) const {
  check_size("out", out.size(), model_.nv);
  std::vector<double> stretch(model_.nv);
  difference(model_, model_.qpos_spring, qpos, stretch);
  for (const Joint& joint : model_.joints) {
    for (int k = joint.qvel; k < joint.qvel + joint.nv(); ++k)
      out[k] =
          passive_.force()[k] + passive_.polynomial_force()[k] - joint.stiffness * stretch[k] - joint.damping * qvel[k];
  }
  for (int t = 0; t < tendons().size(); ++t) {
    const Tendon& tendon = tendons()[t];
    for (std::size_t i = 0; i < tendon.dofs.size(); ++i)
      out[tendon.dofs[i]] += passive_.tendon_arm()[tendon.first + i] * passive_.tendon_force()[t];
  }
}

}  // namespace tarsus
