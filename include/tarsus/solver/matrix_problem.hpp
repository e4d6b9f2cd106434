// Rows whose Delassus matrix is written out, for systems of up to a few hundred rows: a character's contacts, limits
// and loops. Forming A = J M̂⁻¹ Jᵀ costs O(m² d) once; a sweep then costs m² multiplications in vectors, whatever the
// tree is, so that one can afford to converge.  Blocks, cones and the meaning of a solution are those of
// row_problem.hpp.
#pragma once

#include "tarsus/base/aligned.hpp"
#include "tarsus/solver/row_solver.hpp"

namespace tarsus {

/// find λ:  r = (A + Σ) λ + c,  λ = P(λ - r/d)
class MatrixProblem {
 public:
  /// Empties the rows, keeps their storage.
  void clear();
  /// Opens a block; the rows added next belong to it. Arguments as RowProblem::add_block.
  int add_block(RowCone cone, int reference = -1, double coefficient = 0, std::uint64_t identity = 0);
  int add_row(const RowNumbers& numbers);

  /// Room for the matrix of the rows added so far. @param ld numbers from row to row, at least nrow
  /// @return A [nrow][ld] for the caller to fill, the upper triangle
  double* matrix(int ld);
  int ld() const { return ld_; }
  /// J v without any multiplier, [nrow], for the caller to fill.
  std::span<double> velocity() { return velocity_; }
  /// After matrix() and velocity() were filled: the lower triangle, Σ and b take their places.
  void finish();
  /// Takes A λ out of a velocity that had the effect of these multipliers in it; after finish().
  void exclude(std::span<const double> multiplier);

  int nrow() const { return int(numbers_.size()); }
  std::span<const RowBlock> blocks() const { return blocks_; }
  const RowNumbers& numbers(int row) const { return numbers_[row]; }
  const double* row(int i) const { return &matrix_[std::size_t(i) * ld_]; }  ///< of A + Σ, after finish()
  double constant(int row) const { return velocity_[row]; }                  ///< c = J v - b, after finish()

 private:
  int ld_ = 0;
  std::vector<RowNumbers> numbers_;
  std::vector<RowBlock> blocks_;
  AlignedVector<double> matrix_, velocity_;
};

/// Projected Gauss-Seidel that keeps all residuals up to date. Keeps its scratch; not for use by two threads at once.
class MatrixGaussSeidel {
 public:
  /// @param multiplier [nrow] in: where to start; out: the solution. Uses max_iterations, tolerance, relaxation, order
  ///        (forward and symmetric) and record_history of the options.
  RowSolveReport solve(const MatrixProblem& problem, std::span<double> multiplier, const RowSolveOptions& options);
  /// Natural residual max |λ - P(λ - r/d)| d for given r [nrow], with the d of the last solve.
  double residual(const MatrixProblem& problem, std::span<const double> multiplier, std::span<const double> r) const;

 private:
  void prepare(const MatrixProblem& problem, std::span<const double> multiplier);
  double relax(const MatrixProblem& problem, const RowBlock& block, double relaxation, std::span<double> multiplier);
  void change(const MatrixProblem& problem, int row, double by);

  AlignedVector<double> residual_;
  std::vector<double> steps_;  // d
};

}  // namespace tarsus
