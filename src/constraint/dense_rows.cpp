// The linear problem of a step on the rows of some terms (dense_rows.hpp). LU of n unknown rows costs O(n³), or of the
// DoFs if these are fewer.
#include "tarsus/constraint/dense_rows.hpp"

#include <algorithm>

#include "tarsus/base/index.hpp"

namespace tarsus {

void DenseRows::begin(const Matrices& matrices, std::span<const int> counts) {
  matrices_.emplace(matrices);
  counts_.assign(counts.begin(), counts.end());
  rows_ = 0, turned_ = factored_ = false, picked_.clear();
  for (const int n : counts) rows_ += n;
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

/// Calls f(G, number of rows, first row, its place in unknown_) for each term with unknown rows.
template <class F>
void DenseRows::each_bent(std::span<const Tangent> tangents, const F& f) const {
  int at = 0, row = 0;
  for (std::size_t t = 0; at < int(unknown_.size()); row += counts_[t++]) {
    if (unknown_[at] != row) continue;
    f(tangents[t], counts_[t], row, at);
    at += counts_[t];
  }
}

/// Σ y_i X_i of all rows.
void DenseRows::multiply_rows(const double* y, const double* X, int leading, double* sum) const {
  multiply(1, rows_, {y, 0, 1}, {X, leading}, leading, sum, leading);
}

/// 1 + A G of the unknown rows, stored by columns.
void DenseRows::write_rows(std::span<const Tangent> tangents) {
  const auto [A, stride] = matrices_->blocks.whole();
  const int n = int(unknown_.size()), ld = padded(n, 8);
  if (picked_ != unknown_) {  // keeps A_ if the last iteration had the same rows
    picked_ = unknown_;
    A_.assign(std::size_t(n) * ld, 0.0);
    for (int r = 0; r < n; ++r) {
      const double* from = A + std::size_t(unknown_[r]) * stride;
      for (int c = 0; c < n; ++c) A_[std::size_t(r) * ld + c] = from[unknown_[c]];
    }
  }
  at_least(factors_.matrix, std::size_t(n) * ld);
  double* const H = factors_.matrix.data();
  each_bent(tangents, [&](const Tangent& G, int count, int, int at) {
    multiply(count, count, {G.at[0], 1, kTermRows}, {&A_[std::size_t(at) * ld], ld}, ld, H + std::size_t(at) * ld, ld);
  });
  for (int i = 0; i < n; ++i) H[std::size_t(i) * (ld + 1)] += 1;
}

/// Solves for J x of the unknown rows, in right_.
void DenseRows::solve_rows(std::span<const double> force) {
  const auto [A, stride] = matrices_->blocks.whole();
  const int n = int(unknown_.size());
  right_.assign(padded(n, 8), 0.0);
  multiply_rows(force.data(), A, stride, sum_.data());
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

/// 1 + W G J, stored by columns.
void DenseRows::write_dofs(std::span<const Tangent> tangents) {
  const int n = matrices_->dofs, ld = padded(n, 8), unknown = int(unknown_.size());
  at_least(factors_.matrix, std::size_t(n) * ld), at_least(GJ_, std::size_t(unknown) * ld);
  each_bent(tangents, [&](const Tangent& G, int count, int row, int at) {
    multiply(count, count, {G.at[0], kTermRows, 1}, {matrices_->J + std::size_t(row) * ld, ld}, ld,
             &GJ_[std::size_t(at) * ld], ld);
  });
  double* const H = factors_.matrix.data();
  multiply(n, unknown, {GJ_.data(), 1, ld}, {W_.data(), ld, unknown_.data()}, ld, H, ld);
  for (int d = 0; d < n; ++d) H[std::size_t(d) * (ld + 1)] += 1;
}

void DenseRows::solve_dofs(std::span<const double> force) {
  const int n = matrices_->dofs, ld = padded(n, 8);
  x_.resize(ld), right_.resize(unknown_.size());
  multiply_rows(force.data(), W_.data(), ld, x_.data());
  factors_.solve(x_);
  const int columns = matrices_->blocks.whole().stride;
  multiply(1, n, {x_.data(), 0, 1}, {matrices_->Jt, columns}, columns, sum_.data(), columns);
  for (std::size_t i = 0; i < unknown_.size(); ++i) right_[i] = sum_[unknown_[i]];
}

void DenseRows::factor(std::span<const Tangent> tangents) {
  if (unknown_.empty()) return;
  const int n = by_rows() ? int(unknown_.size()) : matrices_->dofs;
  by_rows() ? write_rows(tangents) : (turn_W(), write_dofs(tangents));
  factors_.factor(n, padded(n, 8));
}

void DenseRows::solve_factored(std::span<const Tangent> tangents, std::span<const double> force,
                               std::span<double> change) {
  const auto [A, stride] = matrices_->blocks.whole();
  impulse_.assign(force.begin(), force.end());
  if (!unknown_.empty()) {
    by_rows() ? solve_rows(force) : solve_dofs(force);
    each_bent(tangents, [&](const Tangent& G, int count, int row, int at) {
      for (int r = 0; r < count; ++r) {
        for (int c = 0; c < count; ++c) impulse_[row + r] -= G.at[r][c] * right_[at + c];
      }
    });
  }
  multiply_rows(impulse_.data(), A, stride, sum_.data());
  std::copy_n(sum_.begin(), rows_, change.begin());
}

bool DenseRows::solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) {
  choose(tangents), factor(tangents);
  solve_factored(tangents, force, change);
  factored_ = !tangents.empty();
  return true;
}

bool DenseRows::solve_again(std::span<const Tangent> tangents, std::span<const double> force,
                            std::span<double> change) {
  if (factored_) solve_factored(tangents, force, change);
  return factored_;
}

}  // namespace tarsus
