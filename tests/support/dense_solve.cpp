#include "support/dense_solve.hpp"

#include <limits>

namespace tarsus::test {

Eigen::MatrixXd spd_solve(const Eigen::MatrixXd& A, const Eigen::MatrixXd& B) {
  const Eigen::LLT<Eigen::MatrixXd> factor(A);
  if (factor.info() == Eigen::Success) return factor.solve(B);
  return Eigen::MatrixXd::Constant(B.rows(), B.cols(), std::numeric_limits<double>::quiet_NaN());
}

Eigen::MatrixXd lu_solve(const Eigen::MatrixXd& A, const Eigen::MatrixXd& B) { return A.fullPivLu().solve(B); }

Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& A) {
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(A, Eigen::EigenvaluesOnly).eigenvalues();
}

}  // namespace tarsus::test
