// What a drive's gains mean at a step size: the oscillator that was asked for, and the one that the step delivers.
//
// Each joint is looked at alone, q̄ -> q of  m q̈ = -kp (q - q̄) - kd q̇,  with the inertia m that it feels while all
// others are held, M_ii: under stable PD everywhere the neighbours' drives do hold them. The other extreme, all others
// limp, is 1 / (M⁻¹)_ii, always less; it is reported beside. The step's own oscillator has the eigenvalues λ of one
// step of stable PD, s = ln λ / h.
#pragma once

#include <string>
#include <vector>

#include "tarsus/control/drive.hpp"

namespace tarsus {

/// One driven quantity of a joint: a hinge's or slide's, a ball's or a free joint's rotation, a free joint's
/// translation.
struct GainReport {
  int joint = 0;
  std::string part;  ///< "" or, for a free joint, "translation", "rotation"
  double kp = 0, kd = 0;
  double inertia = 0;  ///< m, armature included; rotations and translations: the axis that has least [kg m² | kg]
  double inertia_largest = 0;     ///< the axis that has most
  double inertia_limp = 0;        ///< all other joints limp: the axis that has least
  double frequency = 0;           ///< natural frequency asked for, sqrt(kp / m) / 2π [Hz]
  double damping_ratio = 0;       ///< asked for, kd / (2 sqrt(kp m)); infinite for kp = 0 < kd
  double step_frequency = 0;      ///< |s| / 2π of the slower eigenvalue [Hz]
  double step_damping_ratio = 0;  ///< -Re s / |s| of it where the eigenvalues are a pair, else as for two real poles
  double numerical_damping = 0;   ///< step_damping_ratio - damping_ratio
  double phase_lag =
      0;  ///< of q behind a target at that frequency, beyond the asked oscillator's own; at most half the step's
          ///< sampling frequency [degrees]
  double growth = 0;               ///< largest |λ|: above 1 the drive blows up
  double largest_stable_step = 0;  ///< [s] infinite unless plain
  std::vector<std::string> warnings;
};

/// @param qpos configuration at which inertias are taken   @param dt step [s]
/// @throws ShapeError, ValueError
std::vector<GainReport> report_gains(const Model& model, const Drives& drives, double dt, std::span<const double> qpos);

/// The scalar analysis alone, of mass m.
GainReport analyse_gains(double m, double kp, double kd, bool plain, double dt);

}  // namespace tarsus
