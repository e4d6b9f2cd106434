#include "tarsus/control/gain_report.hpp"

#include <Eigen/Eigenvalues>
#include <cmath>
#include <complex>
#include <cstdio>

#include "tarsus/base/number_text.hpp"
#include "tarsus/dynamics/delassus.hpp"
#include "tarsus/dynamics/stiffened.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus {

namespace {

using Complex = std::complex<double>;

/// Eigenvalues, less 1, of (q, v) -> (q + h v⁺, v⁺), v⁺ = v + h a, (m + h kd + σ h² kp) a = -kp (q + h v) - kd v.
std::array<Complex, 2> step_eigenvalues(double m, double kp, double kd, bool plain, double h) {
  const double mass = m + h * kd + (plain ? 0 : h * h * kp);
  const double det = h * h * kp / mass, trace = -2 * det - h * kd / mass;
  const Complex root = std::sqrt(Complex(trace * trace / 4 - det));
  return {trace / 2 + root, trace / 2 - root};
}

/// ln(1 + z)
Complex log1p(Complex z) {
  return {std::log1p(z.real() * (2 + z.real()) + z.imag() * z.imag()) / 2, std::arg(1.0 + z)};
}

/// Phase of q̄ -> q at angular frequency w: the step's minus the oscillator's own, in (-π, π].
double phase_difference(double m, double kp, double kd, bool plain, double h, double w) {
  const double mass = m + h * kd + (plain ? 0 : h * h * kp);
  const Complex z = std::exp(Complex(0, w * h)), half = std::exp(Complex(0, w * h / 2));
  const Complex d(0, 2 * std::sin(w * h / 2) / h), V = d / half;  // v for q = 1
  const Complex discrete = z / (mass * d * d + kp * (1.0 + h * V) + kd * V);
  // At its natural frequency the oscillator lags by a quarter, in the limit also without damping.
  const double own = w * w * m >= kp * (1 - 1e-12) ? -kPi / 2 : std::arg(1.0 / Complex(kp - m * w * w, kd * w));
  return std::arg(discrete * std::polar(1.0, -own));
}

std::string text(const char* format, double a, double b = 0) {
  char buffer[200];
  std::snprintf(buffer, sizeof buffer, format, a, b);
  return buffer;
}

void warn(GainReport& r, bool plain, double h) {
  if (r.kp == 0 && r.kd == 0) return;
  if (r.growth > 1 + 1e-9) {
    r.warnings.push_back(
        text("unstable: grows by a factor %.3g per step; stable for steps below %.4g s, or with the law at the end of "
             "the step",
             r.growth, r.largest_stable_step));
    return;
  }
  const double resolved = r.frequency * h;  // cycles per step
  if (r.kp > 0 && resolved > 0.5) {
    r.warnings.push_back(
        text("the gains give %.3g Hz, but steps of this size resolve at most %.3g Hz: the step sets the response, not "
             "the gains",
             r.frequency, 0.5 / h));
  } else if (r.kp > 0 && r.step_frequency < 0.8 * r.frequency) {
    r.warnings.push_back(
        text("the step responds at %.3g Hz instead of the %.3g Hz of the gains", r.step_frequency, r.frequency));
  }
  if (r.kp > 0 && r.numerical_damping > std::max(0.1, 0.2 * r.damping_ratio)) {
    r.warnings.push_back(
        text("the step adds damping: ratio %.3g instead of %.3g", r.step_damping_ratio, r.damping_ratio));
  }
  if (r.kp > 0 && resolved <= 0.5 && std::abs(r.phase_lag) > 20) {
    r.warnings.push_back(text(r.phase_lag > 0 ? "the step adds %.0f degrees of lag at %.3g Hz"
                                              : "the step reduces the lag by %.0f degrees at %.3g Hz",
                              std::abs(r.phase_lag), r.frequency));
  }
  if (!plain) return;
  if (r.largest_stable_step < 1.2 * h)
    r.warnings.push_back(text("close to instability: stable for steps below %.4g s", r.largest_stable_step));
}

/// [njoint] composite inertias about the joints' origins, in world axes. Poses must be set. O(njoint)
std::vector<RigidInertia<double>> composite_inertias(const Model& model, Data& data) {
  prepare_stiffened(model, data);
  std::vector<RigidInertia<double>> out;
  for (int i = 0; i < model.njoint(); ++i) out.push_back(data.links()[i].Ic);
  for (int i = model.njoint() - 1; i >= 0; --i) {
    const int parent = model.joints[i].parent;
    if (parent >= 0) out[parent] = out[parent] + shift_back(out[i], data.links()[i].r);
  }
  return out;
}

/// The block of M⁻¹ for a joint's own DoFs, E M⁻¹ Eᵀ with their unit rows E, from the factors in data. Lower triangle
/// only. O(depth)
Eigen::MatrixXd own_inverse(const Model& model, const Data& data, DelassusRows<double>& rows, int joint) {
  const int n = model.joints[joint].nv();
  rows.clear();
  const auto block = rows.block(rows.add_joint_block({&joint, 1}, n));
  std::fill_n(block.joint, block.dofs.size() * std::size_t(block.stride), 0.0);
  for (int k = 0; k < n; ++k) block.joint[k * block.stride + k] = 1;  // the path to the root begins with the joint
  rows.sweep(model, data);
  Eigen::MatrixXd gram(block.stride, n);
  rows.own_gram(0, gram.data());
  return gram.topRows(n);
}

Eigen::Matrix3d dense(const Sym3d& s) {
  return Eigen::Matrix3d{{s.xx, s.xy, s.xz}, {s.xy, s.yy, s.yz}, {s.xz, s.yz, s.zz}};
}

/// Smallest and largest eigenvalue of a symmetric matrix, of which the lower triangle is read.
std::pair<double, double> eigenvalue_range(const Eigen::MatrixXd& A) {
  const Eigen::VectorXd values =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(A, Eigen::EigenvaluesOnly).eigenvalues();
  return {values[0], values[values.size() - 1]};
}

}  // namespace

GainReport analyse_gains(double m, double kp, double kd, bool plain, double h) {
  GainReport r;
  r.kp = kp, r.kd = kd, r.inertia = r.inertia_largest = r.inertia_limp = m;
  if (!(m > 0)) {
    for (double* x : {&r.frequency, &r.damping_ratio, &r.step_frequency, &r.step_damping_ratio, &r.numerical_damping,
                      &r.phase_lag, &r.growth, &r.largest_stable_step})
      *x = NAN;
    if (kp > 0 || kd > 0)
      r.warnings.push_back("no inertia: what this joint moves has no mass, so that the gains specify no oscillator");
    return r;
  }
  r.frequency = std::sqrt(kp / m) / (2 * kPi);
  r.damping_ratio = kp > 0 ? kd / (2 * std::sqrt(kp * m)) : kd > 0 ? kInfinity : 0;
  const auto lambda = step_eigenvalues(m, kp, kd, plain, h);
  r.growth = std::max(std::abs(1.0 + lambda[0]), std::abs(1.0 + lambda[1]));
  // 3 h² kp = 4 m + 2 h kd
  r.largest_stable_step = !plain || kp == 0 ? kInfinity : (kd + std::sqrt(kd * kd + 12 * kp * m)) / (3 * kp);
  if (kp > 0) {
    // s² + 2 ζ ω s + ω² with the roots ln λ / h.
    const Complex s0 = log1p(lambda[0]) / h, s1 = log1p(lambda[1]) / h;
    const double omega = std::sqrt(std::abs(s0 * s1));
    r.step_frequency = omega / (2 * kPi);
    r.step_damping_ratio = omega > 0 ? -(s0 + s1).real() / (2 * omega) : 0;
    r.numerical_damping = r.step_damping_ratio - r.damping_ratio;
    const double w = std::min(std::sqrt(kp / m), kPi / h);
    r.phase_lag = -phase_difference(m, kp, kd, plain, h, w) * 180 / kPi;
  }
  warn(r, plain, h);
  return r;
}

std::vector<GainReport> report_gains(const Model& model, const Drives& drives, double dt,
                                     std::span<const double> qpos) {
  drives.check(model);
  check_size("qpos", qpos.size(), model.nq);
  if (!(dt >= 1e-9 && dt <= 1e6)) throw ValueError("dt", number_text(dt), "1e-9 to 1e6 seconds");
  for (const auto* gains : {&drives.kp, &drives.kd}) {
    if (const auto most = std::ranges::max_element(*gains); most != gains->end() && *most > 1e100)
      throw ValueError("gains", number_text(*most), "1e100 at most");
  }
  Data data(model);
  factor<double>(model, data, qpos, model.armature);
  const std::vector<RigidInertia<double>> composite = composite_inertias(model, data);
  DelassusRows<double> rows(model);
  std::vector<GainReport> reports;
  for (int i = 0; i < model.njoint(); ++i) {
    const Joint& joint = model.joints[i];
    const RigidInertia<double>& carried = composite[std::size_t(i)];
    const Eigen::MatrixXd inverse = own_inverse(model, data, rows, i);
    // The inertia of the DoFs from `first` on with all others held, and their block of M⁻¹.
    const auto add = [&](int first, const std::pair<double, double>& moved, const Eigen::MatrixXd& limp,
                         const char* part) {
      GainReport r = analyse_gains(moved.first + joint.armature, drives.kp[first], drives.kd[first], drives.plain, dt);
      r.joint = i, r.part = part;
      r.inertia_largest = moved.second + joint.armature;
      r.inertia_limp = 1 / eigenvalue_range(limp).second;
      reports.push_back(r);
    };
    const Sym3d& I = carried.I;
    const std::pair<double, double> mass{carried.mass, carried.mass};
    if (moves_freely(joint.type)) {
      add(joint.qvel, mass, inverse.topLeftCorner<3, 3>(), "translation");
      add(joint.qvel + 3, eigenvalue_range(dense(I)), inverse.bottomRightCorner<3, 3>(), "rotation");
    } else if (turns_freely(joint.type)) {
      add(joint.qvel, eigenvalue_range(dense(I)), inverse, "");
    } else {
      const Vec3d axis = data.links()[i].R.column_z();
      const double about = dot(axis, I * axis);
      add(joint.qvel, turns_on_axis(joint.type) ? std::pair{about, about} : mass, inverse, "");
    }
  }
  return reports;
}

}  // namespace tarsus
