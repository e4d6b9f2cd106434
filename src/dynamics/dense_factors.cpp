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

void sum_of_rows(std::span<const int> places, const double* y, const double* X, int columns, double* sum) {
  kernel_table<double>(1).dense_row(int(places.size()), places.data(), y, columns, X, sum);
}

}  // namespace tarsus
