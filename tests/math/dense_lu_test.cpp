#include "math/dense_lu.hpp"

#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <random>

namespace tarsus {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

TEST(DenseLu, SolvesWhatEigenSolves) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  for (int n : {0, 1, 2, 5, 16, 17, 40, 100}) {
    Matrix A = Matrix::NullaryExpr(n, n, [&] { return normal(random); });
    if (n > 1) A(0, 0) = 0;  // needs an exchange
    const Eigen::VectorXd x = Eigen::VectorXd::NullaryExpr(n, [&] { return normal(random); });
    Eigen::VectorXd b = A * x;
    Matrix factors = A;
    std::vector<int> pivot(n);
    EXPECT_TRUE(factor_lu({factors.data(), std::size_t(n * n)}, pivot));
    solve_lu({factors.data(), std::size_t(n * n)}, pivot, {b.data(), std::size_t(n)});
    if (n == 0) continue;
    const double conditioned = A.norm() * A.inverse().norm();
    EXPECT_LT((b - x).norm(), 1e-15 * n * conditioned * x.norm()) << n;
  }
}

TEST(DenseLu, SaysThatAMatrixIsSingular) {
  std::vector<double> matrix = {1, 2, 3, 2, 4, 6, 1, 0, 1};
  std::vector<int> pivot(3);
  EXPECT_FALSE(factor_lu(matrix, pivot));
  matrix = {1, 0, 0, std::numeric_limits<double>::quiet_NaN()};
  pivot.resize(2);
  EXPECT_FALSE(factor_lu(matrix, pivot));
}

}  // namespace
}  // namespace tarsus
