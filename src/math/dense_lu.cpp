#include "math/dense_lu.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace tarsus {

bool factor_lu(std::span<double> matrix, std::span<int> pivot) {
  const int n = int(pivot.size());
  const auto row = [&](int i) { return matrix.data() + std::size_t(i) * n; };
  std::vector<int> end(n);  // row i is zero from end[i] on
  for (int i = 0; i < n; ++i) {
    end[i] = n;
    while (end[i] > 0 && row(i)[end[i] - 1] == 0) --end[i];
  }
  bool good = true;
  for (int k = 0; k < n; ++k) {
    int best = k;
    for (int i = k + 1; i < n; ++i) {
      if (std::abs(row(i)[k]) > std::abs(row(best)[k])) best = i;
    }
    pivot[k] = best;
    if (best != k) std::swap_ranges(row(k), row(k) + n, row(best)), std::swap(end[k], end[best]);
    const double* const upper = row(k);
    good &= std::isfinite(upper[k]) && upper[k] != 0;
    for (int i = k + 1; i < n; ++i) {
      double* const lower = row(i);
      if (lower[k] == 0) continue;
      const double factor = lower[k] /= upper[k];
      for (int j = k + 1; j < end[k]; ++j) lower[j] -= factor * upper[j];
      end[i] = std::max(end[i], end[k]);
    }
  }
  return good;
}

void solve_lu(std::span<const double> matrix, std::span<const int> pivot, std::span<double> x) {
  const int n = int(pivot.size());
  const auto row = [&](int i) { return matrix.data() + std::size_t(i) * n; };
  for (int k = 0; k < n; ++k) std::swap(x[k], x[pivot[k]]);
  for (int i = 1; i < n; ++i) {
    double sum = x[i];
    for (int j = 0; j < i; ++j) sum -= row(i)[j] * x[j];
    x[i] = sum;
  }
  for (int i = n - 1; i >= 0; --i) {
    double sum = x[i];
    for (int j = i + 1; j < n; ++j) sum -= row(i)[j] * x[j];
    x[i] = sum / row(i)[i];
  }
}

void solve_lu(std::span<const double> matrix, std::span<const int> pivot, std::span<double> X, int columns) {
  const int n = int(pivot.size());
  const auto right = [&](int i) { return X.data() + std::size_t(i) * columns; };
  const auto subtract = [&](int i, int j) {
    const double factor = matrix[std::size_t(i) * n + j], *const from = right(j);
    if (factor == 0) return;
    double* const to = right(i);
    for (int c = 0; c < columns; ++c) to[c] -= factor * from[c];
  };
  for (int k = 0; k < n; ++k) {
    if (pivot[k] != k) std::swap_ranges(right(k), right(k) + columns, right(pivot[k]));
  }
  for (int i = 1; i < n; ++i) {
    for (int j = 0; j < i; ++j) subtract(i, j);
  }
  for (int i = n - 1; i >= 0; --i) {
    for (int j = i + 1; j < n; ++j) subtract(i, j);
    for (int c = 0; c < columns; ++c) right(i)[c] /= matrix[std::size_t(i) * (n + 1)];
  }
}

}  // namespace tarsus
