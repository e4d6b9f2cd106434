// The plain linear Gauss-Seidel iteration for A x = b, as a lesson and as a measure of gains.  [Lacoursière 2013,
// section 1]
//
//   (L + D) Δx = -r,   r = A x - b,   x ← x + Δx          eq. 3 and 4; signs as in eq. 5 (eq. 6 to 8 of the print lack
//   one)
#pragma once

#include <span>
#include <vector>

namespace tarsus {

/// A square matrix by rows: every entry, or the non-zero ones (CSR).
struct SquareMatrix {
  int n = 0;
  std::vector<int> start, column;  ///< empty for a dense matrix
  std::vector<double> value;       ///< dense: [n * n] by rows

  /// @throws ShapeError
  static SquareMatrix dense(int n, std::vector<double> value);
  /// @throws ShapeError, ValueError for columns out of range
  static SquareMatrix sparse(std::vector<int> start, std::vector<int> column, std::vector<double> value);
};

struct LinearIterationOptions {
  int max_iterations = 100;  ///< at least 1
  double tolerance = 0;      ///< on ‖r‖₂/‖b‖₂ (‖r‖₂ where b = 0)
  double relaxation = 1;     ///< in (0, 2); 1 is Gauss-Seidel
  bool symmetric = false;    ///< rows forwards and backwards in turns
};

enum class LinearIterationStatus { converged, too_many_iterations, zero_diagonal, not_finite };
const char* name(LinearIterationStatus status);

struct LinearIterationReport {
  LinearIterationStatus status = LinearIterationStatus::converged;
  int iterations = 0;
  double residual = 0;          ///< ‖r‖₂ reached
  std::vector<double> history;  ///< ‖r‖₂ before the first sweep and after each
  /// Geometric mean of the last ratios of residuals, at most ten of them: an estimate of the largest gain, the spectral
  /// radius of 1 - (L + D)⁻¹ A. 0 if unknown.
  double gain = 0;
  int zero_row = -1;  ///< for zero_diagonal
};

/// @param x [n] in: the start; out: the last iterate (unchanged if not_finite or zero_diagonal)
/// @throws ShapeError, ValueError
LinearIterationReport gauss_seidel(const SquareMatrix& a, std::span<const double> b, std::span<double> x,
                                   const LinearIterationOptions& options = {});

}  // namespace tarsus
