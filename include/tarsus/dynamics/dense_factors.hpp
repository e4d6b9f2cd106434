// A small dense matrix and its factors, columns as vectors, in kernels for each instruction set.
#pragma once

#include <span>
#include <vector>

#include "tarsus/base/aligned.hpp"

namespace tarsus {

/// A = P⁻¹ L U; rows are exchanged only where a pivot is below a hundredth of what stands under it. What is zero is
/// skipped.
class DenseFactors {
 public:
  /// To be written before factor(), which takes it: columns of `size` numbers, padded with zeros to `leading`, a
  /// multiple of eight.
  AlignedVector<double> matrix;

  void factor(int size, int leading);
  /// x = A⁻¹ x  @param x [leading], zero from `size` on
  void solve(std::span<double> x) const;
  /// X = A⁻¹ X with `columns` right sides, a multiple of eight. @param X [size][columns], row by row
  void solve(std::span<double> X, int columns) const;

 private:
  int size_ = 0, leading_ = 0;
  AlignedVector<double> L_, inverse_;  ///< by columns; of U's diagonal, which is not in `matrix`
  std::vector<int> pivot_;
};

/// B, of which B_ik = at[i row_step + k step].
struct StridedMatrix {
  const double* at;
  int row_step, step;
};
/// X, of which X_k = at[places[k] leading ...], without places at[k leading ...].
struct MatrixRows {
  const double* at;
  int leading;
  const int* places = nullptr;
};

/// B X of `inner` rows of X, so many columns, a multiple of eight.
/// @param out [rows][leading]
void multiply(int rows, int inner, const StridedMatrix& B, const MatrixRows& X, int columns, double* out, int leading);

}  // namespace tarsus
