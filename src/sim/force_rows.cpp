#include "tarsus/sim/force_rows.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "math/dense_lu.hpp"

namespace tarsus {

namespace {

/// Least compliance of rigid rows, a fraction of the inverse mass along them. Dependent rows then share their force.
template <class R>
constexpr double kRigid = sizeof(R) == 8 ? 1e-6 : 1e-3;
constexpr int kNewtonSteps = 30, kSweeps = 1000;

/// Residual of a row's law in its force, with the other rows fixed. @param inverse_mass B_rr
double missing(const ForceRow& row, double force, double speedup, double inverse_mass) {
  const double correction = (row.force - row.slope * speedup - force) / (1 + row.slope * inverse_mass);
  return std::clamp(force + correction, row.low, row.high) - force;
}

}  // namespace

template <class R>
void ForceRows<R>::begin(const Servos<R>& servos, double h, In<R> tau) {
  h_ = h;
  tau_.assign(tau.begin(), tau.end());
  const std::span<const ForceRow> rows = servos.rows(0);
  rows_.assign(rows.begin(), rows.end());
  force_.assign(rows.size(), 0), speedup_.assign(rows.size(), 0);
  acting_.clear(), known_ = false;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (!rows[r].rigid || (rows[r].low < 0 && rows[r].high > 0)) acting_.push_back(int(r));
  }
}

template <class R>
void ForceRows<R>::push(int r, double force) {
  const ForceRow& row = rows_[r];
  for (std::size_t k = 0; k < row.dofs.size(); ++k) tau_[std::size_t(row.dofs[k])] += R(row.arm[k] * force);
}

template <class R>
double ForceRows<R>::measure(In<R> qacc) {
  const std::size_t n = acting_.size();
  for (std::size_t r = 0; r < rows_.size(); ++r) speedup_[r] = along(rows_[r], qacc);
  double worst = n > 0 && !known_ ? kInfinity : 0, size = 1e-6, miss = 0;
  for (std::size_t i = 0; i < n && known_; ++i) {
    const int r = acting_[i];
    const double lack = missing(rows_[r], force_[r], speedup_[r], response_[i * (n + 1)]);
    miss = std::max(miss, std::abs(lack)), size = std::max(size, std::abs(force_[r] + lack));
    if (!rows_[r].rigid) size = std::max(size, std::abs(rows_[r].force));
  }
  if (std::isfinite(miss)) worst = std::max(worst, miss / size);  // the step reports a world that is not finite
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const ForceRow& row = rows_[r];
    if (!row.rigid || std::find(acting_.begin(), acting_.end(), int(r)) != acting_.end()) continue;
    const double lack = row.target - row.speed - h_ * speedup_[r];
    if (!(lack > 0 && row.high > 0) && !(lack < 0 && row.low < 0)) continue;
    acting_.push_back(int(r));
    known_ = false, worst = kInfinity;
  }
  return worst;
}

template <class R>
void ForceRows<R>::respond(int place, In<R> probe) {
  const std::size_t n = acting_.size();
  response_.resize(n * n);
  for (std::size_t i = 0; i < n; ++i) response_[i * n + std::size_t(place)] = along(rows_[acting_[i]], probe);
}

/// The laws of rigid rows: f = (b - J v - h J q̈)/(h R), where R is a fraction of the row's inverse mass.
template <class R>
void ForceRows<R>::settle_responses() {
  const std::size_t n = acting_.size();
  for (std::size_t i = 0; i < n && !known_; ++i) {
    ForceRow& row = rows_[acting_[i]];
    if (!row.rigid) continue;
    const double compliance = std::max(row.compliance, kRigid<R> * std::max(response_[i * (n + 1)], 1e-30));
    row.slope = 1 / compliance;
    row.force = (row.target - row.speed) / (h_ * compliance);
  }
  known_ = true;
}

template <class R>
void ForceRows<R>::improve() {
  const auto n = Eigen::Index(acting_.size());
  if (n == 0) return;
  const Eigen::Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>> B(response_.data(), n, n);
  Eigen::VectorXd start(n), force(n), speedup(n), best(n);
  for (Eigen::Index i = 0; i < n; ++i) start[i] = force_[acting_[i]], speedup[i] = speedup_[acting_[i]];
  const Eigen::VectorXd free = speedup - B * start;
  const auto row = [&](Eigen::Index i) -> const ForceRow& { return rows_[acting_[i]]; };
  const auto miss = [&] {
    double worst = 0;
    for (Eigen::Index i = 0; i < n; ++i)
      worst = std::max(worst, std::abs(missing(row(i), force[i], speedup[i], B(i, i))));
    return worst;
  };
  std::vector<int> pivot;
  force = best = start;
  double least = miss();
  for (int step = 0; step < kNewtonSteps && least > 0; ++step) {
    Eigen::Matrix<double, -1, -1, Eigen::RowMajor> A = Eigen::MatrixXd::Identity(n, n);
    Eigen::VectorXd right(n);
    for (Eigen::Index i = 0; i < n; ++i) {
      const double wanted = row(i).force - row(i).slope * speedup[i];
      const double tried = force[i] + (wanted - force[i]) / (1 + row(i).slope * B(i, i));
      right[i] = std::clamp(tried, row(i).low, row(i).high);
      if (right[i] != tried) continue;
      const double scale = 1 / (1 + row(i).slope * B(i, i));
      A.row(i) *= scale, A.row(i) += scale * row(i).slope * B.row(i);
      right[i] = scale * (row(i).force - row(i).slope * free[i]);
    }
    pivot.resize(std::size_t(n));
    factor_lu({A.data(), std::size_t(A.size())}, pivot);
    solve_lu({A.data(), std::size_t(A.size())}, pivot, {right.data(), std::size_t(n)});
    force = right;
    speedup = free + B * force;
    const double now = miss();
    if (!(now < least)) {
      if (step > 10) break;
      continue;
    }
    least = now, best = force;
    if (now <= 1e-13 * force.cwiseAbs().maxCoeff()) break;
  }
  force = best, speedup = free + B * force;
  const double enough = 1e-12 * std::max(1e-6, force.cwiseAbs().maxCoeff());
  for (int sweep = 0; sweep < kSweeps && miss() > enough; ++sweep) {
    for (Eigen::Index i = 0; i < n; ++i) {
      const double change = missing(row(i), force[i], speedup[i], B(i, i));
      force[i] += change, speedup += B.col(i) * change;
    }
  }
  for (Eigen::Index i = 0; i < n; ++i) {
    if (!std::isfinite(force[i])) continue;
    push(acting_[i], force[i] - start[i]);
    force_[acting_[i]] = force[i];
  }
}

template class ForceRows<double>;
template class ForceRows<float>;

}  // namespace tarsus
