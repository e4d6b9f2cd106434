// Analysis of drive gains at a step size: the oscillator that the gains specify, and the one that the step realises.
//
// Each joint is analysed alone: q follows q̄ by m q̈ = -kp (q - q̄) - kd q̇. The inertia m is M_ii, the inertia with
// all other joints held; under stable PD everywhere, the neighbours' drives do hold them. The opposite extreme, all
// other joints limp, is 1 / (M⁻¹)_ii, which is never larger; it is reported as well. The realised oscillator has the
// eigenvalues λ of one step of stable PD, s = ln λ / h.
#pragma once

#include <string>
#include <vector>

#include "tarsus/control/drive.hpp"

namespace tarsus {

/// One driven quantity: a hinge, a slide, the rotation of a ball or free joint, or the translation of a free joint.
/// Without inertia there is no oscillator: the numbers from `frequency` on are NaN.
struct GainReport {
  int joint = 0;
  std::string part;  ///< "" or, for a free joint, "translation", "rotation"
  double kp = 0, kd = 0;
  double inertia = 0;  ///< m, armature included; rotations and translations: the axis with the least [kg m² | kg]
  double inertia_largest = 0;     ///< the axis with the most
  double inertia_limp = 0;        ///< with all other joints limp: the axis with the least
  double frequency = 0;           ///< specified natural frequency, sqrt(kp / m) / 2π [Hz]
  double damping_ratio = 0;       ///< specified, kd / (2 sqrt(kp m)); infinite for kp = 0 < kd
  double step_frequency = 0;      ///< |s| / 2π of the slower eigenvalue [Hz]
  double step_damping_ratio = 0;  ///< -Re s / |s| for a pair of eigenvalues, else as for two real poles
  double numerical_damping = 0;   ///< step_damping_ratio - damping_ratio
  /// Lag of q behind a target that oscillates at the specified frequency (at most half the sampling frequency of the
  /// step), beyond the lag of the specified oscillator [degrees].
  double phase_lag = 0;
  double growth = 0;               ///< largest |λ|: above 1 the drive diverges
  double largest_stable_step = 0;  ///< [s] infinite unless plain
  std::vector<std::string> warnings;
};

/// @param qpos configuration at which the inertias are evaluated   @param dt step [s]
/// @throws ShapeError, ValueError
std::vector<GainReport> report_gains(const Model& model, const Drives& drives, double dt, std::span<const double> qpos);

/// The scalar analysis for a given mass m.
GainReport analyse_gains(double m, double kp, double kd, bool plain, double dt);

}  // namespace tarsus
