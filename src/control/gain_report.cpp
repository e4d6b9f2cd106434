#include "tarsus/control/gain_report.hpp"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <complex>
#include <cstdio>

#include "tarsus/base/number_text.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

namespace {

using Complex = std::complex<double>;

/// Eigenvalues of (q, v) -> (q + h v⁺, v⁺), v⁺ = v + h a, (m + h kd + σ h² kp) a = -kp (q + h v) - kd v.
std::array<Complex, 2> step_eigenvalues(double m, double kp, double kd, bool stiff, double h) {
  const double mass = m + h * kd + (stiff ? h * h * kp : 0);
  const double vq = -h * kp / mass, vv = 1 - h * (h * kp + kd) / mass;
  const double trace = 1 + h * vq + vv, det = (1 + h * vq) * vv - h * vv * vq;
  const Complex root = std::sqrt(Complex(trace * trace / 4 - det));
  return {trace / 2 + root, trace / 2 - root};
}

/// Phase of q̄ -> q at angular frequency w: of the step minus that of the oscillator itself, in (-π, π].
double phase_difference(double m, double kp, double kd, bool stiff, double h, double w) {
  const Complex z = std::exp(Complex(0, w * h)), s(0, w);
  const double mass = m + h * kd + (stiff ? h * h * kp : 0);
  const Complex V = (1.0 - 1.0 / z) / h;  // v of q = 1
  const Complex discrete = kp * z / (mass * V * (z - 1.0) / h + kp * (1.0 + h * V) + kd * V);
  const Complex continuous = kp / (m * s * s + kd * s + kp);
  return std::arg(discrete / continuous);
}

std::string text(const char* format, double a, double b = 0) {
  char buffer[200];
  std::snprintf(buffer, sizeof buffer, format, a, b);
  return buffer;
}

void warn(GainReport& r, bool stiff, double h) {
  if (r.kp == 0 && r.kd == 0) return;
  if (r.growth > 1 + 1e-9) {
    r.warnings.push_back(text("unstable: grows %.3g times a step; stable below %.4g s, or with the stiff law", r.growth,
                              r.largest_stable_step));
    return;
  }
  const double resolved = r.frequency * h;  // cycles a step
  if (r.kp > 0 && resolved > 0.5) {
    r.warnings.push_back(text(
        "%.3g Hz was asked for, a step of this size shows %.3g Hz at most: the step sets the response, not the gains",
        r.frequency, 0.5 / h));
  } else if (r.kp > 0 && r.step_frequency < 0.8 * r.frequency) {
    r.warnings.push_back(
        text("answers at %.3g Hz, not at the %.3g Hz that was asked for", r.step_frequency, r.frequency));
  }
  if (r.kp > 0 && r.numerical_damping > std::max(0.1, 0.2 * r.damping_ratio)) {
    r.warnings.push_back(
        text("the step adds damping: ratio %.3g instead of %.3g", r.step_damping_ratio, r.damping_ratio));
  }
  if (r.kp > 0 && resolved <= 0.5 && std::abs(r.phase_lag) > 20) {
    r.warnings.push_back(text(r.phase_lag > 0 ? "the step adds %.0f degrees of lag at %.3g Hz"
                                              : "the step takes %.0f degrees off the lag at %.3g Hz",
                              std::abs(r.phase_lag), r.frequency));
  }
  if (stiff) return;
  if (r.largest_stable_step < 1.2 * h)
    r.warnings.push_back(text("close to instability: stable below %.4g s", r.largest_stable_step));
}

}  // namespace

GainReport analyse_gains(double m, double kp, double kd, bool stiff, double h) {
  GainReport r;
  r.kp = kp, r.kd = kd, r.inertia = r.inertia_largest = r.inertia_limp = m;
  r.frequency = std::sqrt(kp / m) / (2 * kPi);
  r.damping_ratio = kp > 0 ? kd / (2 * std::sqrt(kp * m)) : kd > 0 ? kInfinity : 0;
  const auto lambda = step_eigenvalues(m, kp, kd, stiff, h);
  r.growth = std::max(std::abs(lambda[0]), std::abs(lambda[1]));
  // 3 h² kp = 4 m + 2 h kd
  r.largest_stable_step = stiff || kp == 0 ? kInfinity : (kd + std::sqrt(kd * kd + 12 * kp * m)) / (3 * kp);
  if (kp > 0) {
    // s² + 2 ζ ω s + ω² with the roots ln λ / h.
    const Complex s0 = std::log(lambda[0]) / h, s1 = std::log(lambda[1]) / h;
    const double omega = std::sqrt(std::abs(s0 * s1));
    r.step_frequency = omega / (2 * kPi);
    r.step_damping_ratio = omega > 0 ? -(s0 + s1).real() / (2 * omega) : 0;
    r.numerical_damping = r.step_damping_ratio - r.damping_ratio;
    const double w = std::min(std::sqrt(kp / m), kPi / h);
    r.phase_lag = -phase_difference(m, kp, kd, stiff, h, w) * 180 / kPi;
  }
  warn(r, stiff, h);
  return r;
}

std::vector<GainReport> report_gains(const Model& model, const Drives& drives, double dt,
                                     std::span<const double> qpos) {
  drives.check(model);
  check_size("qpos", qpos.size(), model.nq);
  if (!(dt > 0 && dt <= 1e6)) throw ValueError("dt", number_text(dt), "a positive number of seconds, at most 1e6");
  using Matrix = Eigen::MatrixXd;
  const int nv = model.nv;
  Matrix M(nv, nv);
  Data data(model);
  crba<double>(model, data, qpos, {M.data(), std::size_t(M.size())});
  const Matrix inverse = M.llt().solve(Matrix::Identity(nv, nv));
  std::vector<GainReport> reports;
  // Smallest and largest eigenvalue of the block of 1 or 3 degrees of freedom from `first` on.
  const auto range_of = [](const Matrix& A, int first, int n) -> std::pair<double, double> {
    if (n == 1) return {A(first, first), A(first, first)};
    const Eigen::Matrix3d block = A.block<3, 3>(first, first);
    const Eigen::Vector3d values =
        Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d>(block, Eigen::EigenvaluesOnly).eigenvalues();
    return {values[0], values[2]};
  };
  const auto add = [&](int joint, int first, int n, const char* part) {
    const auto [smallest, largest] = range_of(M, first, n);
    GainReport r = analyse_gains(smallest, drives.kp[first], drives.kd[first], drives.stiff, dt);
    r.joint = joint, r.part = part;
    r.inertia_largest = largest, r.inertia_limp = 1 / range_of(inverse, first, n).second;
    reports.push_back(r);
  };
  for (int i = 0; i < model.njoint(); ++i) {
    const Joint& joint = model.joints[i];
    if (moves_freely(joint.type)) {
      add(i, joint.qvel, 3, "translation"), add(i, joint.qvel + 3, 3, "rotation");
    } else {
      add(i, joint.qvel, joint.nv(), "");
    }
  }
  return reports;
}

}  // namespace tarsus
