// The dense form of a RowProblem: r = A λ + q with A = W D⁻¹ Wᵀ + Σ, q = W D⁻¹ u - b.
#pragma once

#include <Eigen/Cholesky>

#include "tarsus/baselines/row_problem.hpp"

namespace tarsus {

struct DenseRowProblem {
  Eigen::MatrixXd a;
  Eigen::VectorXd q;

  /// O(nrow² · entries of a row).
  DenseRowProblem(const RowProblem& problem, std::span<const double> u) {
    const int m = problem.nrow();
    a.resize(m, m);
    q.resize(m);
    for (int i = 0; i < m; ++i) {
      q[i] = problem.residual(i, u, 0);
      for (int j = 0; j <= i; ++j) a(i, j) = a(j, i) = problem.delassus(i, j);
    }
  }
};

}  // namespace tarsus
