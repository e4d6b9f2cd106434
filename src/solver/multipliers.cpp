// Rank-revealing multipliers of dependent constraint rows (multipliers.hpp): pivoted Cholesky of rank r, O(m² r), and
// refinement.
#include "tarsus/solver/multipliers.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

namespace tarsus {

namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// Outer-product Cholesky with complete pivoting, until the pivots fall below `least`; `order` lists the rows taken.
/// Returns B [m][r].
Matrix pivoted_cholesky(const Matrix& A, const Vector& least, std::vector<int>& order) {
  const int m = int(A.rows());
  Matrix B(m, std::min(m, 8));  // grows with the rank, which may be far below m
  Vector rest = A.diagonal();
  std::vector<char> taken(m, 0);
  for (int k = 0; k < m; ++k) {
    int best = -1;
    for (int i = 0; i < m; ++i) {
      if (!taken[i] && rest[i] > least[i] && (best < 0 || rest[i] > rest[best])) best = i;
    }
    if (best < 0) break;
    taken[best] = 1;
    order.push_back(best);
    Vector column = A.col(best);
    column.noalias() -= B.leftCols(k) * B.row(best).head(k).transpose();
    column /= std::sqrt(rest[best]);
    for (int i = 0; i < m; ++i) {
      if (taken[i] && i != best) column[i] = 0;
    }
    if (k == B.cols()) B.conservativeResize(m, std::min(m, 2 * k));
    B.col(k) = column;
    rest -= column.cwiseAbs2();
  }
  return B.leftCols(order.size());
}

}  // namespace

template <class R>
MultiplierReport solve_multipliers(int m, int ld, const double* A, std::span<const double> b, std::span<double> x,
                                   std::span<const double> size) {
  constexpr int kIterations = 20;
  MultiplierReport report;
  std::fill(x.begin(), x.end(), 0.0);
  Matrix S(m, m);
  Vector rhs(m), scale(m);
  for (int i = 0; i < m; ++i) {
    for (int j = i; j < m; ++j) S(i, j) = S(j, i) = A[std::size_t(i) * ld + j];
    rhs[i] = b[i];
  }
  const double largest = m > 0 ? S.diagonal().maxCoeff() : 0, dead = double(kZeroRow<R>) * largest;
  Vector least(m);
  for (int i = 0; i < m; ++i) {
    scale[i] = S(i, i) > dead ? 1 / std::sqrt(size.empty() ? S(i, i) : size[i]) : 0;
    if (!std::isfinite(scale[i])) scale[i] = 0;
    least[i] = double(kDependent<R>) * double(pivot_scale(R(S(i, i)), R(largest))) * scale[i] * scale[i];
  }
  report.finite = S.allFinite() && rhs.allFinite();
  if (!report.finite) return report;
  S = scale.asDiagonal() * S * scale.asDiagonal();
  const Vector target = scale.cwiseProduct(rhs);
  std::vector<int> order;
  const Matrix B = pivoted_cholesky(S, least, order);
  report.rank = int(order.size());
  std::sort(order.begin(), order.end());
  for (int i = 0; i < m; ++i) {
    if (!std::binary_search(order.begin(), order.end(), i)) report.dependent.push_back(i);
  }
  Vector z = Vector::Zero(m);
  if (report.rank > 0) {
    const Eigen::LDLT<Matrix> gram(B.transpose() * B);
    double last = 1e300;
    for (; report.iterations < kIterations; ++report.iterations) {
      const Vector inside = B.transpose() * (target - S * z);  // residual in the range of A
      const double now = inside.cwiseAbs().maxCoeff();
      if (!(now < 0.5 * last)) break;
      last = now;
      z += B * gram.solve(gram.solve(inside));
    }
  }
  const Vector left = rhs - (S * z).cwiseQuotient(scale.unaryExpr([](double s) { return s > 0 ? s : 1.0; }));
  report.violation = m > 0 ? left.cwiseAbs().maxCoeff() / std::max(1.0, rhs.cwiseAbs().maxCoeff()) : 0;
  for (int i = 0; i < m; ++i) x[i] = scale[i] * z[i];
  return report;
}

template MultiplierReport solve_multipliers<double>(int, int, const double*, std::span<const double>, std::span<double>,
                                                    std::span<const double>);
template MultiplierReport solve_multipliers<float>(int, int, const double*, std::span<const double>, std::span<double>,
                                                   std::span<const double>);

}  // namespace tarsus
