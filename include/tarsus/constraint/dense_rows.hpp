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

class DenseRows final : public StepOperator {
 public:
  /// Of rows of a model with so many DoFs. Must live as long as this is used.
  struct Matrices {
    RowBlocks& blocks;  ///< A, one block of all
    const double* J;    ///< [row][dofs, padded to eight with zeros]
    const double* Jt;   ///< [dof][column], columns as A's
    const double* W;    ///< so too
    int dofs;
  };
  /// @param counts [term] rows
  void begin(const Matrices& matrices, std::span<const int> counts);
  bool solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) override;
  bool takes_changes() const override { return true; }
  void move(double) override {}  ///< impulses say all
  RowBlocks& row_blocks([[maybe_unused]] std::span<const int> terms) override { return matrices_->blocks; }  ///< of all
  SweepKind sweeps() const override { return SweepKind::at_once; }
  void keep() override {}

 private:
  void choose(std::span<const Tangent> tangents);
  void solve_rows(std::span<const Tangent> tangents, std::span<const double> force);
  void solve_dofs(std::span<const Tangent> tangents, std::span<const double> force);
  void write_rows(std::span<const Tangent> tangents);
  void write_dofs(std::span<const Tangent> tangents);
  void turn_W();
  void multiply_rows(const double* y, const double* X, int leading, double* sum) const;
  template <class F>
  void each_bent(std::span<const Tangent> tangents, const F& f) const;

  std::optional<Matrices> matrices_;
  std::vector<int> counts_;
  int rows_ = 0;
  std::vector<int> unknown_;  ///< rows with a tangent
  DenseFactors factors_;
  AlignedVector<double> right_, x_, sum_;  ///< right: in the end J x [unknown]
  std::vector<int> picked_;                ///< rows of A_
  AlignedVector<double> A_;                ///< of unknown rows alone [unknown][unknown, padded]
  AlignedVector<double> GJ_;               ///< [unknown][dofs, padded]
  AlignedVector<double> W_;                ///< [row][dofs, padded], once it is asked for
  bool turned_ = false;
  std::vector<double> impulse_;
};

}  // namespace tarsus
