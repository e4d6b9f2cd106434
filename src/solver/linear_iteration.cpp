#include "tarsus/solver/linear_iteration.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "tarsus/base/error.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {

namespace {

/// Σ_j a_ij x_j of one row, and the diagonal.
struct RowSum {
  double sum = 0, diagonal = 0;
};

RowSum row_sum(const SquareMatrix& a, int i, std::span<const double> x) {
  RowSum r;
  if (a.start.empty()) {
    const double* row = a.value.data() + at(i) * at(a.n);
    for (int j = 0; j < a.n; ++j) r.sum += row[j] * x[at(j)];
    r.diagonal = row[i];
    return r;
  }
  for (int k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k) {
    r.sum += a.value[at(k)] * x[at(a.column[at(k)])];
    if (a.column[at(k)] == i) r.diagonal += a.value[at(k)];
  }
  return r;
}

double residual_norm(const SquareMatrix& a, std::span<const double> b, std::span<const double> x) {
  double sum = 0;
  for (int i = 0; i < a.n; ++i) {
    const double r = row_sum(a, i, x).sum - b[at(i)];
    sum += r * r;
  }
  return std::sqrt(sum);
}

double mean_gain(const std::vector<double>& history) {
  const std::size_t last = history.size() - 1, used = std::min<std::size_t>(last, 10);
  if (used == 0 || !(history[last] > 0) || !(history[last - used] > 0)) return 0;
  return elementary::pow(history[last] / history[last - used], 1.0 / static_cast<double>(used));
}

}  // namespace

const char* name(LinearIterationStatus status) {
  switch (status) {
    case LinearIterationStatus::converged: return "converged";
    case LinearIterationStatus::too_many_iterations: return "too many iterations";
    case LinearIterationStatus::zero_diagonal: return "zero on the diagonal";
    case LinearIterationStatus::not_finite: return "not finite";
  }
  return "unknown";
}

SquareMatrix SquareMatrix::dense(int n, std::vector<double> value) {
  if (n < 0) throw ValueError("n", std::to_string(n), "not negative");
  check_size("value", value.size(), at(n) * at(n));
  return {n, {}, {}, std::move(value)};
}

SquareMatrix SquareMatrix::sparse(std::vector<int> start, std::vector<int> column, std::vector<double> value) {
  if (start.empty() || start.front() != 0) throw ValueError("start", "its first entry", "0");
  const int n = static_cast<int>(start.size()) - 1;
  for (int i = 0; i < n; ++i) {
    if (start[at(i) + 1] < start[at(i)]) throw ValueError("start", std::to_string(start[at(i) + 1]), "not to fall");
  }
  check_size("column", column.size(), at(start.back()));
  check_size("value", value.size(), column.size());
  for (int c : column) {
    if (c < 0 || c >= n) throw ValueError("column", std::to_string(c), "0 to " + std::to_string(n - 1));
  }
  return {n, std::move(start), std::move(column), std::move(value)};
}

LinearIterationReport gauss_seidel(const SquareMatrix& a, std::span<const double> b, std::span<double> x,
                                   const LinearIterationOptions& options) {
  check_size("b", b.size(), at(a.n));
  check_size("x", x.size(), at(a.n));
  if (options.max_iterations < 1)
    throw ValueError("max_iterations", std::to_string(options.max_iterations), "at least 1");
  if (!(options.relaxation > 0 && options.relaxation < 2)) {
    throw ValueError("relaxation", number_text(options.relaxation), "above 0, below 2");
  }
  LinearIterationReport report;
  report.residual = residual_norm(a, b, x);
  report.history.push_back(report.residual);
  if (!std::isfinite(report.residual)) return report.status = LinearIterationStatus::not_finite, report;
  double scale = 0;
  for (double value : b) scale += value * value;
  const double goal = options.tolerance * (scale > 0 ? std::sqrt(scale) : 1);
  for (int i = 0; i < a.n; ++i) {
    if (row_sum(a, i, x).diagonal == 0) {
      return report.zero_row = i, report.status = LinearIterationStatus::zero_diagonal, report;
    }
  }
  std::vector<double> next(x.begin(), x.end());
  while (report.residual > goal && report.iterations < options.max_iterations) {
    const bool back = options.symmetric && report.iterations % 2 == 1;
    for (int k = 0; k < a.n; ++k) {
      const int i = back ? a.n - 1 - k : k;
      const RowSum row = row_sum(a, i, next);
      next[at(i)] -= options.relaxation * (row.sum - b[at(i)]) / row.diagonal;
    }
    ++report.iterations;
    const double residual = residual_norm(a, b, next);
    report.history.push_back(residual);
    if (!std::isfinite(residual)) break;  // diverged beyond numbers; x keeps the last finite iterate
    report.residual = residual;
    std::copy(next.begin(), next.end(), x.begin());
  }
  report.gain = mean_gain(report.history);
  report.status =
      report.residual <= goal ? LinearIterationStatus::converged : LinearIterationStatus::too_many_iterations;
  return report;
}

}  // namespace tarsus
