#include "tarsus/sim/force_rows.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

namespace tarsus {

template <class R>
void ForceRows<R>::begin(const BasicData<R>& data, const Servos<R>& servos, In<R> tau) {
  nv_ = data.nv(), width_ = data.width();
  tau_.assign(tau.begin(), tau.end());
  worlds_.resize(data.worlds());
  for (int world = 0; world < data.worlds(); ++world) {
    const std::size_t n = servos.rows(world).size();
    worlds_[world].force.assign(n, 0), worlds_[world].speedup.assign(n, 0);
    worlds_[world].response.assign(n * n, 0);
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
void ForceRows<R>::push(const Servos<R>& servos, int world, int row, double force) {
  const std::span<const ForceRow> rows = servos.rows(world);
  if (row >= int(rows.size())) return;
  for (std::size_t k = 0; k < rows[row].dofs.size(); ++k)
    tau_[(std::size_t(world / width_) * nv_ + rows[row].dofs[k]) * width_ + world % width_] +=
        R(rows[row].arm[k] * force);
}

template <class R>
double ForceRows<R>::measure(const Servos<R>& servos, In<R> qacc) {
  double worst = 0;
  for (std::size_t w = 0; w < worlds_.size(); ++w) {
    const std::span<const ForceRow> rows = servos.rows(int(w));
    double size = 1e-6, miss = 0;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      worlds_[w].speedup[r] = along(rows[r], int(w), qacc);
      const double law = std::clamp(rows[r].force - rows[r].slope * worlds_[w].speedup[r], rows[r].low, rows[r].high);
      miss = std::max(miss, std::abs(law - worlds_[w].force[r]));
      size = std::max({size, std::abs(law), std::abs(rows[r].force)});
    }
    if (std::isfinite(miss)) worst = std::max(worst, miss / size);  // a world that is not finite is found by the step
  }
  return worst;
}

template <class R>
void ForceRows<R>::respond(const Servos<R>& servos, int row, In<R> probe) {
  for (std::size_t w = 0; w < worlds_.size(); ++w) {
    const std::span<const ForceRow> rows = servos.rows(int(w));
    for (std::size_t r = 0; r < rows.size() && row < int(rows.size()); ++r)
      worlds_[w].response[r * rows.size() + row] = along(rows[r], int(w), probe);
  }
}

template <class R>
void ForceRows<R>::improve(const Servos<R>& servos) {
  for (std::size_t w = 0; w < worlds_.size(); ++w) {
    const std::span<const ForceRow> rows = servos.rows(int(w));
    const auto n = Eigen::Index(rows.size());
    if (n == 0) continue;
    Eigen::MatrixXd A = Eigen::MatrixXd::Identity(n, n);
    Eigen::VectorXd miss(n);
    for (Eigen::Index r = 0; r < n; ++r) {
      const ForceRow& row = rows[r];
      const double wanted = row.force - row.slope * worlds_[w].speedup[r], held = std::clamp(wanted, row.low, row.high);
      miss[r] = held - worlds_[w].force[r];
      if (held != wanted) continue;
      for (Eigen::Index c = 0; c < n; ++c) A(r, c) += row.slope * worlds_[w].response[r * n + c];
    }
    const Eigen::VectorXd step = A.partialPivLu().solve(miss);
    for (Eigen::Index r = 0; r < n; ++r) {
      worlds_[w].force[r] += step[r];
      push(servos, int(w), int(r), step[r]);
    }
  }
}

template class ForceRows<double>;
template class ForceRows<float>;

}  // namespace tarsus
