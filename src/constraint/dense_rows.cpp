#include "tarsus/constraint/dense_rows.hpp"

#include <algorithm>

#include "tarsus/base/index.hpp"

namespace tarsus {

void DenseRows::begin(const Matrices& matrices, std::span<const int> counts) {
  matrices_.emplace(matrices);
  counts_.assign(counts.begin(), counts.end());
  rows_ = 0;
  for (const int n : counts) rows_ += n;
  all_.resize(std::max(rows_, matrices.dofs));
  for (std::size_t i = 0; i < all_.size(); ++i) all_[i] = int(i);
  sum_.resize(matrices.blocks.whole().stride);
}

void DenseRows::choose(std::span<const Tangent> tangents, std::span<const double> force) {
  unknown_.clear(), known_.clear();
  int row = 0;
  for (std::size_t t = 0; t < counts_.size(); ++t) {
    const bool bends = !tangents.empty() && !tangents[t].open && (counts_[t] > 1 || tangents[t].at[0][0] != 0);
    for (int k = 0; k < counts_[t]; ++k, ++row) {
      if (bends)
        unknown_.push_back(row);
      else if (force[row] != 0)
        known_.push_back(row);
    }
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
  const auto [A, stride] = matrices_->blocks.whole();
  const int n = int(unknown_.size()), ld = padded(n, 8);
  A_.assign(std::size_t(n) * ld, 0.0), factors_.matrix.resize(std::size_t(n) * ld);
  for (int i = 0; i < n; ++i) {
    const double* from = A + std::size_t(unknown_[i]) * stride;
    for (int j = 0; j < n; ++j) A_[std::size_t(i) * ld + j] = from[unknown_[j]];
  }
  each_bent(tangents, [&](const Tangent& G, int count, int, int at) {
    for (int c = 0; c < count; ++c) {
      double column[kTermRows];
      for (int r = 0; r < count; ++r) column[r] = G.at[r][c];
      double* to = &factors_.matrix[std::size_t(at + c) * ld];
      sum_of_rows(std::span(all_).subspan(at, count), column, A_.data(), ld, to);
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
  right_.assign(ld, 0.0), some_.resize(rows_);
  for (int i = 0; i < n; ++i) some_[i] = force[unknown_[i]];
  sum_of_rows(std::span(all_).first(n), some_.data(), A_.data(), ld, right_.data());
  if (!known_.empty()) {
    for (std::size_t i = 0; i < known_.size(); ++i) some_[i] = force[known_[i]];
    sum_of_rows(known_, some_.data(), A, stride, sum_.data());
    for (int i = 0; i < n; ++i) right_[i] += sum_[unknown_[i]];
  }
  factors_.solve(right_);
}

/// 1 + W G J, by columns.
void DenseRows::write_dofs(std::span<const Tangent> tangents) {
  const auto& [blocks, J, W, n, ld] = *matrices_;
  const int columns = blocks.whole().stride;
  factors_.matrix.resize(std::size_t(n) * ld), some_.resize(unknown_.size());
  for (int d = 0; d < n; ++d) {
    const double* along = J + std::size_t(d) * columns;
    each_bent(tangents, [&](const Tangent& G, int count, int row, int at) {
      for (int r = 0; r < count; ++r) {
        double sum = 0;
        for (int c = 0; c < count; ++c) sum += G.at[r][c] * along[row + c];
        some_[at + r] = sum;
      }
    });
    double* to = &factors_.matrix[std::size_t(d) * ld];
    sum_of_rows(unknown_, some_.data(), W, ld, to);
    to[d] += 1;
  }
}

void DenseRows::solve_dofs(std::span<const Tangent> tangents, std::span<const double> force) {
  const auto& [blocks, J, W, n, ld] = *matrices_;
  write_dofs(tangents);
  factors_.factor(n, ld);
  right_.resize(ld);
  sum_of_rows(std::span(all_).first(rows_), force.data(), W, ld, right_.data());
  factors_.solve(right_);
  sum_of_rows(std::span(all_).first(n), right_.data(), J, blocks.whole().stride, sum_.data());
  right_.resize(unknown_.size());
  for (std::size_t i = 0; i < unknown_.size(); ++i) right_[i] = sum_[unknown_[i]];
}

bool DenseRows::solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) {
  const auto [A, stride] = matrices_->blocks.whole();
  choose(tangents, force);
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
