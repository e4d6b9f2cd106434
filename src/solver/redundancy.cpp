// Redundant constraint rows (redundancy.hpp): a sparse factorisation selects components with small pivots, and a
// pivoted Cholesky factorisation of these decides.
#include "tarsus/solver/redundancy.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "solver/delassus.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/base/union_find.hpp"

namespace tarsus {
namespace {

// Pivots are relative to their diagonal. A pivot that should be zero becomes 1e-16 times the growth of the elimination,
// which may be large without pivoting. Small ones are therefore tested again with pivoting, where it is not.
constexpr double kSuspicious = 1e-6;
constexpr double kRedundant = 1e-10;
// The earliest row among those with nearly the largest pivot is taken, so that the rows named are those a person would
// leave out.
constexpr double kGoodEnough = 0.05;
constexpr std::size_t kDenseLimit = 1500;  // rows of one component; for larger ones the sparse result stands

// Components of rows that are connected through coordinates with mass.
std::vector<int> components(const RowPattern& pattern, std::span<const double> inverse) {
  UnionFind sets(pattern.nrow());
  std::vector<int> root(pattern.nrow()), owner(inverse.size(), -1);
  for (int k = 0; k < pattern.nrow(); ++k) {
    for (int p = pattern.start[k]; p < pattern.start[k + 1]; ++p) {
      const int c = pattern.column[p];
      if (inverse[c] == 0) continue;
      if (owner[c] < 0) owner[c] = k;
      sets.join(k, owner[c]);
    }
  }
  for (int k = 0; k < pattern.nrow(); ++k) root[k] = sets.find(k);
  return root;
}

// Gram matrix of the rows in the inverse mass, scaled to a diagonal of 1.
Eigen::MatrixXd scaled_gram(const RowPattern& pattern, std::span<const double> jacobian,
                            std::span<const double> inverse, const std::vector<int>& rows) {
  const auto m = static_cast<Eigen::Index>(rows.size());
  std::map<int, std::vector<std::pair<Eigen::Index, double>>> by_column;
  for (Eigen::Index a = 0; a < m; ++a) {
    for (int p = pattern.start[rows[a]]; p < pattern.start[rows[a] + 1]; ++p)
      by_column[pattern.column[p]].emplace_back(a, jacobian[p] * std::sqrt(inverse[pattern.column[p]]));
  }
  Eigen::MatrixXd gram = Eigen::MatrixXd::Zero(m, m);
  for (const auto& [column, entries] : by_column) {
    for (const auto& [a, x] : entries) {
      for (const auto& [b, y] : entries) gram(a, b) += x * y;
    }
  }
  Eigen::VectorXd scale(m);
  for (Eigen::Index a = 0; a < m; ++a) scale[a] = gram(a, a) > 0 ? 1 / std::sqrt(gram(a, a)) : 0;
  return scale.asDiagonal() * gram * scale.asDiagonal();
}

// Pivoted Cholesky; appends the dependent rows.
void dense_verdict(Eigen::MatrixXd gram, const std::vector<int>& rows, std::vector<int>& dependent) {
  const Eigen::Index m = gram.rows();
  std::vector<char> taken(m, 0);
  for (Eigen::Index count = 0; count < m; ++count) {
    double largest = 0;
    for (Eigen::Index a = 0; a < m; ++a) largest = taken[a] ? largest : std::max(largest, gram(a, a));
    if (largest < kRedundant) break;
    Eigen::Index pivot = 0;
    while (taken[pivot] || gram(pivot, pivot) < kGoodEnough * largest) ++pivot;
    taken[pivot] = 1;
    const Eigen::VectorXd column = gram.col(pivot) / std::sqrt(gram(pivot, pivot));
    for (Eigen::Index b = 0; b < m; ++b) {
      if (!taken[b] && column[b] != 0) gram.col(b) -= column * column[b];
    }
  }
  for (Eigen::Index a = 0; a < m; ++a) {
    if (!taken[a]) dependent.push_back(rows[a]);
  }
}

std::vector<int> dependent_rows(const Problem& problem, const MassOperator& mass, std::span<const double> x) {
  const RowPattern& pattern = problem.pattern();
  std::vector<double> sigma(problem.nrow()), jacobian(pattern.nonzeros());
  problem.evaluate(x, sigma, jacobian);
  Delassus delassus;
  delassus.analyze(pattern, mass, false);
  delassus.set_base(jacobian);
  const PivotReport sparse = delassus.factor_symmetric_dropping(kSuspicious);
  if (sparse.dependent.empty()) return {};
  const std::vector<int> component = components(pattern, mass.inverse_diagonal());
  std::map<int, std::vector<int>> suspicious;
  for (const int row : sparse.dependent) suspicious[component[row]];
  for (int k = 0; k < problem.nrow(); ++k) {
    if (const auto it = suspicious.find(component[k]); it != suspicious.end()) it->second.push_back(k);
  }
  std::vector<int> dependent;
  for (const auto& [root, rows] : suspicious) {
    if (rows.size() <= kDenseLimit) {
      dense_verdict(scaled_gram(pattern, jacobian, mass.inverse_diagonal(), rows), rows, dependent);
    } else {
      for (const int row : sparse.dependent) {
        if (component[row] == root) dependent.push_back(row);
      }
    }
  }
  std::sort(dependent.begin(), dependent.end());
  return dependent;
}

}  // namespace

Redundancy find_redundant_rows(const Problem& problem, const MassOperator& mass, std::span<const double> x,
                               double spread) {
  if (mass.inverse_diagonal().empty()) throw ValueError("mass", "not diagonal", "a diagonal mass operator");
  Redundancy found;
  found.dependent = dependent_rows(problem, mass, x);
  found.rank = problem.nrow() - static_cast<int>(found.dependent.size());
  if (found.dependent.empty()) return found;
  std::mt19937_64 generator(20240229);
  std::vector<double> moved(x.begin(), x.end()), step(problem.nv());
  for (double& value : step) value = spread * (static_cast<double>(generator() >> 11) * 0x1p-52 - 1.0);
  problem.retract(x, step, moved);
  found.singular_geometry = dependent_rows(problem, mass, moved).size() < found.dependent.size();
  return found;
}

}  // namespace tarsus
