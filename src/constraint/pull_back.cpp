#include "constraint/pull_back.hpp"

#include <algorithm>
#include <cmath>

#include "constraint/kernel_table.hpp"

namespace tarsus {

namespace {

/// The least μ: what rounding makes of rows that depend on one another.
template <class R>
constexpr double kLeastMu = sizeof(R) == 8 ? 1e-10 : 1e-5;
template <class R>
constexpr R kClosed = sizeof(R) == 8 ? R(1e-12) : R(2e-6);  ///< [m | rad]
constexpr double kStrained = 1.1;                           ///< near enough to one
constexpr int kTries = 12;
constexpr double kLeastOfLargest = 1e-9;  ///< of the largest inverse mass of all rows, that a unit's counts as

}  // namespace

template <class R>
PullBack<R>::PullBack(const EqualitySet& equalities, const DelassusRows<R>& rows)
    : equalities_(equalities), width_(rows.width()), rows_(rows.rows()), ld_(rows.leading_dimension()) {
  A_.resize(width_ * rows_ * ld_);
  for (auto* v : {&inverse_, &scale_, &sigma_, &right_, &mass_, &lambda_, &change_}) v->resize(width_ * ld_);
  lane_.resize(width_), mu_.resize(width_), limited_.resize(width_), settled_.resize(width_);
}

template <class R>
bool PullBack<R>::closed(const R* phi, std::size_t lane) const {
  for (std::size_t r = 0; r < rows_; ++r) {
    if (std::abs(phi[r * width_ + lane]) > kClosed<R>) return false;
  }
  return true;
}

/// A_e at each row of its unit.
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

template <class R>
typename PullBack<R>::Unit PullBack<R>::strained(std::size_t lane) const {
  Unit most;
  for (const RowUnit& unit : equalities_.units()) {
    if (unit.reach <= 0) continue;
    double square = 0;
    for (int k = 0; k < unit.nrow; ++k) {
      const double x = double(lambda_[(unit.first_row + k) * width_ + lane]);
      square += x * x;
    }
    const double strain = std::sqrt(square) * double(mass_[unit.first_row * width_ + lane]) / unit.reach;
    if (strain > most.strain) most = {strain, &unit};
  }
  return most;
}

/// -d strain / dμ
template <class R>
double PullBack<R>::slope(std::size_t lane, const Unit& unit) const {
  double square = 0, along = 0;
  for (int k = 0; k < unit.at->nrow; ++k) {
    const std::size_t i = (unit.at->first_row + k) * width_ + lane;
    square += double(lambda_[i]) * double(lambda_[i]), along += double(lambda_[i]) * double(change_[i]);
  }
  return unit.strain * along / square;
}

/// change_, of the factor and λ at hand.
template <class R>
void PullBack<R>::differentiate() {
  const ConstraintTable<R>& kernels = constraint_table<R>(int(width_));
  const int m = int(rows_), ld = int(ld_);
  for (std::size_t k = 0; k < rows_ * width_; ++k) right_[k] = mass_[k] * lambda_[k];
  kernels.ldl_forward(m, ld, A_.data(), inverse_.data(), right_.data());
  kernels.ldl_back(m, ld, A_.data(), inverse_.data(), scale_.data(), R(0), change_.data(), lane_.data());
}

template <class R>
bool PullBack<R>::limit(DelassusRows<R>& rows, const R* sigma, R* phi) {
  const std::size_t w = width_;
  bool some = false, open = false;
  for (std::size_t lane = 0; lane < w; ++lane) {
    mu_[lane] = kLeastMu<R>, limited_[lane] = 0, settled_[lane] = closed(phi, lane);
    open = open || !settled_[lane];
  }
  for (int tried = 0; open; ++tried) {
    rows.gram(A_.data(), int(ld_));
    if (tried == 0) weigh();
    solve(sigma, phi);
    open = false;
    for (std::size_t lane = 0; lane < w; ++lane) {
      if (settled_[lane]) continue;
      const Unit most = strained(lane);
      if (most.strain > kStrained && tried < kTries) {
        if (!open) differentiate();
        const double falls = slope(lane, most), mu = mu_[lane];
        // 1/strain is next to linear in μ.
        mu_[lane] = std::max(2 * mu, falls > 0 ? mu + most.strain * (most.strain - 1) / falls : 0);
        limited_[lane] = 1, some = open = true;
        continue;
      }
      settled_[lane] = 1;
      if (!limited_[lane]) continue;
      const R part = R(1 / std::max(1.0, most.strain));
      for (std::size_t k = lane; k < rows_ * w; k += w)
        phi[k] = (phi[k] - R(mu_[lane]) * mass_[k] * lambda_[k]) * part;
    }
  }
  return some;
}

template class PullBack<double>;
template class PullBack<float>;

}  // namespace tarsus
