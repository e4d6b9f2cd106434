// Force and activation of one actuator. Muscles have MuJoCo's piecewise quadratic force-length-velocity curves.
#include <algorithm>
#include <cmath>

#include "tarsus/control/actuator.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/model/mujoco_minval.hpp"

namespace tarsus {

namespace {

double sqr(double x) { return x * x; }
double at_least(double x) { return std::max(kMujocoMinval, x); }

struct MuscleLaw {
  double low, high, force, scale, lmin, lmax, vmax, fpmax, fvmax;
};

MuscleLaw unpack(const std::array<double, 9>& p, double unit_acceleration) {
  MuscleLaw m{p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8]};
  if (m.force < 0) m.force = m.scale / at_least(unit_acceleration);
  return m;
}

/// Optimal length of the fibre.
double optimal_length(const MuscleLaw& m, const std::array<double, 2>& range) {
  return (range[1] - range[0]) / at_least(m.high - m.low);
}

double normalised_length(const MuscleLaw& m, const std::array<double, 2>& range, double length) {
  return m.low + (length - range[0]) / at_least(optimal_length(m, range));
}

/// Bump function: 0 at lmin and lmax, 1 at 1.
double length_curve(double L, double lmin, double lmax) {
  if (L < lmin || L > lmax) return 0;
  const double a = (lmin + 1) / 2, b = (1 + lmax) / 2;
  if (L <= a) return 0.5 * sqr((L - lmin) / at_least(a - lmin));
  if (L <= 1) return 1 - 0.5 * sqr((1 - L) / at_least(1 - a));
  if (L <= b) return 1 - 0.5 * sqr((L - 1) / at_least(b - 1));
  return 0.5 * sqr((lmax - L) / at_least(lmax - b));
}

double velocity_curve(double V, double fvmax) {
  const double y = fvmax - 1;
  if (V <= -1) return 0;
  if (V <= 0) return sqr(V + 1);
  if (V <= y) return fvmax - sqr(y - V) / at_least(y);
  return fvmax;
}

double active_force(const MuscleLaw& m, const std::array<double, 2>& range, double length, double velocity) {
  const double L = normalised_length(m, range, length), V = velocity / at_least(optimal_length(m, range) * m.vmax);
  return -m.force * length_curve(L, m.lmin, m.lmax) * velocity_curve(V, m.fvmax);
}

double passive_force(const MuscleLaw& m, const std::array<double, 2>& range, double length) {
  const double L = normalised_length(m, range, length), b = (1 + m.lmax) / 2;
  if (L <= 1) return 0;
  if (L <= b) return -m.force * m.fpmax * 0.5 * sqr((L - 1) / at_least(b - 1));
  return -m.force * m.fpmax * (0.5 + (L - b) / at_least(b - 1));
}

/// Smooth step from 0 to 1 over 0 <= x <= 1, twice differentiable.
double smooth_step(double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  return x * x * x * (3 * x * (2 * x - 5) + 10);
}

double affine_law(const std::array<double, 3>& c, double length, double velocity) {
  return c[0] + c[1] * length + c[2] * velocity;
}

}  // namespace

double Actuator::clamped_control(double ctrl) const {
  return control_limited ? std::clamp(ctrl, control_range[0], control_range[1]) : ctrl;
}

double Actuator::activation_rate(double ctrl, double a) const {
  switch (dynamics) {
    case Activation::none: return 0;
    case Activation::integrator: return ctrl;
    case Activation::filter:
    case Activation::filterexact: return (ctrl - a - whole_periods(ctrl - a, period)) / at_least(time[0]);
    case Activation::muscle: break;
  }
  const double inside = std::clamp(a, 0.0, 1.0), slower = 0.5 + 1.5 * inside;
  const double rise = time[0] * slower, fall = time[1] / slower, excess = std::clamp(ctrl, 0.0, 1.0) - a;
  const double part = time[2] < kMujocoMinval ? (excess > 0 ? 1 : 0) : smooth_step(excess / time[2] + 0.5);
  return excess / at_least(fall + (rise - fall) * part);
}

double Actuator::next_activation(double a, double ctrl, double dt) const {
  const double tau = at_least(time[0]), rate = activation_rate(ctrl, a), excess = std::clamp(ctrl, 0.0, 1.0) - a;
  switch (dynamics) {
    case Activation::filterexact: a += rate * tau * (1 - elementary::exp(-dt / tau)); break;
    case Activation::filter: a += rate * std::min(dt, tau); break;
    case Activation::muscle: a += std::abs(rate * dt) < std::abs(excess) ? rate * dt : excess; break;
    default: a += rate * dt;
  }
  return activation_limited ? std::clamp(a, activation_range[0], activation_range[1]) : a;
}

double Actuator::force(double input, double length, double velocity) const {
  double g = 0, b = 0;
  if (gain_law == ActuatorLaw::fixed) g = gain[0];
  if (gain_law == ActuatorLaw::affine) g = affine_law(gain, length, velocity);
  if (gain_law == ActuatorLaw::muscle)
    g = active_force(unpack(muscle_gain, unit_acceleration), length_range, length, velocity);
  if (bias_law == ActuatorLaw::affine) b = affine_law(bias, length + whole_periods(input - length, period), velocity);
  if (bias_law == ActuatorLaw::muscle) b = passive_force(unpack(muscle_bias, unit_acceleration), length_range, length);
  return g * input + b;
}

double Actuator::clamped_force(double f) const {
  return force_limited ? std::clamp(f, force_range[0], force_range[1]) : f;
}

double Actuator::stiffness(double input) const {
  return motor ? motor_stiffness(*motor) : -(gain[1] * input + bias[1]);
}

double Actuator::damping(double input) const { return motor ? motor_damping(*motor) : -(gain[2] * input + bias[2]); }

}  // namespace tarsus
