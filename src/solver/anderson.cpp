#include "tarsus/solver/anderson.hpp"

#include <algorithm>
#include <cmath>

namespace tarsus {

namespace {

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void AndersonMixing::next(std::span<double> x, std::span<const double> gx) {
  const std::size_t n = x.size();
  std::vector<double> f(n);
  for (std::size_t i = 0; i < n; ++i) f[i] = gx[i] - x[i];
  if (count_ > 0) {
    const int slot = (count_ - 1) % kMemory;
    dx_[slot].resize(n), df_[slot].resize(n);
    for (std::size_t i = 0; i < n; ++i) dx_[slot][i] = x[i] - last_x_[i], df_[slot][i] = f[i] - last_f_[i];
  }
  const int m = std::min(count_, kMemory);
  last_x_.assign(x.begin(), x.end()), last_f_ = f;
  ++count_;

  // min |f - ΔF γ|: normal equations, at most 4 x 4, damped so that parallel differences do no harm.
  double A[kMemory][kMemory], gamma[kMemory];
  double trace = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j <= i; ++j) A[i][j] = A[j][i] = dot(df_[i], df_[j]);
    gamma[i] = dot(df_[i], f);
    trace += A[i][i];
  }
  for (int i = 0; i < m; ++i) A[i][i] += 1e-12 * trace;
  for (int i = 0; i < m && trace > 0; ++i) {
    for (int k = i + 1; k < m; ++k) {
      const double l = A[k][i] / A[i][i];
      for (int j = i; j < m; ++j) A[k][j] -= l * A[i][j];
      gamma[k] -= l * gamma[i];
    }
  }
  for (int i = m - 1; i >= 0 && trace > 0; --i) {
    for (int j = i + 1; j < m; ++j) gamma[i] -= A[i][j] * gamma[j];
    gamma[i] /= A[i][i];
  }
  for (std::size_t i = 0; i < n; ++i) x[i] = gx[i];
  for (int k = 0; k < m && trace > 0; ++k) {
    if (!std::isfinite(gamma[k])) continue;
    for (std::size_t i = 0; i < n; ++i) x[i] -= gamma[k] * (dx_[k][i] + df_[k][i]);
  }
}

}  // namespace tarsus
