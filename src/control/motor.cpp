#include "tarsus/control/motor.hpp"

#include <algorithm>
#include <cmath>

#include "tarsus/math/elementary.hpp"
#include "tarsus/model/mujoco_minval.hpp"

namespace tarsus {

namespace {

/// Indices of the activations.
struct Slots {
  explicit Slots(const MotorSpec& m) {
    const auto next = [this](bool there) { return there ? count++ : -1; };
    slew = next(m.slew_max > 0), integral = next(m.ki > 0), heat = next(m.heat_resistance > 0);
    bristle = next(m.bristle_stiffness > 0), current = next(m.electric_time > 0);
  }
  int count = 0, slew, integral, heat, bristle, current;
};

/// Fraction of its change towards the steady state that the current completes in a step.
double share(const MotorSpec& m, double dt) {
  return m.electric_time > 0 ? 1 - elementary::exp(-dt / m.electric_time) : 1;
}

double resistance(const MotorSpec& m, double rise) {
  return std::max(kMujocoMinval, m.resistance * (1 + m.resistance_slope * (rise + m.ambient - m.resistance_at)));
}

/// Bristle deflection and force over a step.
void slide(const MotorSpec& m, double z, double speed, double dt, MotorStep& out, double& rate) {
  const double ratio = speed / std::max(kMujocoMinval, m.slide_speed);
  const double g = m.sliding_friction + (m.static_friction - m.sliding_friction) * elementary::exp(-ratio * ratio);
  const double a = -m.bristle_stiffness * std::abs(speed) / std::max(kMujocoMinval, g);
  rate = a * z + speed;
  out.friction = m.bristle_stiffness * z + m.bristle_damping * rate;
  out.decay = elementary::exp(a * dt);
  out.gain = std::abs(a) > kMujocoMinval ? (out.decay - 1) / a : dt;
  // σ₀ z + σ₁ (a z + v) at the end of the step, with z from the |v| of its start.
  const double stiffness = m.bristle_stiffness + m.bristle_damping * a;
  out.end_friction = stiffness * out.decay * z;
  out.friction_slope = stiffness * out.gain + m.bristle_damping;
  out.most_friction = std::max({m.sliding_friction, m.static_friction, std::abs(m.bristle_stiffness * z)});
}

}  // namespace

bool affine_torque(const MotorSpec& m) {
  return m.voltage_max == 0 && m.electric_time <= 0 && m.heat_resistance <= 0 && m.bristle_stiffness <= 0 &&
         m.cogging[0] == 0;
}

double motor_stiffness(const MotorSpec& m) { return m.controlled() ? m.kp : 0; }

double motor_damping(const MotorSpec& m) { return m.controlled() ? m.kd : m.constant * m.constant / m.resistance; }

double MotorStep::torque(double length, double velocity) const {
  return std::clamp(offset - stiffness * length - damping * velocity, low, high);
}

MotorStep motor_step(const MotorSpec& m, const double* ctrl, const double* act, double length, double velocity,
                     double period, double dt) {
  const Slots at(m);
  MotorStep out;
  out.low = -kInfinity, out.high = kInfinity;
  std::array<double, 4> u{};
  std::copy_n(ctrl, m.controls(), u.begin());
  if (at.slew >= 0) {
    const double before = act[at.slew], most = m.slew_max * dt;
    u[0] = std::clamp(u[0] - whole_periods(u[0] - before, period), before - most, before + most);
    out.rates[at.slew] = (u[0] - before) / dt;
  }
  int next = 0;
  const double position = m.position ? u[next++] - whole_periods(u[0] - length, period) : 0,
               speed = m.velocity ? u[next++] : 0, torque = m.feedforward ? u[next++] : 0,
               voltage = m.voltage ? u[next] : 0;
  double integral = 0;
  if (at.integral >= 0) {
    integral = act[at.integral];
    double& rate = out.rates[at.integral] = position - length;
    if (m.integral_max > 0 && integral >= m.integral_max) rate = std::min(rate, 0.0);
    if (m.integral_max > 0 && integral <= -m.integral_max) rate = std::max(rate, 0.0);
  }
  const double kp = motor_stiffness(m), command = kp * position + m.ki * integral + m.kd * speed + torque;
  if (!m.electric) {
    out.offset = command, out.stiffness = kp, out.damping = m.kd;
    return out;
  }

  const double R = at.heat >= 0 ? resistance(m, act[at.heat]) : m.resistance, K = m.constant, part = share(m, dt);
  // (V - K v) / R = a - b l - c v
  double a = voltage / R, b = 0, c = K / R;
  if (m.controlled()) {
    const double by_torque = m.resistance / K, V = by_torque * (command - kp * length - m.kd * velocity) + K * velocity;
    const bool within = m.voltage_max <= 0 || std::abs(V) <= m.voltage_max;
    if (within) {
      a += by_torque * command / R, b = by_torque * kp / R, c = by_torque * m.kd / R;
      if (m.voltage_max > 0) {  // also at the end of the step, as far as the initial speed predicts
        const double push = (voltage - K * velocity) / R, most = m.voltage_max / R;
        out.low = push - most, out.high = push + most;
      }
    } else {
      a += std::clamp(V, -m.voltage_max, m.voltage_max) / R;
    }
  }
  const double settled = a - b * length - c * velocity;
  double current = settled;
  if (at.current >= 0) {
    const double before = act[at.current];
    current = before;
    double& rate = out.rates[at.current] = (settled - before) / m.electric_time;
    const double most = m.rate_max > 0 ? m.rate_max * m.electric_time * part : kInfinity, rest = (1 - part) * before;
    if (m.rate_max > 0) rate = std::clamp(rate, -m.rate_max, m.rate_max);
    a = rest + part * a, b *= part, c *= part;
    out.low = std::max(rest + part * out.low, before - most);
    out.high = std::min(rest + part * out.high, before + most);
    out.high = std::max(out.high, out.low);
  }
  out.offset = K * a, out.stiffness = K * b, out.damping = K * c, out.low *= K, out.high *= K;
  if (at.heat >= 0) out.rates[at.heat] = (R * current * current - act[at.heat] / m.heat_resistance) / m.heat_capacity;
  if (m.cogging[0] != 0) out.cogging = m.cogging[0] * elementary::sin(m.cogging[1] * length + m.cogging[2]);
  if (at.bristle >= 0) slide(m, act[at.bristle], velocity, dt, out, out.rates[at.bristle]);
  return out;
}

void motor_advance(const MotorSpec& m, const MotorStep& step, const double* act, double length, double velocity,
                   double dt, double* out) {
  const Slots at(m);
  for (int k = 0; k < at.count; ++k) out[k] = act[k] + dt * step.rates[k];
  if (at.integral >= 0 && m.integral_max > 0 && m.electric)  // a pid's integral stops one step later, as in MuJoCo
    out[at.integral] = std::clamp(out[at.integral], -m.integral_max, m.integral_max);
  if (at.bristle >= 0) out[at.bristle] = step.decay * act[at.bristle] + step.gain * velocity;
  if (at.current >= 0) out[at.current] = step.torque(length, velocity) / m.constant;
}

}  // namespace tarsus
