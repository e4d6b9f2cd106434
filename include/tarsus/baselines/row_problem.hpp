// Mixed linear complementarity rows, stored one by one: contacts, limits and bilateral constraints as the solvers of
// row_solver.hpp see them.
//
// The mass enters through coordinates in which its inverse is diagonal:
//
//     v⁺ = v + M̂⁻¹ Jᵀ λ     with     M̂⁻¹ = L⁻ᵀ D⁻¹ L⁻¹,   W = J L⁻ᵀ (one row of numbers for each row),   u = L⁻¹ M̂ v
//     residual r = W D⁻¹ u + Σ λ - b,     u += Wᵀ Δλ
//
// Particles: L = 1. Free bodies: L rotates into the principal axes of inertia. Trees: L D Lᵀ is ABA's factorisation of
// M̂, and a row's W has entries only at the degrees of freedom on its paths to the root.
// [Lacoursière 2013, eq. 23 to 30]
//
// Rows come in blocks that are projected together:
//
//   interval   lower <= λ_i <= upper, each row by itself (none: ±infinity, contact normal: [0, infinity])
//   box        |λ_i| <= μ λ_ref, each row by itself                  [eq. 36]
//   ball       ‖λ‖ <= μ λ_ref over the block's rows: a disc for two tangents
//
// λ_ref is the current multiplier of another row. A solution satisfies λ = P(λ - r/d) for each block and every d > 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tarsus/solver/problem.hpp"

namespace tarsus {

enum class RowCone : std::uint8_t { interval, box, ball };

struct RowBlock {
  int first = 0;  ///< row
  int count = 1;  ///< rows
  RowCone cone = RowCone::interval;
  int reference = -1;      ///< row whose multiplier scales a box or ball
  double coefficient = 0;  ///< μ
};

/// Parameters of one row. Units: λ is an impulse (N s; N m s for torsional rows), b a velocity, Σ a velocity per
/// impulse.
struct RowNumbers {
  double compliance = 0;        ///< Σ >= 0
  double target = 0;            ///< b
  double lower = 0, upper = 0;  ///< interval blocks only
};

class RowProblem {
 public:
  /// @param inverse_mass [nu] D⁻¹ >= 0, finite
  explicit RowProblem(std::vector<double> inverse_mass = {});

  /// Removes the rows and keeps their storage.
  void clear(std::span<const double> inverse_mass);
  /// Opens a block, to which the next rows are added. @param reference, coefficient RowBlock's, for box and ball
  void add_block(RowCone cone, int reference = -1, double coefficient = 0);
  /// Adds a row to the last block: W's entries by coordinate. Rows of an interval block use lower and upper.
  /// @return its number  @throws ShapeError, ValueError for a column outside u, and before any block
  int add_row(std::span<const int> columns, std::span<const double> values, const RowNumbers& numbers);

  int nu() const { return static_cast<int>(inverse_mass_.size()); }
  int nrow() const { return rows_.nrow(); }
  std::span<const double> inverse_mass() const { return inverse_mass_; }
  std::span<const RowBlock> blocks() const { return blocks_; }
  std::span<const int> columns(int row) const { return cut(rows_.column, row); }
  std::span<const double> effect(int row) const { return cut(effect_, row); }      ///< W
  std::span<const double> velocity(int row) const { return cut(velocity_, row); }  ///< W D⁻¹
  const RowNumbers& numbers(int row) const { return numbers_[static_cast<std::size_t>(row)]; }

  /// r = W D⁻¹ u + Σ λ - b of one row.
  double residual(int row, std::span<const double> u, double multiplier) const;
  /// u += Wᵀ Δλ of one row.
  void apply(int row, double change, std::span<double> u) const;
  /// Σ_k W_ik D⁻¹_k W_jk, + Σ_i if i = j: an entry of the Delassus matrix. O(entries of both)
  double delassus(int i, int j) const;
  /// Divisors of the block's rows in a relaxation. Interval and box: the diagonal of each row, one number a row in
  /// `steps`. Ball: one d in all places, the block's largest eigenvalue (a bound of it for more than two rows).
  void steps(const RowBlock& block, std::span<double> steps) const;
  /// P: replaces the block's part of `multiplier` [nrow] by its projection.
  void project(const RowBlock& block, std::span<double> multiplier) const;

 private:
  template <class E>
  std::span<const E> cut(const std::vector<E>& all, int row) const {
    const auto from = static_cast<std::size_t>(rows_.start[static_cast<std::size_t>(row)]);
    const auto to = static_cast<std::size_t>(rows_.start[static_cast<std::size_t>(row) + 1]);
    return std::span<const E>(all).subspan(from, to - from);
  }

  std::vector<double> inverse_mass_;
  RowPattern rows_;
  std::vector<double> effect_, velocity_;
  std::vector<RowNumbers> numbers_;
  std::vector<RowBlock> blocks_;
};

/// max over rows of |λ - P(λ - r/d)| d, in units of velocity: zero at a solution and nowhere else. It needs no solver.
/// @param u [nu] with the effect of the multipliers  @param multiplier [nrow] λ
double natural_residual(const RowProblem& problem, std::span<const double> u, std::span<const double> multiplier);

}  // namespace tarsus
