#include <algorithm>
#include <cmath>

#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/elementary.hpp"
#include "tarsus/solver/matrix_problem.hpp"

namespace tarsus {

void MatrixProblem::clear() {
  numbers_.clear();
  blocks_.clear();
}

int MatrixProblem::add_block(RowCone cone, int reference, double coefficient, std::uint64_t identity) {
  blocks_.push_back({nrow(), 0, cone, reference, coefficient, identity});
  return int(blocks_.size()) - 1;
}

int MatrixProblem::add_row(const RowNumbers& numbers) {
  numbers_.push_back(numbers);
  ++blocks_.back().count;
  return nrow() - 1;
}

double* MatrixProblem::matrix(int ld) {
  ld_ = (std::max(ld, nrow()) + 7) / 8 * 8;
  matrix_.resize(std::size_t(nrow()) * ld_);
  velocity_.resize(ld_);
  return matrix_.data();
}

void MatrixProblem::finish() {
  const int n = nrow();
  for (int i = 0; i < n; ++i) {
    double* row = &matrix_[std::size_t(i) * ld_];
    for (int j = 0; j < i; ++j) row[j] = matrix_[std::size_t(j) * ld_ + i];
    for (int j = n; j < ld_; ++j) row[j] = 0;
    row[i] += numbers_[i].compliance;
    velocity_[i] -= numbers_[i].target;
  }
  for (int j = n; j < ld_; ++j) velocity_[j] = 0;
}

void MatrixProblem::exclude(std::span<const double> multiplier) {
  for (int i = 0; i < nrow(); ++i) {
    double sum = 0;
    for (int j = 0; j < nrow(); ++j) sum += row(i)[j] * multiplier[j];
    velocity_[i] -= sum - numbers_[i].compliance * multiplier[i];  // row() has Σ in it
  }
}

void MatrixGaussSeidel::change(const MatrixProblem& problem, int row, double by) {
  const double* __restrict a = problem.row(row);
  double* __restrict r = residual_.data();
  for (int j = 0; j < problem.ld(); ++j) r[j] += a[j] * by;
}

void MatrixGaussSeidel::prepare(const MatrixProblem& problem, std::span<const double> multiplier) {
  residual_.resize(problem.ld());
  steps_.resize(problem.nrow());
  for (int j = 0; j < problem.ld(); ++j) residual_[j] = j < problem.nrow() ? problem.constant(j) : 0;
  for (int i = 0; i < problem.nrow(); ++i) {
    if (multiplier[i] != 0) change(problem, i, multiplier[i]);
    steps_[i] = problem.row(i)[i];
  }
  for (const RowBlock& block : problem.blocks()) {  // a ball steps with one d, a bound of its block's eigenvalues
    if (block.cone != RowCone::ball) continue;
    double d = 0;
    if (block.count == 2) {
      const double a = problem.row(block.first)[block.first], b = problem.row(block.first + 1)[block.first + 1];
      const double c = problem.row(block.first + 1)[block.first];
      d = 0.5 * (a + b) + elementary::hypot(0.5 * (a - b), c);
    } else {
      for (int i = block.first; i < block.first + block.count; ++i) {
        double sum = 0;
        for (int j = block.first; j < block.first + block.count; ++j) sum += std::abs(problem.row(i)[j]);
        d = std::max(d, sum);
      }
    }
    std::fill_n(steps_.begin() + block.first, block.count, d);
  }
}

namespace {

/// P on one row.
double project(const MatrixProblem& problem, const RowBlock& block, int row, double z,
               std::span<const double> multiplier) {
  if (block.cone == RowCone::interval) return std::clamp(z, problem.numbers(row).lower, problem.numbers(row).upper);
  const double bound = block.coefficient * std::max(0.0, multiplier[block.reference]);
  return std::clamp(z, -bound, bound);
}

/// What a ball's step is scaled by: P(z) = scale z.
double ball_scale(const RowBlock& block, double square, std::span<const double> multiplier) {
  const double radius = block.coefficient * std::max(0.0, multiplier[block.reference]);
  return square > radius * radius ? radius / std::sqrt(square) : 1;
}

}  // namespace

double MatrixGaussSeidel::relax(const MatrixProblem& problem, const RowBlock& block, double relaxation,
                                std::span<double> multiplier) {
  double worst = 0;
  const auto put = [&](int i, double z) {
    const double by = z - multiplier[i];
    if (by == 0) return;
    change(problem, i, by);
    multiplier[i] = z;
    worst = std::max(worst, std::abs(by) * steps_[i]);
  };
  const auto step = [&](int i) { return steps_[i] > 0 ? multiplier[i] - relaxation * residual_[i] / steps_[i] : 0; };
  const int end = block.first + block.count;
  if (block.cone != RowCone::ball) {
    for (int i = block.first; i < end; ++i) put(i, project(problem, block, i, step(i), multiplier));
    return worst;
  }
  double z[8], square = 0;  // a contact has at most two tangents, a ball joint's friction three rows
  for (int i = block.first; i < end; ++i)
    z[i - block.first] = step(i), square += z[i - block.first] * z[i - block.first];
  const double scale = ball_scale(block, square, multiplier);
  for (int i = block.first; i < end; ++i) put(i, scale * z[i - block.first]);
  return worst;
}

double MatrixGaussSeidel::residual(const MatrixProblem& problem, std::span<const double> multiplier,
                                   std::span<const double> r) const {
  double worst = 0;
  for (const RowBlock& block : problem.blocks()) {
    const auto z = [&](int i) { return multiplier[i] - r[i] / steps_[i]; };
    double square = 0;
    if (block.cone == RowCone::ball) {
      for (int i = block.first; i < block.first + block.count; ++i) square += steps_[i] > 0 ? z(i) * z(i) : 0;
    }
    const double scale = block.cone == RowCone::ball ? ball_scale(block, square, multiplier) : 1;
    for (int i = block.first; i < block.first + block.count; ++i) {
      if (!(steps_[i] > 0)) continue;
      const double target = block.cone == RowCone::ball ? scale * z(i) : project(problem, block, i, z(i), multiplier);
      const double miss = std::abs(multiplier[i] - target) * steps_[i];
      worst = miss <= worst ? worst : miss;  // a NaN stays
    }
  }
  return worst;
}

RowSolveReport MatrixGaussSeidel::solve(const MatrixProblem& problem, std::span<double> multiplier,
                                        const RowSolveOptions& options) {
  check_size("multiplier", multiplier.size(), std::size_t(problem.nrow()));
  if (options.max_iterations < 1)
    throw ValueError("max_iterations", std::to_string(options.max_iterations), "at least 1");
  if (!(options.relaxation > 0 && options.relaxation < 2)) {
    throw ValueError("relaxation", number_text(options.relaxation), "above 0 and below 2");
  }
  RowSolveReport report;
  for (const RowBlock& block : problem.blocks()) {
    if (block.cone == RowCone::ball && block.count > 8) return report.status = RowSolveStatus::unsupported, report;
  }
  prepare(problem, multiplier);
  for (int i = 0; i < problem.nrow(); ++i) {
    if (!std::isfinite(residual_[i]) || !std::isfinite(steps_[i]))
      return report.status = RowSolveStatus::not_finite, report;
    report.idle_rows += steps_[i] > 0 ? 0 : 1;
  }
  report.status = RowSolveStatus::too_many_iterations;
  const std::span<const RowBlock> blocks = problem.blocks();
  double last_change = 0;
  for (int k = 0; k < options.max_iterations; ++k) {
    const bool back = options.order == SweepOrder::symmetric && k % 2 == 1;
    double change = 0;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      change =
          std::max(change, relax(problem, blocks[back ? blocks.size() - 1 - b : b], options.relaxation, multiplier));
    }
    ++report.iterations;
    if (options.record_history) report.history.push_back(change);
    report.gain = last_change > 0 ? change / last_change : 0;
    last_change = change;
    if (change <= options.tolerance && residual(problem, multiplier, residual_) <= options.tolerance) {
      report.status = RowSolveStatus::converged;
      break;
    }
  }
  report.residual = residual(problem, multiplier, residual_);
  return report;
}

}  // namespace tarsus
