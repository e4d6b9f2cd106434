#include "constraint/pull_back.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "constraint/kernel_table.hpp"
#include "dynamics/delassus_table.hpp"

namespace tarsus {

namespace {

/// The least μ: what rounding makes of rows that depend on one another.
template <class R>
constexpr double kLeastMu = sizeof(R) == 8 ? 1e-10 : 1e-5;
constexpr double kClosed = 1e-4;   ///< of a unit's reach, an error that throws nothing about
constexpr double kStrained = 1.2;  ///< near enough to one
constexpr double kFar = 4;         ///< d turns a link by more than half a turn [rad], which leads anywhere
constexpr double kSlow = 0.05;     ///< and by so much it always may
constexpr int kTries = 12;
constexpr double kLeastOfLargest = 1e-9;  ///< of the largest inverse mass of all rows, that a unit's counts as

}  // namespace

template <class R>
PullBack<R>::PullBack(const Model& model, const EqualitySet& equalities, const DelassusRows<R>& rows)
    : model_(model),
      equalities_(equalities),
      width_(rows.width()),
      rows_(rows.rows()),
      ld_(rows.leading_dimension()),
      levers_(model.nv, 1.0),
      turned_(model.njoint()) {
  A_.resize(width_ * rows_ * ld_);
  for (auto* v : {&inverse_, &scale_, &sigma_, &mass_, &lambda_}) v->resize(width_ * ld_);
  u_.resize(width_ * model.nv), way_.resize(u_.size());
  lane_.resize(width_), mu_.resize(width_), settled_.resize(width_);
  double longest = 0;
  for (const RowUnit& unit : equalities.units()) longest = std::max(longest, unit.reach);
  for (const Joint& joint : model.joints) {
    const bool flies = moves_freely(joint.type);
    const int slides = flies ? 3 : joint.type == JointType::hinge || longest == 0 ? 0 : scalar_count(joint.type);
    for (int k = 0; k < slides; ++k)
      levers_[joint.qvel + k] = flies ? std::numeric_limits<double>::infinity() : longest;
  }
}

template <class R>
bool PullBack<R>::closed(const R* phi, std::size_t lane) const {
  for (const RowUnit& unit : equalities_.units()) {
    for (int k = 0; unit.reach > 0 && k < unit.nrow; ++k) {
      if (!(std::abs(double(phi[(unit.first_row + k) * width_ + lane])) <= kClosed * unit.reach)) return false;
    }
  }
  return true;
}

/// D at each row of its unit.
template <class R>
void PullBack<R>::weigh() {
  const std::size_t w = width_;
  const auto diagonal = [&](std::size_t r, std::size_t lane) { return A_[(r * ld_ + r) * w + lane]; };
  for (std::size_t lane = 0; lane < w; ++lane) {
    R most = 0;
    for (std::size_t r = 0; r < rows_; ++r) most = std::max(most, diagonal(r, lane));
    const R least = most > 0 ? R(kLeastOfLargest) * most : R(1);
    for (const RowUnit& unit : equalities_.units()) {
      const std::size_t first = unit.first_row, end = first + unit.nrow;
      R largest = least;
      for (std::size_t r = first; r < end; ++r) largest = std::max(largest, diagonal(r, lane));
      for (std::size_t r = first; r < end; ++r) mass_[r * w + lane] = largest;
    }
  }
}

/// λ, with each lane's μ.
template <class R>
void PullBack<R>::solve(const R* sigma, const R* phi) {
  const ConstraintTable<R>& kernels = constraint_table<R>(int(width_));
  const int m = int(rows_), ld = int(ld_);
  const std::size_t w = width_;
  for (std::size_t r = 0; r < rows_; ++r) {
    for (std::size_t lane = 0; lane < w; ++lane)
      sigma_[r * w + lane] = sigma[r * w + lane] + R(mu_[lane]) * mass_[r * w + lane];
  }
  kernels.ldl_load(m, ld, A_.data(), sigma_.data(), phi, R(0), R(0), scale_.data());
  kernels.ldl(m, ld, A_.data(), inverse_.data(), scale_.data(), lane_.data());
  kernels.ldl_back(m, ld, A_.data(), inverse_.data(), scale_.data(), R(0), lambda_.data(), lane_.data());
}

/// The largest of a unit.
template <class R>
double PullBack<R>::strain(std::size_t lane) const {
  double most = 0;
  for (const RowUnit& unit : equalities_.units()) {
    if (unit.reach <= 0) continue;
    double square = 0;
    for (int k = 0; k < unit.nrow; ++k) {
      const double x = double(lambda_[(unit.first_row + k) * width_ + lane]);
      square += x * x;
    }
    most = std::max(most, std::sqrt(square) * double(mass_[unit.first_row * width_ + lane]) / unit.reach);
  }
  return most;
}

/// d
template <class R>
void PullBack<R>::move(BasicData<R>& data, int pack, DelassusRows<R>& rows) {
  std::fill(u_.begin(), u_.end(), R(0));
  rows.pull(lambda_.data(), u_.data());
  delassus_table<R>(int(width_)).outward(data.view(model_, pack), data.state(pack), u_.data(), way_.data());
}

/// The largest of a link, at most: what the joints on its way to the world turn by. A slide on another link counts by
/// the longest reach; what flies freely bends no rows.
template <class R>
double PullBack<R>::turn(std::size_t lane) {
  double most = 0;
  for (int i = 0; i < model_.njoint(); ++i) {
    const Joint& joint = model_.joints[i];
    double square = 0;
    for (int v = joint.qvel; v < joint.qvel + joint.nv(); ++v) {
      const double x = double(way_[v * width_ + lane]) / levers_[v];
      square += x * x;
    }
    turned_[i] = std::sqrt(square) + (joint.parent >= 0 ? turned_[joint.parent] : 0);
    most = std::max(most, turned_[i]);
  }
  return most;
}

/// A μ by which strain comes to about one: along one direction λ is as 1/(a + μ), a = λ·(A + Σ) λ / λ·D λ.
template <class R>
double PullBack<R>::stiffer(std::size_t lane, double strain, const R* phi) const {
  double held = 0, raised = 0;
  for (std::size_t i = lane; i < rows_ * width_; i += width_) {
    const double x = double(lambda_[i]);
    held += x * double(phi[i]), raised += x * x * double(mass_[i]);
  }
  const double mu = mu_[lane], own = std::max(0.0, held / raised - mu);
  return std::max(2 * mu, strain * (own + mu) - own);
}

template <class R>
Pulled PullBack<R>::limit(BasicData<R>& data, int pack, DelassusRows<R>& rows, const R* sigma, R* phi) {
  const std::size_t w = width_;
  bool open = false;
  for (std::size_t lane = 0; lane < w; ++lane) {
    mu_[lane] = kLeastMu<R>, settled_[lane] = closed(phi, lane);
    open = open || !settled_[lane];
  }
  Pulled pulled = Pulled::all;
  for (int tried = 0; open; ++tried) {
    rows.gram(A_.data(), int(ld_));
    if (tried == 0) weigh();
    solve(sigma, phi);
    open = false;
    bool moved = false;
    for (std::size_t lane = 0; lane < w; ++lane) {
      if (settled_[lane]) continue;
      const double strained = strain(lane);
      if (tried == 0 && !(strained > kStrained)) {
        settled_[lane] = 1;
        continue;
      }
      if (!moved) move(data, pack, rows), moved = true;
      if (strained > kStrained && turn(lane) > (tried > 0 ? kSlow : kFar) && tried < kTries) {
        mu_[lane] = stiffer(lane, strained, phi);
        pulled = Pulled::part, open = true;
        continue;
      }
      settled_[lane] = 1, pulled = std::max(pulled, Pulled::what_moves);
      for (std::size_t k = lane; k < rows_ * w; k += w) phi[k] -= R(mu_[lane]) * mass_[k] * lambda_[k];
    }
  }
  return pulled;
}

template class PullBack<double>;
template class PullBack<float>;

}  // namespace tarsus
