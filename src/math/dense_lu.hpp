// Small dense systems by Gaussian elimination with partial pivoting [Golub and Van Loan 2013, algorithm 3.4.1].
//
// It exists for bit reproducibility: every element receives its updates column after column, as a product and a
// difference each, the same on every machine. Eigen eliminates more than 16 unknowns in blocks, whose products are
// fused on Arm.
#pragma once

#include <span>

namespace tarsus {

/// A = P⁻¹ L U in place.
/// @param matrix [n][n], row-major @param pivot [n]: the row that was exchanged with each
/// @return whether all pivots are non-zero and finite
bool factor_lu(std::span<double> matrix, std::span<int> pivot);
/// x = A⁻¹ x with the factors of factor_lu().
void solve_lu(std::span<const double> matrix, std::span<const int> pivot, std::span<double> x);
/// X = A⁻¹ X for many right sides, with the same bits for each. @param X [n][columns], row-major
void solve_lu(std::span<const double> matrix, std::span<const int> pivot, std::span<double> X, int columns);

}  // namespace tarsus
