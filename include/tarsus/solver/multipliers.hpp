// (Λ⁻¹ + Σ) x = b for the multipliers of constraint rows, when rows may depend on one another.
//
// Rows are scaled to a unit diagonal, or those of one unit alike, a Cholesky factor with pivoting, B Bᵀ = Λ⁻¹, finds
// the rank r, and x is the least-squares solution of least norm, B (BᵀB)⁻² Bᵀ b, refined on its own residual. Redundant
// but consistent rows are then all satisfied and the force that they share is split evenly; inconsistent ones are
// violated least in the scaled norm. Nothing grows without bound. The quick path of the callers is an LDLᵀ without
// pivoting; this is where they go when it meets a pivot that is nothing.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

namespace tarsus {

struct MultiplierReport {
  int rank = 0;
  std::vector<int>
      dependent;         ///< rows that follow from the others, ascending; which of a set is named follows the pivots
  double violation = 0;  ///< max |b - A x| / max(|b|, 1) over rows that the others contradict; rounding if none do
  int iterations = 0;    ///< refinements
  bool finite = true;    ///< false: a number in A or b is not; x is then zero
};

/// A pivot below this part of its row's diagonal counts as nothing: a linkage within about 3e-6 rad of a singular
/// posture is singular. R: what the matrix was computed in.
template <class R>
inline constexpr R kDependent = sizeof(R) == 8 ? R(1e-11) : R(1e-5);

/// A row whose diagonal is below this part of the largest is one that nothing can move (the normal of a planar
/// linkage's plane): what it has is the square of a rounding, and must not be taken for a constraint. Such rows count
/// as dependent.
template <class R>
inline constexpr R kZeroRow = sizeof(R) == 8 ? R(1e-18) : R(1e-12);

/// What a pivot is compared with: its row's diagonal before elimination, or what rounding in the row's entries makes of
/// it where that is more, √(diagonal × largest) × ε: the normal of a plane that a linkage leaves by 1e-6 rad.
template <class R>
inline constexpr R kPivotShare = 64 * std::numeric_limits<R>::epsilon() / kDependent<R>;
template <class R>
R pivot_scale(R diagonal, R largest) {
  return std::max(diagonal, kPivotShare<R> * std::sqrt(diagonal * largest));
}

/// A: [m][ld], the upper triangle row by row, Σ included, computed in R. O(m² r).
/// @param size [m] what each row is scaled by instead of its diagonal, at least that
template <class R = double>
MultiplierReport solve_multipliers(int m, int ld, const double* A, std::span<const double> b, std::span<double> x,
                                   std::span<const double> size = {});

}  // namespace tarsus
