// Small dense systems by Gaussian elimination with partial pivoting [Golub and Van Loan 2013, algorithm 3.4.1].
//
// Our own for its bits: every element takes its updates column after column, a product and a difference each, the same
// on every machine. Eigen eliminates more than 16 unknowns by blocks, whose products are fused on Arm.
#pragma once

#include <span>

namespace tarsus {

/// A = P⁻¹ L U in place.
/// @param matrix [n][n], row major @param pivot [n]: the row that was exchanged with each
/// @return no pivot is zero or not finite
bool factor_lu(std::span<double> matrix, std::span<int> pivot);
/// x = A⁻¹ x with what factor_lu() left.
void solve_lu(std::span<const double> matrix, std::span<const int> pivot, std::span<double> x);
/// X = A⁻¹ X of many right sides: the same bits for each. @param X [n][columns], row major
void solve_lu(std::span<const double> matrix, std::span<const int> pivot, std::span<double> X, int columns);

}  // namespace tarsus
