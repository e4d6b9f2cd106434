// Dense linear algebra for tests of several folders. Eigen's decompositions take seconds to compile; they are compiled
// once here.
#pragma once

#include <Eigen/Dense>

namespace tarsus::test {

/// A⁻¹ B by Cholesky's method; NaN where A is not positive definite.
Eigen::MatrixXd spd_solve(const Eigen::MatrixXd& A, const Eigen::MatrixXd& B);
/// A⁻¹ B by LU with full pivoting; the part that can be solved where A is singular.
Eigen::MatrixXd lu_solve(const Eigen::MatrixXd& A, const Eigen::MatrixXd& B);
/// The eigenvalues of a symmetric matrix, in ascending order.
Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& A);

}  // namespace tarsus::test
