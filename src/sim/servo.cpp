#include "tarsus/sim/servo.hpp"

#include <algorithm>
#include <cmath>

#include "tarsus/base/index.hpp"
#include "tarsus/constraint/spook.hpp"
#include "tarsus/dynamics/own_numbers.hpp"
#include "tarsus/dynamics/spring_rule.hpp"
#include "tarsus/model/jcalc.inl"

namespace tarsus {

namespace {

/// Largest speed at which a tendon beyond its range returns, and the joints that it moves [m/s | rad/s].
constexpr double kTendonReturn = 5;
/// (h ω)² up to which a tendon beyond its range pulls links across itself, and most of R over a row's inverse mass.
constexpr double kTendonSwing = 0.5, kTendonSoftest = 0.25;
constexpr double kTendonPull = 4e5;    ///< largest acceleration by a tendon beyond its range [m/s² | rad/s²]
constexpr double kTendonNear = 1e-4;   ///< over shorter ways back tensions are no such spring [m]
constexpr double kTendonReach = 0.02;  ///< of an end of a range within which it is near, as of joints [m | rad]
constexpr double kTendonRest = 1e-9;   ///< slower returns are ignored: the arms are rounding errors [m/s | rad/s]
/// Drag becomes a row if it would take this fraction of a single body's velocity along or about an axis in a step.
constexpr double kDragFelt = 0.25;

/// The row of a spring and damper moving at a given speed over a step; `force` is its force at the start.
ForceRow falling(double force, double stiffness, double damping, double speed, double dt,
                 SpringRule<double> rule = {1, 1}) {
  ForceRow row;
  row.force = force - stiffness * dt * rule.ahead * speed;
  row.slope = dt * damping + dt * dt * rule.share * stiffness;
  return row;
}

/// A lane's n numbers of a WorldTable's [lane][n]; empty: the table has none.
std::span<const double> of_lane(const std::vector<double>& all, int n, int lane) {
  return all.empty() ? std::span<const double>() : std::span(all).subspan(at(n * lane), at(n));
}

/// Clamps the row's force to a range.
void narrow(ForceRow& row, double low, double high) {
  row.low = std::clamp(row.low, low, high), row.high = std::clamp(row.high, low, high);
}

}  // namespace

std::string servos_refusal(const Model& model, const Actuation& actuation, bool actuators) {
  const ActuatorSet& set = actuation.actuators();
  if (!actuators || set.size() == 0) return {};
  std::vector<char> servo(at(model.nv)), other(at(model.nv));
  for (int i = 0; i < set.size(); ++i) {
    const Actuator& a = set[i];
    if (!a.active) continue;
    if (a.plain && a.gain[2] != 0) return "actuators whose control is a damping are not supported in SIMD lanes";
    for (const int v : a.dofs) (a.is_joint_servo() ? servo : other)[at(v)] = 1;
  }
  for (int v = 0; v < model.nv; ++v) other[at(v)] |= actuation.compensates(v);
  for (const Joint& joint : model.joints) {
    const std::size_t v = at(joint.qvel);
    if (joint.nv() == 1 && joint.force_limited && servo[v] && other[v])
      return "a joint with actuatorfrcrange and both servos and other actuators or actuatorgravcomp is not "
             "supported in SIMD lanes";
  }
  return {};
}

template <class R>
Servos<R>::Servos(const Model& model, const BasicData<R>& data, bool row_limits)
    : model_(model),
      actuation_(model),
      adhesion_(model, actuation_.actuators()),
      worlds_(data.worlds()),
      width_(data.width()),
      packs_(data.packs()),
      joined_(model.nv),
      drives_(Drives::none(model)) {
  const PassiveForces& passive = actuation_.passive();
  is_.idle = actuation_.actuators().size() == 0 && passive.empty();
  is_.plain_only = actuation_.actuators().plain() && passive.empty();  // gravity compensation is a passive force
  if (!adhesion_.empty()) actuation_.ask_for_kinematics();
  drives_.spin_damping = 0;  // no damping that the model does not have
  find_joined();
  for (auto* v : {&tau_, &fixed_, &servo_, &row_force_, &qvel_target_}) v->resize(data.size(model.nv));
  qpos_target_.resize(data.size(model.nq));
  const std::vector<R> rest(model.qpos0.begin(), model.qpos0.end());
  for (int world = 0; world < packs_ * width_; ++world) data.set(qpos_target_, model.nq, world, rest);
  rows_.of.resize(worlds_), rows_.arms.resize(worlds_);
  find_slots(row_limits);
  for (int i = 0; i < actuation_.actuators().size(); ++i) {
    const Actuator& a = actuation_.actuators()[i];
    for (const int v : a.dofs) ++joined_[v].count;
    is_.plain_only &= a.plain, is_.has_motors |= a.motor.has_value();
  }
  for (int v = 0; v < model.nv; ++v) joined_[v].count += actuation_.compensates(v);
  if (is_.has_motors) motors_.assign(worlds_, std::vector<MotorRun>(actuation_.actuators().size()));
  one_.tendon_bias.resize(actuation_.tendons().size());
  for (int t = 0; t < actuation_.tendons().size(); ++t)
    is_.heavy_paths |= actuation_.tendons()[t].armature > 0 && !actuation_.tendons()[t].path.empty();
  one_.qpos.resize(model.nq), one_.qvel.resize(model.nv);
  one_.ctrl.resize(model.nu), one_.act.resize(model.na);
}

template <class R>
void Servos<R>::find_slots(bool row_limits) {
  const auto add = [&](std::span<const int> dofs, int count, int on_link = -1, bool acts = true) {
    slots_.all.insert(slots_.all.end(), std::size_t(count), ForceSlot{dofs, on_link, acts});
  };
  for (int t = 0; t < actuation_.tendons().size(); ++t) {
    const Tendon& tendon = actuation_.tendons()[t];
    add(tendon.dofs, 1, -1, tendon.armature > 0 || tendon.is_elastic());
    add(tendon.dofs, 2, -1, row_limits && tendon.limited);
    add(tendon.dofs, 1, -1, row_limits && tendon.friction_loss > 0);
  }
  for (int i = 0; i < actuation_.actuators().size(); ++i) {
    const Actuator& a = actuation_.actuators()[i];
    const bool rows = a.active && !a.plain;
    add(a.dofs, 1, -1, rows && (a.motor || a.gain[1] != 0 || a.gain[2] != 0 || falls(a.stiffness(0), a.damping(0))));
    add(a.dofs, 1, -1, rows && a.motor);
  }
  for (const PassiveForces::Polynomial& p : actuation_.passive().polynomials()) {
    for (int k = 0; k < p.count; ++k) add({&p.dofs[k], 1}, 1);
  }
  slots_.first_drag = int(slots_.all.size());
  actuation_.passive().each_immersed([&](int link, std::span<const int> dofs) { add(dofs, 6, link); });
  is_.may_have_rows =
      std::any_of(slots_.all.begin(), slots_.all.end(), [](const ForceSlot& slot) { return slot.acts; });
}

/// Gains and ranges of the servos on each DoF, as far as they are independent of controls.
template <class R>
void Servos<R>::find_joined() {
  servo_dofs_.clear();
  for (Joined& j : joined_) j = {.count = j.count};
  for (int i = 0; i < actuation_.actuators().size(); ++i) {
    const Actuator& a = actuation_.actuators()[i];
    if (!a.is_joint_servo()) continue;
    const double g = a.gear[0];
    Joined& j = joined_[a.dofs[0]];
    const bool by_control = a.gain[2] != 0;
    is_.damped_by_control |= by_control;
    const auto [low, high] = std::minmax({g * a.force_range[0], g * a.force_range[1]});
    j.low += a.force_limited ? low : -kInfinity, j.high += a.force_limited ? high : kInfinity;
    j.servo = true;
    if (by_control) continue;
    j.kp += g * g * a.stiffness(0), j.kd += g * g * a.damping(0);
  }
  bool bounded = false;
  for (int v = 0; v < model_.nv; ++v) {
    const Joined& j = joined_[v];
    if (!j.servo) continue;
    servo_dofs_.push_back(v);
    drives_.kp[v] = j.kp, drives_.kd[v] = j.kd;
    bounded =
        bounded || std::isfinite(j.low) || std::isfinite(j.high) || model_.joints[model_.dof_joint[v]].force_limited;
  }
  if (!bounded) return;
  drives_.force_limit.assign(model_.nv, kInfinity);
  drives_.force_floor.assign(model_.nv, -kInfinity);
}

template <class R>
void Servos<R>::prepare(const BasicData<R>& data, const ServoStep& step, In<R> qpos, In<R> qvel, In<R> tau) {
  check_size("qpos", qpos.size(), qpos_target_.size());
  check_size("qvel", qvel.size(), tau_.size());
  check_size("tau", tau.size(), tau_.size());
  std::copy(tau.begin(), tau.end(), tau_.begin());
  for (auto& rows : rows_.of) rows.clear();
  for (auto* v : {&fixed_, &servo_, &row_force_}) std::fill(v->begin(), v->end(), R(0));
  if (step.actuators ? !is_.plain_only || !step.implicit : !actuation_.passive().empty())
    all_worlds(data, step, qpos, qvel);
  is_.has_rows = std::any_of(rows_.of.begin(), rows_.of.end(), [](const auto& rows) { return !rows.empty(); });
  is_.implicit = step.implicit;
  if (!step.actuators || !step.implicit) return;
  joint_actuators(data, step.dt, qpos, qvel);
  settle(data);
}

/// Sets the actuators' laws in one world. Lanes share the model's gains, which the kernels scale.
template <class R>
void Servos<R>::scale_actuators(const BasicData<R>& data, int world) {
  ActuatorScales factors;
  if (data.own) {
    const WorldTable<R>& own = data.own[world / width_];
    const auto mine = [&](const std::vector<double>& all) {
      return of_lane(all, actuation_.actuators().size(), world % width_);
    };
    factors = {mine(own.actuator_gain), mine(own.actuator_damping), mine(own.actuator_force)};
  }
  if (actuation_.scale_actuators(factors) && width_ == 1) find_joined();
}

/// Actuators with affine laws on hinges and slides: adds each lane's part to servo_ or to fixed_.
template <class R>
void Servos<R>::joint_actuators(const BasicData<R>& data, double dt, In<R> qpos, In<R> qvel) {
  for (int world = 0; world < packs_ * width_; ++world) {
    scale_actuators(data, world);
    if (is_.damped_by_control) find_joined();  // never in lanes
    for (int i = 0; i < actuation_.actuators().size(); ++i) {
      const Actuator& a = actuation_.actuators()[i];
      if (!a.plain || !a.active) continue;
      const int v = a.dofs[0];
      const double g = a.gear[0];
      const bool servo = a.is_joint_servo();
      const std::size_t place = at(model_.nv, v, world);
      const double speed = g * double(qvel[place]);
      if (a.motor) {
        const double length = g * double(qpos[at(model_.nq, model_.joints[a.joint].qpos, world)]);
        const MotorStep step = motor_here(data, a, dt, world, length, speed);
        if (servo)
          servo_[place] += R(g * step.offset);
        else
          fixed_[place] += R(g * a.clamped_force(step.torque(length, speed)));
        if (world < worlds_) motors_[world][i] = {step, length, speed};
        continue;
      }
      double u = a.clamped_control(double(data.ctrl[at(model_.nu, a.ctrl, world)]));
      if (a.act >= 0) {
        const double now = double(data.act[at(model_.na, a.act, world)]);
        u = a.early ? a.next_activation(now, u, dt) : now;
      }
      if (!servo) {
        const double length = g * double(qpos[at(model_.nq, model_.joints[a.joint].qpos, world)]);
        fixed_[place] += R(g * a.clamped_force(a.force(u, length, speed)));
        continue;
      }
      servo_[place] += R(g * (a.gain[0] * u + a.bias[0]));
      if (a.gain[2] == 0) continue;
      drives_.kp[v] += g * g * a.stiffness(0);
      drives_.kd[v] += g * g * std::max(0.0, a.damping(u));
      servo_[place] -= R(g * std::min(0.0, a.damping(u)) * speed);
    }
  }
}

/// Sets the drives' targets and limits; adds everything else to tau.
template <class R>
void Servos<R>::settle(const BasicData<R>& data) {
  const auto own = [&](const AlignedVector<R> WorldTable<R>::*which, int v, int world) {
    if (!data.own || (data.own[world / width_].*which).empty()) return R(1);
    return (data.own[world / width_].*which)[std::size_t(v) * width_ + world % width_];
  };
  for (int v = 0; v < model_.nv; ++v) {
    if (joined_[v].count == 0) continue;
    const Joint& joint = model_.joints[model_.dof_joint[v]];
    const bool limited = joint.force_limited && joint.nv() == 1;
    const double low = limited ? joint.force_range[0] : -kInfinity, high = limited ? joint.force_range[1] : kInfinity;
    const double kp = drives_.kp[v], kd = drives_.kd[v];
    const bool drive = joined_[v].servo && (kp > 0 || kd > 0);  // a damper at control 0 is a force as others
    for (int world = 0; world < packs_ * width_; ++world) {
      const std::size_t place = at(model_.nv, v, world);
      const R rows = row_force_[place];
      if (!drive) {
        const R force = fixed_[place] + std::clamp(servo_[place], R(joined_[v].low), R(joined_[v].high));
        tau_[place] += std::clamp(force + rows, R(low), R(high)) - rows;
        continue;
      }
      tau_[place] += fixed_[place];
      if (kp > 0)
        qpos_target_[at(model_.nq, joint.qpos, world)] = servo_[place] / (R(kp) * own(&WorldTable<R>::kp, v, world));
      qvel_target_[place] = kp == 0 ? servo_[place] / (R(kd) * own(&WorldTable<R>::kd, v, world)) : R(0);
    }
    if (!joined_[v].servo || drives_.force_limit.empty()) continue;
    // Lanes share the limits, so there the joint's range bounds only its servos.
    const double fixed = width_ == 1 ? double(fixed_[v] + row_force_[v]) : 0;
    drives_.force_floor[v] = drive ? std::clamp(joined_[v].low, low - fixed, high - fixed) : -kInfinity;
    drives_.force_limit[v] = drive ? std::clamp(joined_[v].high, low - fixed, high - fixed) : kInfinity;
  }
}

/// Evaluates everything that needs kinematics, tendons or general laws, one world at a time.
template <class R>
void Servos<R>::all_worlds(const BasicData<R>& data, const ServoStep& step, In<R> qpos, In<R> qvel) {
  const auto gather = [&](In<R> from, auto& to, int world) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = double(from[at(int(to.size()), int(i), world)]);
  };
  for (int world = 0; world < worlds_; ++world) {
    gather(qpos, one_.qpos, world), gather(qvel, one_.qvel, world);
    gather(data.ctrl, one_.ctrl, world), gather(data.act, one_.act, world);
    gather(data.mocap_pos, actuation_.workspace().mocap_pos, world);
    gather(data.mocap_quat, actuation_.workspace().mocap_quat, world);
    const WorldTable<R>* const own = data.own ? &data.own[world / width_] : nullptr;
    const auto mine = [&](const std::vector<double>& all, int n) { return of_lane(all, n, world % width_); };
    one_.carried_inertia =
        own && !own->carried_inertia.empty() ? mine(own->carried_inertia, model_.nv) : model_.carried_inertia;
    actuation_.scale_damping(own ? mine(own->damping_scale, model_.njoint()) : std::span<const double>());
    scale_actuators(data, world);
    if (step.actuators)
      actuation_.evaluate(one_.qpos, one_.qvel, one_.ctrl, one_.act, step.dt);
    else
      actuation_.evaluate_passive(one_.qpos, one_.qvel);
    const PassiveForces& passive = actuation_.passive();
    const auto add = [&](AlignedVector<R>& to, std::span<const double> force) {
      for (int v = 0; v < model_.nv; ++v) to[at(model_.nv, v, world)] += R(force[v]);
    };
    add(tau_, passive.force());
    std::vector<double>& arms = rows_.arms[world];  // storage for the rows' arms
    arms.assign(passive.tendon_arm().begin(), passive.tendon_arm().end());
    arms.insert(arms.end(), actuation_.moment().begin(), actuation_.moment().end());
    one_.drags.clear();
    if (step.implicit && !passive.immersions().empty()) {
      find_drags(data, world, step.dt);
      mend_lift(data, world, step.dt);
    }
    std::fill(one_.tendon_bias.begin(), one_.tendon_bias.end(), 0.0);
    if (is_.heavy_paths)
      tendon_bias(model_, actuation_.tendons(), actuation_.workspace(), one_.qpos, one_.qvel, one_.tendon_bias);
    if (step.actuators && step.contacts && !adhesion_.empty()) {
      one_.adhesion.assign(model_.nv, 0.0);
      adhesion_.add(actuation_.data().links(), actuation_.force(), one_.adhesion);
      add(tau_, one_.adhesion);
    }
    add_tendon_rows(world, step);
    for (int i = 0; step.actuators && is_.has_motors && step.start && i < actuation_.actuators().size(); ++i) {
      if (actuation_.actuators()[i].motor)
        motors_[world][i] = {actuation_.motor(i), actuation_.length()[i], actuation_.velocity()[i]};
    }
    if (step.damping) add_polynomial_rows(world, step);
    if (step.implicit) {
      if (step.actuators) add_servo_rows(world, step.dt);
      add_drag_rows(world);  // last, because their number varies between steps
      continue;
    }
    if (!step.damping) add(tau_, passive.polynomial_force());
    if (step.actuators) add(tau_, actuation_.actuator_force());
    for (int t = 0; t < actuation_.tendons().size(); ++t)
      add_along(tau_, actuation_.tendons()[t].dofs, tendon_arm(world, t), passive.tendon_force()[t], world);
  }
}

template <class R>
void Servos<R>::add_along(AlignedVector<R>& to, std::span<const int> dofs, std::span<const double> arm, double force,
                          int world) const {
  for (std::size_t k = 0; k < dofs.size(); ++k) to[at(model_.nv, dofs[k], world)] += R(arm[k] * force);
}

template <class R>
std::span<const double> Servos<R>::tendon_arm(int world, int t) const {
  const Tendon& tendon = actuation_.tendons()[t];
  return {rows_.arms[world].data() + tendon.first, tendon.dofs.size()};
}

template <class R>
void Servos<R>::add_tendon_rows(int world, const ServoStep& step) {
  const double dt = step.dt;
  const PassiveForces& passive = actuation_.passive();
  for (int t = 0; t < actuation_.tendons().size(); ++t) {
    const Tendon& tendon = actuation_.tendons()[t];
    const double l = passive.tendon_length()[t], speed = passive.tendon_velocity()[t];
    // The armature is a mass that moves with the length: -a d²l/dt² = -a (J q̈ + J̇ q̇).
    ForceRow row;
    row.force = -tendon.armature * one_.tendon_bias[t];
    if (step.implicit) {
      const double stiffness = tendon.stiffness_at(l);
      double rate2 = 0;
      for (std::size_t k = 0; k < tendon.dofs.size(); ++k) {
        const double arm = passive.tendon_arm()[std::size_t(tendon.first) + k];
        rate2 += stiffness * arm * arm / one_.carried_inertia[tendon.dofs[k]];
      }
      row = falling(row.force + passive.tendon_force()[t], stiffness, tendon.damping_at(speed), speed, dt,
                    spring_rule(rate2, dt));
    }
    row.slope += tendon.armature, row.dofs = tendon.dofs, row.arm = tendon_arm(world, t), row.slot = 4 * t;
    if (tendon.armature > 0 || (step.implicit && tendon.is_elastic())) rows_.of[world].push_back(row);
    if (step.row_limits) add_tendon_limits(world, step, t);
  }
}

/// Largest speed at which a length that lacks `lacking` returns. If the joints move as a force along it moves them, no
/// joint is faster than kTendonReturn or passes the pose in which the length is extremal (reachable_change).
/// @param lacking positive if the length must grow
template <class R>
double Servos<R>::tendon_return(int world, double dt, int t, double lacking) {
  const std::vector<int>& dofs = actuation_.tendons()[t].dofs;
  const std::span<const double> arm = tendon_arm(world, t);
  double rate = 0, fastest = kTendonReturn;
  for (std::size_t k = 0; k < dofs.size(); ++k) rate += arm[k] * arm[k] / one_.carried_inertia[dofs[k]];
  for (std::size_t k = 0; k < dofs.size(); ++k) {
    const double share = std::abs(arm[k]) / one_.carried_inertia[dofs[k]];
    if (share > 0) fastest = std::min(fastest, kTendonReturn * rate / share);
  }
  if (lacking == 0 || !(fastest > kTendonRest) || actuation_.tendons()[t].path.empty()) return fastest;
  one_.turn.assign(std::size_t(model_.nv), 0.0);
  for (std::size_t k = 0; k < dofs.size(); ++k) one_.turn[std::size_t(dofs[k])] = arm[k];
  const double back = dt * std::min(fastest, std::abs(lacking) / damping_time({}, dt));
  const double reached = reachable_change(
      std::copysign(back, lacking), kInfinity, one_.carried_inertia, one_.turn, [&](std::span<const double> turn) {
        if (!one_.ahead) one_.ahead.emplace(model_);
        const Data& here = actuation_.workspace();
        one_.ahead->mocap_pos = here.mocap_pos, one_.ahead->mocap_quat = here.mocap_quat;
        return tendon_change_ahead(model_, actuation_.tendons()[t], *one_.ahead, one_.qpos, turn);
      });
  return std::abs(reached) < back ? std::abs(reached) / dt : fastest;
}

/// R of a range's row. It bounds the tension b/(h R) of ranges that cannot all be met, where b is the speed at which a
/// row pulls back:
///  - what the tendon pulls gets kTendonPull from it at most;
///  - steps resolve the spring that a spatial tendon's tension is across it, ω² = T × tendon_bend().
/// Spatial tendons are at least as soft as joint ranges, so that their tension grows with the violation at first.
/// @param gap negative beyond the range  @param now the part of it that is recovered at once
template <class R>
double Servos<R>::tendon_compliance(int world, const ServoStep& step, int t, double gap, double now) {
  const Tendon& tendon = actuation_.tendons()[t];
  const double h = step.dt, b = spook_bilateral({}, std::min(now, 0.0), 0, h).target;
  double inverse_mass = 0;
  const std::span<const double> arm = tendon_arm(world, t);
  for (std::size_t k = 0; k < arm.size(); ++k) inverse_mass += arm[k] * arm[k] / one_.carried_inertia[tendon.dofs[k]];
  double least = 0, bounded = b / (h * kTendonPull) * inverse_mass;
  if (!tendon.path.empty()) least = 4 / (1 + 4 * kDampingSteps) * step.relative_compliance * inverse_mass;
  if (!tendon.path.empty() && gap < -kTendonNear) {
    const double bend = tendon_bend(model_, tendon, actuation_.data().links(), one_.carried_inertia);
    bounded = std::max(bounded, b * h / kTendonSwing * bend);
  }
  return std::max(least, std::min(bounded, kTendonSoftest * inverse_mass));
}

/// The range of a tendon: one row for each end, stabilised like joint ranges. Dry friction: one row.
template <class R>
void Servos<R>::add_tendon_limits(int world, const ServoStep& step, int t) {
  const double dt = step.dt;
  const Tendon& tendon = actuation_.tendons()[t];
  const double l = actuation_.passive().tendon_length()[t], speed = actuation_.passive().tendon_velocity()[t];
  const auto add = [&](int slot, double low, double high, double target, int range, int friction) {
    rows_.of[world].push_back(
        {0, 0, low, high, tendon.dofs, tendon_arm(world, t), true, target, speed, range, friction});
    rows_.of[world].back().slot = 4 * t + slot;
  };
  const double low = l - tendon.range[0] - tendon.margin, high = tendon.range[1] - tendon.margin - l;
  const double fastest = tendon.limited ? tendon_return(world, dt, t, std::max(-low, 0.0) - std::max(-high, 0.0)) : 0;
  const auto add_end = [&](int slot, double side, double gap) {
    const double now = recoverable({}, gap, dt, fastest);
    const double target = side * spook_unilateral({}, now, side * speed, dt).target;
    add(slot, side > 0 ? 0 : -kInfinity, side > 0 ? kInfinity : 0, target, t, -1);
    rows_.of[world].back().far = gap + dt * std::min(side * speed, 0.0) > kTendonReach;
    rows_.of[world].back().compliance = tendon_compliance(world, step, t, gap, now);
  };
  if (fastest > kTendonRest) add_end(1, 1, low), add_end(2, -1, high);
  if (tendon.friction_loss > 0) add(3, -tendon.friction_loss, tendon.friction_loss, 0, -1, t);
}

/// Adds the rows of polynomial springs and dampers of joints.
template <class R>
void Servos<R>::add_polynomial_rows(int world, const ServoStep& step) {
  static constexpr double kUnit = 1;
  int slot = actuator_slot() + 2 * actuation_.actuators().size();
  for (const PassiveForces::Polynomial& p : actuation_.passive().polynomials()) {
    for (int k = 0; k < p.count; ++k) {
      const double x = p.count == 1 ? one_.qpos[p.qpos] - p.reference : 0, speed = one_.qvel[p.dofs[k]];
      const double stiffness = step.implicit ? p.stiffness_at(x) : 0, damping = p.damping_at(speed);
      if (!step.implicit && damping == 0) {
        tau_[at(model_.nv, p.dofs[k], world)] += R(p.force(x, speed)), ++slot;
        continue;
      }
      ForceRow& row =
          rows_.of[world].emplace_back(falling(p.force(x, speed), stiffness, damping, speed, step.dt,
                                               spring_rule(stiffness / one_.carried_inertia[p.dofs[k]], step.dt)));
      row.dofs = {&p.dofs[k], 1}, row.arm = {&kUnit, 1}, row.slot = slot++;
    }
  }
}

/// Moves significant drag from tau_ to rows, f(v) - h K_s q̈. For linear drag K_s is its K. With K_s = K, a body under
/// quadratic drag alone would move exactly, but with a force that sustains the speed it would oscillate about the
/// equilibrium. Therefore K_s = K (1 + x/(1 + x)) with x = h K/m, which approaches the tangent: the method is of second
/// order and does not oscillate. The arms of these rows follow those of the other rows.
template <class R>
void Servos<R>::find_drags(const BasicData<R>& data, int world, double dt) {
  const LinkState<double>* links = actuation_.data().links();
  const auto part = [](const Force<double>& force, int i) { return i < 3 ? force.n[i] : force.f[i - 3]; };
  one_.arm.resize(std::size_t(model_.nv));
  const bool heavy = data.own && !data.own[world / width_].inertia.empty();
  const PassiveForces& passive = actuation_.passive();
  for (std::size_t k = 0; k < passive.immersions().size(); ++k) {
    const Immersion& body = passive.immersions()[k];
    const Mat3d& axes = body.pose.R;
    const Force<double> inverse =
        heavy ? passive.inverse_mass(k, inertia_of(model_, data, body.link, world)) : body.inverse_mass;
    for (int i = 0; i < 6; ++i) {
      const double inverse_mass = part(inverse, i), resisted = dt * part(body.fluid.resistance, i);
      if (!(resisted * inverse_mass >= kDragFelt)) continue;
      const double growing = dt * part(body.fluid.growing, i), x = growing > 0 ? growing * inverse_mass : 0;
      Force<double> axis{{0, 0, 0}, {0, 0, 0}};
      (i < 3 ? axis.n[i] : axis.f[i - 3]) = 1;
      const Force<double> wrench{axes * axis.n, axes * axis.f};
      find_arm(body, body.pose.p, wrench);
      ForceRow row;
      row.force = part(body.fluid.drag(body.velocity), i), row.slope = resisted + growing * (1 - 1 / (1 + x));
      row.dofs = body.dofs, row.on_link = body.link, row.slot = slots_.first_drag + 6 * int(k) + i;
      row.wrench = {wrench.n + cross(body.pose.p - links[body.link].o, wrench.f), wrench.f};
      for (const int v : body.dofs) rows_.arms[world].push_back(one_.arm[std::size_t(v)]);
      push_arm(body, -row.force, world);
      one_.drags.push_back(row);
    }
  }
}

/// Evaluates the lift of floating bodies at the mean velocity of the step.
template <class R>
void Servos<R>::mend_lift(const BasicData<R>& data, int world, double dt) {
  const LinkState<double>* links = actuation_.data().links();
  const std::span<const Immersion> all = actuation_.passive().immersions();
  for (std::size_t first = 0, next = 0; first < all.size(); first = next) {
    while (next < all.size() && all[next].link == all[first].link) ++next;
    const Immersion& one = all[first];
    if (!one.floats) continue;
    for (const Immersion& body : all.subspan(first, next - first)) {
      const Force<double> start = body.fluid.turning(body.velocity);
      find_arm(body, body.pose.p, {body.pose.R * start.n, body.pose.R * start.f});
      push_arm(body, -1, world);
    }
    const LinkState<double>& link = links[one.link];
    const RigidInertia<double> mine = inertia_of(model_, data, one.link, world);
    const RigidInertia<double> inertia{mine.mass, link.R * mine.h, rotate(link.R, mine.I)};
    const Vec3d w = one.pose.R * one.velocity.w, v = one.pose.R * one.velocity.v;
    const Motion<double> velocity{w, v - cross(w, one.pose.p - link.o)};
    find_arm(one, link.o, turning_over(all.subspan(first, next - first), link.o, inertia, velocity, dt));
    push_arm(one, 1, world);
  }
}

/// Writes the generalised force of a force at that point, over the DoFs of the body's link, to one_.arm.
template <class R>
void Servos<R>::find_arm(const Immersion& body, const Vec3d& at, const Force<double>& force) {
  for (const int v : body.dofs) one_.arm[std::size_t(v)] = 0;
  add_generalized_force(model_, actuation_.data().links(), body.link, at, force.f, force.n, 1, one_.arm.data());
}
template <class R>
void Servos<R>::push_arm(const Immersion& body, double factor, int world) {
  for (const int v : body.dofs) tau_[at(model_.nv, v, world)] += R(factor * one_.arm[std::size_t(v)]);
}

template <class R>
void Servos<R>::add_drag_rows(int world) {
  std::size_t end = rows_.arms[world].size();
  for (std::size_t i = one_.drags.size(); i-- > 0;) {
    ForceRow row = one_.drags[i];
    end -= row.dofs.size();
    row.arm = {rows_.arms[world].data() + end, row.dofs.size()};
    rows_.of[world].push_back(row);
  }
}

/// Bounds a row by the actuator's own range and its tendon's. A single actuator is bounded at the end of the step. Each
/// of several gives its share of the tendon's range at the start, as in MuJoCo, and decreases from there.
template <class R>
void Servos<R>::bound(const Actuator& a, double& force, ForceRow& row) const {
  if (a.shares_tendon) {
    const double share = actuation_.tendon_share(a);
    for (double* x : {&force, &row.force, &row.slope, &row.low, &row.high}) *x = share > 0 ? share * *x : 0;
  }
  if (a.force_limited) narrow(row, a.force_range[0], a.force_range[1]);
  if (a.shares_tendon || a.tendon < 0) return;
  const Tendon& tendon = actuation_.tendons()[a.tendon];
  if (tendon.force_limited) narrow(row, tendon.force_range[0], tendon.force_range[1]);
}

template <class R>
const std::array<double, 2>* Servos<R>::range_of_sum(int v) const {
  const Joint& joint = model_.joints[model_.dof_joint[v]];
  return joint.nv() == 1 && joint.force_limited ? &joint.force_range : nullptr;
}

/// Adds a servo's row. Its force on a joint whose range bounds a sum of several is evaluated at the start of the step.
/// @param whole whether the row is the actuator's whole force
template <class R>
void Servos<R>::add_servo_row(int world, double force, ForceRow row, bool whole) {
  if (whole && row.dofs.size() == 1 && joined_[row.dofs[0]].count == 1 && row.arm[0] != 0) {
    if (const auto* range = range_of_sum(row.dofs[0])) {
      const auto [low, high] = std::minmax({(*range)[0] / row.arm[0], (*range)[1] / row.arm[0]});
      narrow(row, low, high);
    }
  } else {
    for (std::size_t k = 0; k < row.dofs.size(); ++k) {
      if (range_of_sum(row.dofs[k]))
        row_force_[at(model_.nv, row.dofs[k], world)] += R(row.arm[k] * std::clamp(force, row.low, row.high));
    }
  }
  rows_.of[world].push_back(row);
}

/// Adds rows for a motor's torque and its bristle's friction, each at the end of the step; cogging is that of the
/// start. On a joint with a range both are one row, unless the torque is at its own bound.
template <class R>
void Servos<R>::add_motor_rows(int world, double dt, int actuator, std::span<const double> arm) {
  const Actuator& a = actuation_.actuators()[actuator];
  const MotorStep& m = actuation_.motor(actuator);
  const double length = actuation_.length()[actuator], speed = actuation_.velocity()[actuator];
  double force = m.offset - m.stiffness * length - m.damping * speed;
  ForceRow row = falling(force, m.stiffness, m.damping, speed, dt);
  row.low = m.low, row.high = m.high, row.dofs = a.dofs, row.arm = arm, row.slot = actuator_slot() + 2 * actuator;
  bound(a, force, row);
  const bool implicit = falls(m.stiffness, m.damping);
  if (!implicit) row.force = row.low = row.high = force = std::clamp(force, row.low, row.high), row.slope = 0;
  const bool within = row.low <= row.force && row.force <= row.high;
  for (double* x : {&force, &row.force, &row.low, &row.high}) *x += m.cogging;
  const bool rubs = m.friction_slope != 0 || m.end_friction != 0;
  ForceRow friction{-m.end_friction - m.friction_slope * speed,
                    dt * m.friction_slope,
                    -m.most_friction,
                    m.most_friction,
                    a.dofs,
                    arm};
  friction.slot = row.slot + 1;
  const bool one = rubs && within && a.dofs.size() == 1 && joined_[a.dofs[0]].count == 1 && range_of_sum(a.dofs[0]);
  if (one) row.force += friction.force, row.slope += friction.slope, row.low += friction.low, row.high += friction.high;
  if (implicit || one)
    add_servo_row(world, force, row, one || !rubs);
  else
    add_along(fixed_, a.dofs, arm, force, world);
  if (rubs && !one) add_servo_row(world, friction.force, friction, false);
}

template <class R>
MotorStep Servos<R>::motor_here(const BasicData<R>& data, const Actuator& a, double dt, int world, double length,
                                double velocity) const {
  const auto u = a.clamped_controls([&](int k) { return data.ctrl[at(model_.nu, a.ctrl + k, world)]; });
  std::array<double, 5> act{};
  for (int k = 0; k < a.motor->activations(); ++k) act[k] = double(data.act[at(model_.na, a.act + k, world)]);
  return motor_step(*a.motor, u.data(), act.data(), length, velocity, a.period, dt);
}

/// Current and bristle advance with the velocity that the torque used: that of the step's end if it was implicit.
template <class R>
void Servos<R>::advance_motor(BasicData<R>& data, int actuator, double dt, int world) {
  const Actuator& a = actuation_.actuators()[actuator];
  MotorRun run = motors_[world][actuator];
  if (is_.implicit && !a.plain) {
    const double* const moment = rows_.arms[world].data() + actuation_.passive().tendon_arm().size() + a.first;
    run.velocity = 0;
    for (std::size_t k = 0; k < a.dofs.size(); ++k)
      run.velocity += moment[k] * double(data.qvel[at(model_.nv, a.dofs[k], world)]);
    run.length += dt * run.velocity;
  }
  std::array<double, 5> act{}, next{};
  const int count = a.motor->activations();
  for (int k = 0; k < count; ++k) act[k] = double(data.act[at(model_.na, a.act + k, world)]);
  motor_advance(*a.motor, run.step, act.data(), run.length, run.velocity, dt, next.data());
  for (int k = 0; k < count; ++k) data.act[at(model_.na, a.act + k, world)] = R(next[k]);
}

template <class R>
void Servos<R>::add_servo_rows(int world, double dt) {
  const ActuatorSet& set = actuation_.actuators();
  const double* const moments = rows_.arms[world].data() + actuation_.passive().tendon_arm().size();
  for (int i = 0; i < set.size(); ++i) {
    const Actuator& a = set[i];
    if (!a.active || a.plain) continue;
    const std::span<const double> arm(moments + a.first, a.dofs.size());
    if (a.motor) {
      add_motor_rows(world, dt, i, arm);
      continue;
    }
    double u = a.clamped_control(one_.ctrl[a.ctrl]);
    if (a.act >= 0) u = a.early ? a.next_activation(one_.act[a.act], u, dt) : one_.act[a.act];
    const double kp = a.stiffness(u), kd = a.damping(u);
    if (!falls(kp, kd)) {
      add_along(fixed_, a.dofs, arm, actuation_.force()[i], world);
      continue;
    }
    const double speed = actuation_.velocity()[i];
    double force = a.force(u, actuation_.length()[i], speed);
    ForceRow row = falling(force, kp, kd, speed, dt);
    row.dofs = a.dofs, row.arm = arm, row.slot = actuator_slot() + 2 * i;
    bound(a, force, row);
    add_servo_row(world, force, row);
  }
  for (int v = 0; v < model_.nv; ++v) fixed_[at(model_.nv, v, world)] += R(actuation_.compensation_by_actuator(v));
}

template class Servos<double>;
template class Servos<float>;

}  // namespace tarsus
