// Direct factorisation of a sparse matrix with a known symmetric pattern: A = (L D^-1 + 1) D (1 + D^-1 U).
//
// The values may be unsymmetric (Newton's constraint matrix J(x) M^-1 J(x0)ᵀ) or symmetric (the velocity stage's J M^-1
// Jᵀ, at half the work). The elimination order is fixed once. If the graph has a perfect order, that one is used (leaf
// to root on chains and trees: no fill, O(n) time; found by maximum cardinality search), otherwise minimum degree
// (rings, cages, nets). There is no pivoting: both matrices are positive definite or nearly so, and the pivots show
// when they are not.
// [Davis 2006, ch. 4; Tarjan and Yannakakis 1984]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tarsus {

/// Summary of the pivots. `ratio` is min |d_k| / |A_kk|: near 0 the row depends on the rows eliminated before it.
struct PivotReport {
  double ratio = 1.0;
  int worst = -1;              ///< the row (caller's numbering) with the smallest ratio
  std::vector<int> dependent;  ///< rows dropped by factor_symmetric_dropping, ascending
};

class SparseLdu {
 public:
  /// Symbolic phase. `start` [n + 1] and `column` hold a symmetric pattern by rows, with or without the diagonal.
  /// `order` [n] is the elimination order (order[0] is first); empty: chosen as above.
  void analyze(int n, std::span<const int> start, std::span<const int> column, std::span<const int> order = {});

  int size() const { return n_; }
  /// Number of entries in one triangle of the factor, fill included.
  std::int64_t fill() const { return static_cast<std::int64_t>(index_.size()); }
  /// Index of A(i, j) in values(), for assembly; (i, j) must be in the pattern or in its fill.
  std::int64_t slot(int i, int j) const;
  std::span<double> values() { return values_; }
  void clear();  ///< zeroes the values before assembly

  /// Replaces the values by their factor. Unsymmetric values.
  PivotReport factor();
  /// The same where A is symmetric: only the diagonal and upper slots are read (slot(i, j) with i before j in the
  /// order).
  PivotReport factor_symmetric();
  /// As factor_symmetric, but drops a row whose pivot is below `threshold` |A_kk|: its solution is 0.
  PivotReport factor_symmetric_dropping(double threshold);
  /// b becomes A^-1 b.
  void solve(std::span<double> b) const;

 private:
  template <bool kSymmetric>
  PivotReport eliminate(double threshold);
  bool order_perfectly(std::span<const int> start, std::span<const int> column);
  void order_by_minimum_degree(std::span<const int> start, std::span<const int> column);

  int n_ = 0;
  bool symmetric_ = false;
  std::vector<int> order_, place_;    // place_[order_[k]] = k
  std::vector<std::int64_t> begin_;   // [n + 1] pivot k's later neighbours are index_[begin_[k] .. begin_[k + 1])
  std::vector<int> index_;            // places, ascending within a pivot
  std::vector<double> values_;        // diagonal [n], upper rows [fill], lower columns [fill]
  std::vector<double> inverse_;       // [n] 1 / pivot
  std::vector<std::int64_t> where_;   // [n] scratch: place -> slot in the row being updated
  mutable std::vector<double> work_;  // [n]
};

}  // namespace tarsus
