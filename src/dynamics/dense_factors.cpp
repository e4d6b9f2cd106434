#include "tarsus/dynamics/dense_factors.hpp"

#include "dynamics/kernel_table.hpp"

namespace tarsus {

void DenseFactors::factor(int size, int leading) {
  size_ = size, leading_ = leading;
  L_.resize(matrix.size()), inverse_.resize(std::size_t(size)), pivot_.resize(std::size_t(size));
  kernel_table<double>(1).dense_factor(size, leading, matrix.data(), L_.data(), inverse_.data(), pivot_.data());
}

void DenseFactors::solve(std::span<double> x) const {
  kernel_table<double>(1).dense_solve(size_, leading_, matrix.data(), L_.data(), inverse_.data(), pivot_.data(),
                                      x.data());
}

void DenseFactors::solve(std::span<double> X, int columns) const {
  kernel_table<double>(1).dense_solve_rows(size_, leading_, matrix.data(), L_.data(), inverse_.data(), pivot_.data(),
                                           columns, X.data());
}

void multiply(int rows, int inner, const StridedMatrix& B, const MatrixRows& X, int columns, double* out, int leading) {
  kernel_table<double>(1).dense_product(rows, inner, X.places, columns, B.at, B.row_step, B.step, X.at, X.leading, out,
                                        leading);
}

}  // namespace tarsus
