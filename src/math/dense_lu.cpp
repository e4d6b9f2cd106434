#include "math/dense_lu.hpp"

#include <algorithm>
#include <cmath>

namespace tarsus {

bool factor_lu(std::span<double> matrix, std::span<int> pivot) {
  const int n = int(pivot.size());
  const auto row = [&](int i) { return matrix.data() + std::size_t(i) * n; };
  bool good = true;
  for (int k = 0; k < n; ++k) {
    int best = k;
    for (int i = k + 1; i < n; ++i) {
      if (std::abs(row(i)[k]) > std::abs(row(best)[k])) best = i;
    }
    pivot[k] = best;
    if (best != k) std::swap_ranges(row(k), row(k) + n, row(best));
    const double* const upper = row(k);
    good &= std::isfinite(upper[k]) && upper[k] != 0;
    for (int i = k + 1; i < n; ++i) {
      double* const lower = row(i);
      if (lower[k] == 0) continue;
      const double factor = lower[k] /= upper[k];
      for (int j = k + 1; j < n; ++j) lower[j] -= factor * upper[j];
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

}  // namespace tarsus
