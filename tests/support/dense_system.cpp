#include "support/dense_system.hpp"

#include <algorithm>
#include <cmath>

#include "support/dense_rows.hpp"
#include "support/dense_solve.hpp"

namespace tarsus::test {

Eigen::MatrixXd DenseSystem::scaled() const {
  Eigen::MatrixXd A = J * spd_solve(M, J.transpose());
  A.diagonal() += sigma;
  const Eigen::VectorXd scale = A.diagonal().unaryExpr([](double d) { return d > 0 ? 1 / std::sqrt(d) : 0; });
  return scale.asDiagonal() * A * scale.asDiagonal();
}

double DenseSystem::condition() const {
  if (rows() == 0) return 1;
  const Eigen::VectorXd values = symmetric_eigenvalues(scaled());
  return values[0] > 0 ? values[rows() - 1] / values[0] : 1e300;
}

Eigen::VectorXd DenseSystem::solve() const {
  const Eigen::Index n = M.rows(), m = J.rows();
  Eigen::MatrixXd whole(n + m, n + m);
  whole << M, J.transpose(), J, -Eigen::MatrixXd(sigma.asDiagonal());
  Eigen::VectorXd b(n + m);
  b << y1, y2;
  return lu_solve(whole, b);
}

double DenseSystem::force_residual(const Eigen::VectorXd& a, const Eigen::VectorXd& x2) const {
  const double largest =
      (M.cwiseAbs() * a.cwiseAbs() + J.transpose().cwiseAbs() * x2.cwiseAbs() + y1.cwiseAbs()).maxCoeff();
  return (M * a + J.transpose() * x2 - y1).cwiseAbs().maxCoeff() / std::max(largest, 1e-300);
}

double DenseSystem::row_residual(const Eigen::VectorXd& a, const Eigen::VectorXd& x2) const {
  const Eigen::VectorXd free = spd_solve(M, y1);
  const double largest =
      (J.cwiseAbs() * (a.cwiseAbs() + free.cwiseAbs()) + sigma.cwiseProduct(x2).cwiseAbs() + y2.cwiseAbs()).maxCoeff();
  return (J * a - sigma.cwiseProduct(x2) - y2).cwiseAbs().maxCoeff() / std::max(largest, 1e-300);
}

double pull_back(const Equality& e, int row, std::span<const double> phi, double dt) {
  const int first = e.first_row + (row - e.first_row) / 3 * 3, end = std::min(first + 3, e.first_row + e.nrow);
  double square = 0;
  for (int k = first; k < end; ++k) square += phi[k] * phi[k];
  const double rate = 4 / (dt * (1 + 4 * e.softness.damping_steps)), pull = rate * std::sqrt(square);
  // Of a weld's angles φ = s sin(θ/2), and 20 rad/s are φ̇ = 10 s cos(θ/2).
  const double s = e.torque_scale, most = first > e.first_row && e.kind == EqualityKind::weld
                                              ? 10 * std::sqrt(std::max(0.0, s * s - square))
                                              : 10;
  return rate * phi[row] * (e.softness.compliance > 0 || pull <= most ? 1 : most / pull);
}

DenseSystem dense_system(const Model& model, const EqualitySet& set, const State& s, std::span<const double> K,
                         double dt, double drift_time, std::span<const double> ahead) {
  Data data(model);
  DelassusRows<double> rows(model);
  set.add_blocks(rows);
  const int n = model.nv, m = set.rows();
  std::vector<double> M(std::size_t(n) * n), bias(n), zero(n), tau(n), phi(m), rate(m), Jdot(m);
  crba<double>(model, data, s.qpos, M);
  bias_force<double>(model, data, s.qpos, s.qvel, bias);
  kinematics<double>(model, data, s.qpos, s.qvel);
  rnea<double>(model, data, s.qpos, s.qvel, zero, tau);
  set.evaluate<double>(data, 0, s.qpos, s.qvel, rows, phi, rate, Jdot);
  DenseSystem d{Eigen::Map<Eigen::MatrixXd>(M.data(), n, n),
                {},
                Eigen::VectorXd::Zero(m),
                Eigen::VectorXd(n),
                Eigen::VectorXd(m)};
  for (int i = 0; i < n; ++i) d.M(i, i) += K[i] - model.armature[i], d.y1[i] = s.tau[i] - bias[i];
  kinematics<double>(model, data, s.qpos);
  d.J = dense_jacobian(model, data, rows);
  for (int i = 0; i < set.size(); ++i) {
    const Softness& soft = set[i].softness;
    const double damping = 1 + 4 * soft.damping_steps;
    for (int r = set[i].first_row; r < set[i].first_row + set[i].nrow; ++r) {
      if (dt > 0) {
        const double half = ahead.empty() ? 0 : 0.5 * dt * ahead[r] * Jdot[r];
        d.y2[r] = ((rate[r] - half) / damping - pull_back(set[i], r, phi, dt) - half - rate[r]) / dt;
        d.sigma[r] = 4 * soft.compliance / (dt * dt * damping);
      } else {
        d.y2[r] = -Jdot[r];
        if (drift_time > 0) d.y2[r] -= 2 * rate[r] / drift_time + phi[r] / (drift_time * drift_time);
      }
    }
  }
  return d;
}

}  // namespace tarsus::test
