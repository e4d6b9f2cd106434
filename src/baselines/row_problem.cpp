// Rows of a mixed linear complementarity problem (row_problem.hpp): storage, projections and the natural residual.
#include "tarsus/baselines/row_problem.hpp"

#include <algorithm>
#include <cmath>
#include <string>

#include "tarsus/base/error.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/math/elementary.hpp"

namespace tarsus {

RowProblem::RowProblem(std::vector<double> inverse_mass) : inverse_mass_(std::move(inverse_mass)) {}

void RowProblem::clear(std::span<const double> inverse_mass) {
  inverse_mass_.assign(inverse_mass.begin(), inverse_mass.end());
  rows_.start.assign(1, 0);
  rows_.column.clear(), effect_.clear(), velocity_.clear(), numbers_.clear(), blocks_.clear();
}

void RowProblem::add_block(RowCone cone, int reference, double coefficient) {
  blocks_.push_back({nrow(), 0, cone, reference, coefficient});
}

int RowProblem::add_row(std::span<const int> columns, std::span<const double> values, const RowNumbers& numbers) {
  check_size("values", values.size(), columns.size());
  if (blocks_.empty()) throw ValueError("row", "0", "an add_block() before the first row");
  for (std::size_t k = 0; k < columns.size(); ++k) {
    if (columns[k] < 0 || columns[k] >= nu()) {
      throw ValueError("column of row " + std::to_string(nrow()), std::to_string(columns[k]),
                       "the index of a coordinate, 0 to " + std::to_string(nu() - 1));
    }
    rows_.column.push_back(columns[k]);
    effect_.push_back(values[k]);
    velocity_.push_back(values[k] * inverse_mass_[at(columns[k])]);
  }
  rows_.start.push_back(int(rows_.column.size()));
  numbers_.push_back(numbers);
  ++blocks_.back().count;
  return nrow() - 1;
}

double RowProblem::residual(int row, std::span<const double> u, double multiplier) const {
  const auto column = columns(row);
  const auto v = velocity(row);
  const RowNumbers& n = numbers(row);
  double r = n.compliance * multiplier - n.target;
  for (std::size_t k = 0; k < v.size(); ++k) r += v[k] * u[at(column[k])];
  return r;
}

void RowProblem::apply(int row, double change, std::span<double> u) const {
  const auto column = columns(row);
  const auto w = effect(row);
  for (std::size_t k = 0; k < w.size(); ++k) u[at(column[k])] += w[k] * change;
}

double RowProblem::delassus(int i, int j) const {
  const auto ci = columns(i), cj = columns(j);
  const auto wi = effect(i), vj = velocity(j);
  double sum = i == j ? numbers(i).compliance : 0;
  for (std::size_t a = 0; a < ci.size(); ++a) {
    for (std::size_t b = 0; b < cj.size(); ++b) {
      if (ci[a] == cj[b]) sum += wi[a] * vj[b];
    }
  }
  return sum;
}

void RowProblem::steps(const RowBlock& block, std::span<double> steps) const {
  const int n = block.count;
  if (block.cone != RowCone::ball || n == 1) {
    for (int i = 0; i < n; ++i) steps[at(i)] = delassus(block.first + i, block.first + i);
    return;
  }
  double common = 0;
  if (n == 2) {
    const double a = delassus(block.first, block.first), c = delassus(block.first + 1, block.first + 1);
    common = 0.5 * (a + c) + elementary::hypot(0.5 * (a - c), delassus(block.first, block.first + 1));
  } else {  // Gershgorin's bound
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      for (int j = 0; j < n; ++j) sum += std::abs(delassus(block.first + i, block.first + j));
      common = std::max(common, sum);
    }
  }
  std::fill_n(steps.begin(), n, common);
}

void RowProblem::project(const RowBlock& block, std::span<double> multiplier) const {
  const std::span<double> own = multiplier.subspan(at(block.first), at(block.count));
  if (block.cone == RowCone::interval) {
    for (int i = 0; i < block.count; ++i) {
      const RowNumbers& n = numbers(block.first + i);
      double& x = own[at(i)];
      x = std::min(std::max(x, n.lower), n.upper);
    }
    return;
  }
  const double radius = block.coefficient * std::max(0.0, multiplier[at(block.reference)]);
  if (block.cone == RowCone::box) {
    for (double& x : own) x = std::min(std::max(x, -radius), radius);
    return;
  }
  double square = 0;
  for (double x : own) square += x * x;
  if (square <= radius * radius) return;
  const double scale = radius / std::sqrt(square);
  for (double& x : own) x *= scale;
}

double natural_residual(const RowProblem& problem, std::span<const double> u, std::span<const double> multiplier) {
  std::vector<double> moved(multiplier.begin(), multiplier.end()), steps;
  double worst = 0;
  for (const RowBlock& block : problem.blocks()) {
    const auto n = at(block.count), first = at(block.first);
    steps.resize(n);
    problem.steps(block, steps);
    for (std::size_t i = 0; i < n; ++i) {
      const double r = problem.residual(block.first + int(i), u, multiplier[first + i]);
      if (!std::isfinite(r)) return std::numeric_limits<double>::infinity();
      moved[first + i] = steps[i] > 0 ? multiplier[first + i] - r / steps[i] : 0;
    }
    problem.project(block, moved);
    for (std::size_t i = 0; i < n; ++i) {
      worst = std::max(worst, std::abs(multiplier[first + i] - moved[first + i]) * steps[i]);
      moved[first + i] = multiplier[first + i];  // later blocks refer to λ, not to its projection
    }
  }
  return worst;
}

}  // namespace tarsus
