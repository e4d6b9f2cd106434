#include "math/dense_lu.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <random>

namespace tarsus {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

void expect_solved(const Matrix& A, std::mt19937_64& random, std::normal_distribution<double>& normal) {
  const auto n = std::size_t(A.rows());
  const Eigen::VectorXd x = Eigen::VectorXd::NullaryExpr(A.rows(), [&] { return normal(random); });
  Eigen::VectorXd b = A * x;
  Matrix factors = A;
  std::vector<int> pivot(n);
  EXPECT_TRUE(factor_lu({factors.data(), n * n}, pivot));
  Matrix many = Matrix::NullaryExpr(A.rows(), 3, [&] { return normal(random); });
  if (n > 0) many.col(1) = b;
  solve_lu({factors.data(), n * n}, pivot, {b.data(), n});
  if (n == 0) return;
  solve_lu({factors.data(), n * n}, pivot, {many.data(), 3 * n}, 3);
  EXPECT_EQ(many.col(1), b) << n;
  EXPECT_LT((b - x).norm(), 1e-15 * double(n) * A.norm() * A.inverse().norm() * x.norm()) << n;
}

TEST(DenseLu, SolvesWhatEigenSolves) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (int n : {0, 1, 2, 5, 16, 17, 40, 100}) {
    Matrix A = Matrix::NullaryExpr(n, n, [&] { return normal(random); });
    if (n > 1) A(0, 0) = 0;  // needs an exchange
    expect_solved(A, random, normal);
  }
}

// Diagonal blocks, an arrow or a band: entries outside are skipped, with exchanges and fill taken into account.
TEST(DenseLu, SolvesWhereMostIsZero) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  for (int n : {47, 48, 60, 150}) {
    for (int kind = 0; kind < 3; ++kind) {
      Matrix A = Matrix::Zero(n, n);
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
          const bool here = kind == 0   ? i / 7 == j / 7
                            : kind == 1 ? i == j || i > n - 4 || j > n - 4
                                        : std::abs(i - j) < 9;
          if (here) A(i, j) = normal(random);
        }
      }
      for (int i = 0; i + 1 < n; i += 3) A.row(i).swap(A.row(i + 1));
      SCOPED_TRACE(kind);
      expect_solved(A, random, normal);
    }
  }
}

TEST(DenseLu, SaysThatAMatrixIsSingular) {
  std::vector<double> matrix = {1, 2, 3, 2, 4, 6, 1, 0, 1};
  std::vector<int> pivot(3);
  EXPECT_FALSE(factor_lu(matrix, pivot));
  matrix.assign(60 * 60, 0.0);  // no row reaches the last column
  for (int i = 0; i < 59; ++i) matrix[61 * i] = 1 + i;
  pivot.resize(60);
  EXPECT_FALSE(factor_lu(matrix, pivot));
  matrix = {1, 0, 0, std::numeric_limits<double>::quiet_NaN()};
  pivot.resize(2);
  EXPECT_FALSE(factor_lu(matrix, pivot));
}

}  // namespace
}  // namespace tarsus
