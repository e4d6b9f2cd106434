// A motor with its controller over one step: MuJoCo's <dcmotor> and <pid>, evaluated in closed form from the step's
// start.
//
//   controller   τ = kp (u_pos - l) + ki x + kd (u_vel - v) + u_ff,   x' = u_pos - l,   |x| <= integral_max
//   winding      V = R₀/K τ + K v within voltage_max, + u_voltage;    V = u_voltage without a controller
//                te i' = (V - K v)/R - i,  |i'| <= rate_max; i = (V - K v)/R where te = 0
//   heat         C T' = R i² - T/R_heat,   R = R₀ (1 + α (T + T_around - T₀))
//   torque       K i within the force range + cogging: A sin(N l + φ) - LuGre: σ₀ z + σ₁ z'
//   LuGre        z' = v - σ₀ |v| z / g(v),   g = F_C + (F_S - F_C) exp(-(v/v_S)²)     [Olsson et al. 1998]
//
// The torque of a pid is that of its controller. Current and bristle are integrated exactly over the step, with V and
// |v| frozen. The first control changes by at most slew_max. Order of the activations, where present: slew, integral,
// temperature, bristle, current.
#pragma once

#include <array>
#include <cmath>
#include <span>

#include "tarsus/model/spec.hpp"

namespace tarsus {

/// Whether the torque is affine in l and v, so that -∂τ/∂l and -∂τ/∂v are constants of the model's file.
bool affine_torque(const MotorSpec& motor);
double motor_stiffness(const MotorSpec& motor);
double motor_damping(const MotorSpec& motor);

/// The whole periods in an error; subtracting them leaves the shortest error.  @param period 0: none
inline double whole_periods(double error, double period) {
  return period > 0 ? period * std::round(error / period) : 0;
}

struct MotorStep {
  /// Torque at the end of the step: offset - stiffness l - damping v. At the start's l and v it equals MuJoCo's torque.
  double offset = 0, stiffness = 0, damping = 0;
  double low = 0, high = 0;          ///< bounds in addition to the force range
  double cogging = 0, friction = 0;  ///< at the start of the step; friction = σ₀ z + σ₁ z'
  /// Friction at the end of the step: end_friction + friction_slope v, within ±most_friction.
  double end_friction = 0, friction_slope = 0, most_friction = 0;
  std::array<double, 5> rates{};  ///< of the activations
  double decay = 1, gain = 0;     ///< z at the end of the step: decay z + gain v

  double torque(double length, double velocity) const;
};

/// @param ctrl [controls()] clamped to their ranges  @param act [activations()]  @param period of the length, 0: none
/// @param dt [s] > 0
MotorStep motor_step(const MotorSpec& motor, const double* ctrl, const double* act, double length, double velocity,
                     double period, double dt);
/// Activations after the step.  @param length, velocity at which current and bristle are evaluated: at the start of the
/// step as in MuJoCo, or at its end
void motor_advance(const MotorSpec& motor, const MotorStep& step, const double* act, double length, double velocity,
                   double dt, double* out);

}  // namespace tarsus
