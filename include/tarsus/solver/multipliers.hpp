// Multipliers of constraint rows that may be linearly dependent: (Λ⁻¹ + Σ) x = b.
//
// Rows are scaled to a unit diagonal; rows of one unit may share a scale. A Cholesky factorisation with pivoting, B Bᵀ
// = Λ⁻¹, finds the rank r. x = B (BᵀB)⁻² Bᵀ b is the least-squares solution of least norm, refined on its residual.
// Redundant but consistent rows all hold and share their force evenly. Inconsistent rows have the least violation in
// the scaled norm. x stays bounded in both cases. Callers first try LDLᵀ without pivoting, and call this function if
// they meet a zero pivot.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace tarsus {

struct MultiplierReport {
  int rank = 0;
  std::vector<int> dependent;  ///< rows that follow from the others, ascending; the pivots decide which of a set it is
  double violation = 0;        ///< max |b - A x| / max(|b|, 1) over rows that others contradict; rounding if none do
  int iterations = 0;          ///< of the refinement
  bool finite = true;          ///< false: a number in A or b is not finite; x is then zero
};

/// A pivot below this share of its row's diagonal counts as zero. A linkage within about 3e-6 rad of a singular posture
/// is singular. R: type in which the matrix was computed.
template <class R>
inline constexpr R kDependent = sizeof(R) == 8 ? R(1e-11) : R(1e-5);

/// A row whose diagonal is below this share of the largest one counts as dependent. Its entry is the square of a
/// rounding error, because no motion changes the row (for instance the normal of a planar linkage's plane).
template <class R>
inline constexpr R kZeroRow = sizeof(R) == 8 ? R(1e-18) : R(1e-12);

/// Scale of a pivot: the row's diagonal before elimination, or the rounding error of the row's entries
/// √(diagonal × largest) × ε if that is larger, as for the normal of a plane that a linkage leaves by 1e-6 rad.
template <class R>
inline constexpr R kPivotShare = 64 * std::numeric_limits<R>::epsilon() / kDependent<R>;
template <class R>
R pivot_scale(R diagonal, R largest) {
  return std::max(diagonal, kPivotShare<R> * std::sqrt(diagonal * largest));
}

/// Solves A x = b, A = Λ⁻¹ + Σ, in O(m² r).
/// @param A [m][ld], the upper triangle row by row, computed in R  @param b [m]  @param x out: [m]
/// @param size [m] lower bounds of the scales of the rows, which are otherwise their diagonals
template <class R = double>
MultiplierReport solve_multipliers(int m, int ld, const double* A, std::span<const double> b, std::span<double> x,
                                   std::span<const double> size = {});

}  // namespace tarsus
