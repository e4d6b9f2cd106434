// A small dense matrix and its LU factors, stored by columns, with kernels for each instruction set.
#pragma once

#include <span>
#include <vector>

#include "tarsus/base/aligned.hpp"

namespace tarsus {

/// A = P⁻¹ L U. Rows are exchanged only if the pivot is below a hundredth of an entry under it. Zeros are skipped.
class DenseFactors {
 public:
  /// Written by the caller before factor(), which overwrites it: columns of `size` numbers, padded with zeros to
  /// `leading`, a multiple of eight.
  AlignedVector<double> matrix;

  void factor(int size, int leading);
  /// x = A⁻¹ x  @param x [leading], zero from `size` on
  void solve(std::span<double> x) const;
  /// X = A⁻¹ X for `columns` right sides, a multiple of eight. @param X [size][columns], row-major
  void solve(std::span<double> X, int columns) const;

 private:
  int size_ = 0, leading_ = 0;
  AlignedVector<double> L_, inverse_;  ///< columns of L; inverse of U's diagonal, which `matrix` does not store
  std::vector<int> pivot_;
};

/// A matrix B with elements B_ik = at[i row_step + k step].
struct StridedMatrix {
  const double* at;
  int row_step, step;
};
/// A matrix X with rows X_k = at[places[k] leading ...], or at[k leading ...] without places.
struct MatrixRows {
  const double* at;
  int leading;
  const int* places = nullptr;
};

/// out = B X. X has `inner` rows and `columns` columns, a multiple of eight.
/// @param out [rows][leading]
void multiply(int rows, int inner, const StridedMatrix& B, const MatrixRows& X, int columns, double* out, int leading);

}  // namespace tarsus
