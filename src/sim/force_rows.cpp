#include "tarsus/sim/force_rows.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "math/dense_lu.hpp"

namespace tarsus {

namespace {

/// Compliance of rigid rows, of the inverse mass along them: what depends on one another shares its force.
template <class R>
constexpr double kRigid = sizeof(R) == 8 ? 1e-6 : 1e-3;
constexpr int kNewtonSteps = 30, kSweeps = 1000;

/// What a row still lacks of its law, in its force, with the other rows as they are. @param inverse_mass B_rr
double missing(const ForceRow& row, double force, double speedup, double inverse_mass) {
  const double correction = (row.force - row.slope * speedup - force) / (1 + row.slope * inverse_mass);
  return std::clamp(force + correction, row.low, row.high) - force;
}

}  // namespace

template <class R>
void ForceRows<R>::begin(const BasicData<R>& data, const Servos<R>& servos, double h, In<R> tau) {
  nv_ = data.nv(), width_ = data.width(), h_ = h;
  tau_.assign(tau.begin(), tau.end());
  worlds_.resize(data.worlds());
  for (int w = 0; w < data.worlds(); ++w) {
    World& world = worlds_[w];
    const std::span<const ForceRow> rows = servos.rows(w);
    world.rows.assign(rows.begin(), rows.end());
    world.force.assign(rows.size(), 0), world.speedup.assign(rows.size(), 0);
    world.acting.clear(), world.known = false;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if (!rows[r].rigid || (rows[r].low < 0 && rows[r].high > 0)) world.acting.push_back(int(r));
    }
  }
}

template <class R>
double ForceRows<R>::along(const ForceRow& row, int world, In<R> qacc) const {
  double sum = 0;
  for (std::size_t k = 0; k < row.dofs.size(); ++k)
    sum += row.arm[k] * double(qacc[(std::size_t(world / width_) * nv_ + row.dofs[k]) * width_ + world % width_]);
  return sum;
}

template <class R>
void ForceRows<R>::push(int world, int r, double force) {
  const ForceRow& row = worlds_[world].rows[r];
  for (std::size_t k = 0; k < row.dofs.size(); ++k)
    tau_[(std::size_t(world / width_) * nv_ + row.dofs[k]) * width_ + world % width_] += R(row.arm[k] * force);
}

template <class R>
double ForceRows<R>::measure(In<R> qacc) {
  double worst = 0;
  for (std::size_t w = 0; w < worlds_.size(); ++w) {
    World& world = worlds_[w];
    const std::size_t n = world.acting.size();
    for (std::size_t r = 0; r < world.rows.size(); ++r) world.speedup[r] = along(world.rows[r], int(w), qacc);
    if (n > 0 && !world.known) worst = kInfinity;
    double size = 1e-6, miss = 0;
    for (std::size_t i = 0; i < n && world.known; ++i) {
      const int r = world.acting[i];
      const double lack = missing(world.rows[r], world.force[r], world.speedup[r], world.response[i * (n + 1)]);
      miss = std::max(miss, std::abs(lack)), size = std::max(size, std::abs(world.force[r] + lack));
      if (!world.rows[r].rigid) size = std::max(size, std::abs(world.rows[r].force));
    }
    if (std::isfinite(miss)) worst = std::max(worst, miss / size);  // a world that is not finite is found by the step
    for (std::size_t r = 0; r < world.rows.size(); ++r) {
      const ForceRow& row = world.rows[r];
      if (!row.rigid || std::find(world.acting.begin(), world.acting.end(), int(r)) != world.acting.end()) continue;
      const double lack = row.target - row.speed - h_ * world.speedup[r];
      if (!(lack > 0 && row.high > 0) && !(lack < 0 && row.low < 0)) continue;
      world.acting.push_back(int(r));
      world.known = false, worst = kInfinity;
    }
  }
  return worst;
}

/// How many solves make every world's responses known; makes room for them.
template <class R>
int ForceRows<R>::unknown_responses() const {
  std::size_t most = 0;
  for (const World& world : worlds_) {
    if (!world.known) most = std::max(most, world.acting.size());
  }
  return int(most);
}

template <class R>
void ForceRows<R>::respond(int place, In<R> probe) {
  for (std::size_t w = 0; w < worlds_.size(); ++w) {
    World& world = worlds_[w];
    const std::size_t n = world.acting.size();
    if (world.known || place >= int(n)) continue;
    world.response.resize(n * n);
    for (std::size_t i = 0; i < n; ++i)
      world.response[i * n + std::size_t(place)] = along(world.rows[world.acting[i]], int(w), probe);
  }
}

/// The laws of rigid rows: f = (b - J v - h J q̈)/(h R), R a share of their own inverse mass.
template <class R>
void ForceRows<R>::settle_responses() {
  for (World& world : worlds_) {
    const std::size_t n = world.acting.size();
    for (std::size_t i = 0; i < n && !world.known; ++i) {
      ForceRow& row = world.rows[world.acting[i]];
      if (!row.rigid) continue;
      const double compliance = kRigid<R> * std::max(world.response[i * (n + 1)], 1e-30);
      row.slope = 1 / compliance;
      row.force = (row.target - row.speed) / (h_ * compliance);
    }
    world.known = true;
  }
}

template <class R>
void ForceRows<R>::improve() {
  for (std::size_t w = 0; w < worlds_.size(); ++w) {
    World& world = worlds_[w];
    const auto n = Eigen::Index(world.acting.size());
    if (n == 0) continue;
    const Eigen::Map<const Eigen::Matrix<double, -1, -1, Eigen::RowMajor>> B(world.response.data(), n, n);
    Eigen::VectorXd start(n), force(n), speedup(n), best(n);
    for (Eigen::Index i = 0; i < n; ++i)
      start[i] = world.force[world.acting[i]], speedup[i] = world.speedup[world.acting[i]];
    const Eigen::VectorXd free = speedup - B * start;
    const auto row = [&](Eigen::Index i) -> const ForceRow& { return world.rows[world.acting[i]]; };
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
      push(int(w), world.acting[i], force[i] - start[i]);
      world.force[world.acting[i]] = force[i];
    }
  }
}

template <class R>
double ForceRows<R>::range_force(int world, int tendon) const {
  double sum = 0;
  if (world >= int(worlds_.size())) return sum;
  const World& w = worlds_[world];
  for (std::size_t r = 0; r < w.rows.size(); ++r) {
    if (w.rows[r].tendon_range == tendon) sum += std::abs(w.force[r]);
  }
  return sum;
}

template <class R>
double ForceRows<R>::friction_force(int world, int tendon) const {
  if (world >= int(worlds_.size())) return 0;
  const World& w = worlds_[world];
  for (std::size_t r = 0; r < w.rows.size(); ++r) {
    if (w.rows[r].tendon_friction == tendon) return w.force[r];
  }
  return 0;
}

template class ForceRows<double>;
template class ForceRows<float>;

}  // namespace tarsus
