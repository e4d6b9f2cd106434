// The operator of a step's solve by the rows of some terms alone. With W = M̂⁻¹ Jᵀ, A = J W and y = g - G J x:
//
//     (1 + A G) J x = A g     of the rows with a tangent, where they are no more than the DoFs; else
//     (1 + W G J) x = W g
//
// What rows without a tangent carry, or do not, is known.
#pragma once

#include <optional>

#include "tarsus/dynamics/dense_factors.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

/// Rows by their numbers along some DoFs.
struct SparseRows {
  struct Row {
    int first, count;  ///< of places and arms
  };
  std::vector<Row> rows;
  std::vector<int> places;
  std::vector<double> arms;

  std::span<const int> places_of(std::size_t row) const {
    return std::span(places).subspan(std::size_t(rows[row].first), std::size_t(rows[row].count));
  }
  const double* arms_of(std::size_t row) const { return arms.data() + rows[row].first; }
};

class DenseRows final : public StepOperator {
 public:
  /// Of rows of a model with so many DoFs. Must live as long as this is used.
  struct Matrices {
    RowBlocks& blocks;          ///< A, one block of all
    const SparseRows& J;        ///< along places of DoFs
    const double* W = nullptr;  ///< [place][column], columns as A's
    int dofs = 0;
  };
  /// @param counts [term] rows
  void begin(const Matrices& matrices, std::span<const int> counts);
  bool solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) override;
  bool takes_changes() const override { return true; }
  void move(double) override {}  ///< impulses say all
  RowBlocks& row_blocks([[maybe_unused]] std::span<const int> terms) override { return matrices_->blocks; }  ///< of all
  bool sweeps_are_cheap() const override { return true; }
  void keep() override {}

 private:
  void choose(std::span<const Tangent> tangents);
  void solve_rows(std::span<const Tangent> tangents, std::span<const double> force);
  void solve_dofs(std::span<const Tangent> tangents, std::span<const double> force);
  void write_rows(std::span<const Tangent> tangents);
  void write_dofs(std::span<const Tangent> tangents);
  void turn_W();
  template <class F>
  void each_bent(std::span<const Tangent> tangents, const F& f) const;

  std::optional<Matrices> matrices_;
  std::vector<int> counts_;
  int rows_ = 0;
  std::vector<int> unknown_, all_;  ///< rows with a tangent; 0, 1, 2 ...
  DenseFactors factors_;
  AlignedVector<double> right_, x_, sum_, GJ_;  ///< GJ: [dof][unknown]
  AlignedVector<double> W_;                     ///< [row][dofs, padded], once it is asked for
  bool turned_ = false;
  std::vector<double> impulse_;
};

}  // namespace tarsus
