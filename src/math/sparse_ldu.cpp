#include "tarsus/math/sparse_ldu.hpp"

#include <Eigen/OrderingMethods>
#include <Eigen/SparseCore>
#include <algorithm>
#include <cassert>
#include <cmath>

#include "tarsus/base/error.hpp"

namespace tarsus {

// Maximum cardinality search: the reverse of the visiting order is a perfect elimination order if one exists.
bool SparseLdu::order_perfectly(std::span<const int> start, std::span<const int> column) {
  std::vector<int> weight(n_, 0), visit(n_, -1);
  std::vector<std::vector<int>> bucket(1);  // by weight; entries with an outdated weight are skipped
  for (int i = n_ - 1; i >= 0; --i) bucket[0].push_back(i);
  order_.assign(n_, 0);
  int top = 0;
  for (int count = 0; count < n_;) {
    while (bucket[top].empty()) --top;
    const int i = bucket[top].back();
    bucket[top].pop_back();
    if (visit[i] >= 0 || weight[i] != top) continue;
    visit[i] = count;
    order_[n_ - 1 - count++] = i;
    for (int p = start[i]; p < start[i + 1]; ++p) {
      const int j = column[p];
      if (j == i || visit[j] >= 0) continue;
      const int grown = ++weight[j];
      if (grown >= static_cast<int>(bucket.size())) bucket.resize(grown + 1);
      bucket[grown].push_back(j);
      top = std::max(top, grown);
    }
  }
  // Perfect: for each vertex, the earlier-visited neighbours except the latest are all neighbours of that latest one.
  std::vector<int> mark(n_, -1);
  for (int i = 0; i < n_; ++i) {
    int latest = -1;
    for (int p = start[i]; p < start[i + 1]; ++p) {
      const int j = column[p];
      if (visit[j] < visit[i] && (latest < 0 || visit[j] > visit[latest])) latest = j;
    }
    if (latest < 0) continue;
    for (int p = start[latest]; p < start[latest + 1]; ++p) mark[column[p]] = i;
    for (int p = start[i]; p < start[i + 1]; ++p) {
      const int j = column[p];
      if (visit[j] < visit[i] && j != latest && mark[j] != i) return false;
    }
  }
  return true;
}

void SparseLdu::order_by_minimum_degree(std::span<const int> start, std::span<const int> column) {
  Eigen::SparseMatrix<double> pattern(n_, n_);
  std::vector<Eigen::Triplet<double>> entries;
  entries.reserve(column.size() + n_);
  for (int i = 0; i < n_; ++i) {
    entries.emplace_back(i, i, 1.0);
    for (int p = start[i]; p < start[i + 1]; ++p) entries.emplace_back(i, column[p], 1.0);
  }
  pattern.setFromTriplets(entries.begin(), entries.end());
  Eigen::AMDOrdering<int>::PermutationType permutation;
  Eigen::AMDOrdering<int>{}(pattern, permutation);  // permutation maps new -> old
  order_.assign(permutation.indices().data(), permutation.indices().data() + n_);
}

void SparseLdu::analyze(int n, std::span<const int> start, std::span<const int> column, std::span<const int> order) {
  check_size("start", start.size(), static_cast<std::size_t>(n) + 1);
  n_ = n;
  if (order.empty()) {
    if (!order_perfectly(start, column)) order_by_minimum_degree(start, column);
  } else {
    check_size("order", order.size(), n);
    order_.assign(order.begin(), order.end());
  }
  place_.assign(n, -1);
  for (int k = 0; k < n; ++k) place_[order_[k]] = k;
  // Later neighbours of pivot k: its own, and those of the pivots whose first later neighbour is k.
  std::vector<std::vector<int>> later(n), children(n);
  std::vector<int> mark(n, -1);
  for (int k = 0; k < n; ++k) {
    std::vector<int>& mine = later[k];
    mark[k] = k;
    const auto add = [&](int place) {
      if (place > k && mark[place] != k) mark[place] = k, mine.push_back(place);
    };
    for (int p = start[order_[k]]; p < start[order_[k] + 1]; ++p) add(place_[column[p]]);
    for (const int child : children[k]) {
      for (const int place : later[child]) add(place);
    }
    std::sort(mine.begin(), mine.end());
    if (!mine.empty()) children[mine.front()].push_back(k);
  }
  begin_.assign(1, 0);
  index_.clear();
  for (const auto& mine : later) {
    index_.insert(index_.end(), mine.begin(), mine.end());
    begin_.push_back(static_cast<std::int64_t>(index_.size()));
  }
  values_.assign(n + 2 * index_.size(), 0.0);
  inverse_.assign(n, 0.0);
  where_.assign(n, -1);
  work_.assign(n, 0.0);
}

std::int64_t SparseLdu::slot(int i, int j) const {
  const int a = place_[i], b = place_[j];
  if (a == b) return a;
  const int first = std::min(a, b), second = std::max(a, b);
  const auto from = index_.begin() + begin_[first], to = index_.begin() + begin_[first + 1];
  const auto found = std::lower_bound(from, to, second);
  assert(found != to && *found == second);
  const std::int64_t offset = found - index_.begin();
  return n_ + offset + (a < b ? 0 : fill());
}

void SparseLdu::clear() { std::fill(values_.begin(), values_.end(), 0.0); }

template <bool kSymmetric>
PivotReport SparseLdu::eliminate(double threshold) {
  symmetric_ = kSymmetric;
  PivotReport report;
  double* const diagonal = values_.data();
  double* const upper = values_.data() + n_;
  double* const lower = kSymmetric ? upper : upper + fill();
  std::copy(diagonal, diagonal + n_, work_.begin());  // A_kk, for comparison with the pivots
  for (int k = 0; k < n_; ++k) {
    const double ratio = std::abs(diagonal[k]) / std::abs(work_[k]);
    if (!(ratio > 0 && ratio >= threshold)) {
      report.dependent.push_back(order_[k]);
      inverse_[k] = 0;
    } else {
      inverse_[k] = 1.0 / diagonal[k];
    }
    // Written so that NaN counts as the worst.
    if (!(ratio >= report.ratio)) report.ratio = std::isnan(ratio) ? 0.0 : ratio, report.worst = order_[k];
    const std::int64_t from = begin_[k], to = begin_[k + 1];
    for (std::int64_t a = from; a < to; ++a) {
      const int row = index_[a];
      const double l = lower[a] * inverse_[k], u = upper[a] * inverse_[k];
      diagonal[row] -= l * upper[a];
      if (a + 1 == to) break;
      for (std::int64_t p = begin_[row]; p < begin_[row + 1]; ++p) where_[index_[p]] = p;
      for (std::int64_t b = a + 1; b < to; ++b) {
        const std::int64_t target = where_[index_[b]];
        upper[target] -= l * upper[b];
        if constexpr (!kSymmetric) lower[target] -= lower[b] * u;
      }
    }
  }
  std::sort(report.dependent.begin(), report.dependent.end());
  return report;
}

PivotReport SparseLdu::factor() { return eliminate<false>(0.0); }
PivotReport SparseLdu::factor_symmetric() { return eliminate<true>(0.0); }
PivotReport SparseLdu::factor_symmetric_dropping(double threshold) { return eliminate<true>(threshold); }

void SparseLdu::solve(std::span<double> b) const {
  const double* const upper = values_.data() + n_;
  const double* const lower = symmetric_ ? upper : upper + fill();
  for (int k = 0; k < n_; ++k) work_[k] = b[order_[k]];
  for (int k = 0; k < n_; ++k) {
    const double y = work_[k] * inverse_[k];
    for (std::int64_t p = begin_[k]; p < begin_[k + 1]; ++p) work_[index_[p]] -= lower[p] * y;
  }
  for (int k = n_ - 1; k >= 0; --k) {
    double sum = work_[k];
    for (std::int64_t p = begin_[k]; p < begin_[k + 1]; ++p) sum -= upper[p] * work_[index_[p]];
    work_[k] = sum * inverse_[k];
    b[order_[k]] = work_[k];
  }
}

}  // namespace tarsus
