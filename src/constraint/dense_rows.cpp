#include "tarsus/constraint/dense_rows.hpp"

#include <algorithm>

#include "tarsus/base/index.hpp"

namespace tarsus {

void DenseRows::begin(const Matrices& matrices, std::span<const int> counts) {
  matrices_.emplace(matrices);
  counts_.assign(counts.begin(), counts.end());
  rows_ = 0, turned_ = false;
  for (const int n : counts) rows_ += n;
  all_.resize(rows_);
  for (std::size_t i = 0; i < all_.size(); ++i) all_[i] = int(i);
  sum_.resize(matrices.blocks.whole().stride);
}

void DenseRows::choose(std::span<const Tangent> tangents) {
  unknown_.clear();
  int row = 0;
  for (std::size_t t = 0; t < counts_.size(); row += counts_[t++]) {
    const bool bends = !tangents.empty() && !tangents[t].open && (counts_[t] > 1 || tangents[t].at[0][0] != 0);
    for (int k = 0; bends && k < counts_[t]; ++k) unknown_.push_back(row + k);
  }
}

/// f(G, its rows, the first of them, its place among unknown_) for each term with unknown rows.
template <class F>
void DenseRows::each_bent(std::span<const Tangent> tangents, const F& f) const {
  int at = 0, row = 0;
  for (std::size_t t = 0; at < int(unknown_.size()); row += counts_[t++]) {
    if (unknown_[at] != row) continue;
    f(tangents[t], counts_[t], row, at);
    at += counts_[t];
  }
}

/// 1 + A G of the unknown rows, by columns.
void DenseRows::write_rows(std::span<const Tangent> tangents) {
  const RowBlocks::Mass whole = matrices_->blocks.whole();
  const int n = int(unknown_.size()), ld = padded(n, 8);
  at_least(factors_.matrix, std::size_t(n) * ld);
  each_bent(tangents, [&](const Tangent& G, int count, int row, int at) {
    for (int c = 0; c < count; ++c) {
      double column[kTermRows];
      for (int r = 0; r < count; ++r) column[r] = G.at[r][c];
      double* to = &factors_.matrix[std::size_t(at + c) * ld];
      sum_of_rows(std::span(all_).subspan(row, count), column, whole.A, whole.stride, sum_.data());
      for (int i = 0; i < n; ++i) to[i] = sum_[unknown_[i]];
      std::fill(to + n, to + ld, 0.0);
      to[at + c] += 1;
    }
  });
}

/// J x of the unknown rows, in right_.
void DenseRows::solve_rows(std::span<const Tangent> tangents, std::span<const double> force) {
  const auto [A, stride] = matrices_->blocks.whole();
  const int n = int(unknown_.size()), ld = padded(n, 8);
  write_rows(tangents);
  factors_.factor(n, ld);
  right_.assign(ld, 0.0);
  sum_of_rows(std::span(all_).first(rows_), force.data(), A, stride, sum_.data());
  for (int i = 0; i < n; ++i) right_[i] = sum_[unknown_[i]];
  factors_.solve(right_);
}

void DenseRows::turn_W() {
  if (turned_) return;
  turned_ = true;
  const int n = matrices_->dofs, ld = padded(n, 8), columns = matrices_->blocks.whole().stride;
  at_least(W_, std::size_t(rows_) * ld);
  for (int r = 0; r < rows_; ++r) {
    double* to = &W_[std::size_t(r) * ld];
    for (int d = 0; d < n; ++d) to[d] = matrices_->W[std::size_t(d) * columns + r];
    std::fill(to + n, to + ld, 0.0);
  }
}

/// 1 + W G J, by columns.
void DenseRows::write_dofs(std::span<const Tangent> tangents) {
  const SparseRows& J = matrices_->J;
  const int n = matrices_->dofs, ld = padded(n, 8), unknown = int(unknown_.size());
  at_least(factors_.matrix, std::size_t(n) * ld), GJ_.assign(std::size_t(n) * unknown, 0.0);
  each_bent(tangents, [&](const Tangent& G, int count, int row, int at) {
    for (int c = 0; c < count; ++c) {
      double column[kTermRows];
      for (int r = 0; r < count; ++r) column[r] = G.at[r][c];
      const double* arm = J.arms_of(row + c);
      for (const int d : J.places_of(row + c)) {
        double* to = &GJ_[std::size_t(d) * unknown + at];
        for (int r = 0; r < count; ++r) to[r] += column[r] * *arm;
        ++arm;
      }
    }
  });
  for (int d = 0; d < n; ++d) {
    double* to = &factors_.matrix[std::size_t(d) * ld];
    sum_of_rows(unknown_, &GJ_[std::size_t(d) * unknown], W_.data(), ld, to);
    to[d] += 1;
  }
}

void DenseRows::solve_dofs(std::span<const Tangent> tangents, std::span<const double> force) {
  const SparseRows& J = matrices_->J;
  const int n = matrices_->dofs, ld = padded(n, 8);
  turn_W(), write_dofs(tangents);
  factors_.factor(n, ld);
  x_.resize(ld), right_.resize(unknown_.size());
  sum_of_rows(std::span(all_).first(rows_), force.data(), W_.data(), ld, x_.data());
  factors_.solve(x_);
  for (std::size_t i = 0; i < unknown_.size(); ++i) {
    const double* arm = J.arms_of(unknown_[i]);
    right_[i] = 0;
    for (const int d : J.places_of(unknown_[i])) right_[i] += x_[d] * *arm++;
  }
}

bool DenseRows::solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) {
  const auto [A, stride] = matrices_->blocks.whole();
  choose(tangents);
  impulse_.assign(force.begin(), force.end());
  if (!unknown_.empty()) {
    int(unknown_.size()) <= matrices_->dofs ? solve_rows(tangents, force) : solve_dofs(tangents, force);
    each_bent(tangents, [&](const Tangent& G, int count, int row, int at) {
      for (int r = 0; r < count; ++r) {
        for (int c = 0; c < count; ++c) impulse_[row + r] -= G.at[r][c] * right_[at + c];
      }
    });
  }
  sum_of_rows(std::span(all_).first(rows_), impulse_.data(), A, stride, sum_.data());
  std::copy_n(sum_.begin(), rows_, change.begin());
  return true;
}

}  // namespace tarsus
