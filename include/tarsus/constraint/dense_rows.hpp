// The operator of a step's solve on the rows of some terms alone. With W = M̂⁻¹ Jᵀ, A = J W and y = g - G J x it solves
//
//     (1 + A G) J x = A g     for the rows with a tangent, if they are at most as many as the DoFs; else
//     (1 + W G J) x = W g
//
// The impulses of rows without a tangent are known.
#pragma once

#include <optional>

#include "tarsus/dynamics/dense_factors.hpp"
#include "tarsus/solver/step_newton.hpp"

namespace tarsus {

class DenseRows final : public StepOperator {
 public:
  /// Matrices of the rows of a model with `dofs` DoFs. They must outlive this object.
  struct Matrices {
    RowBlocks& blocks;  ///< A, one block of all rows
    const double* J;    ///< [row][dofs, padded to eight with zeros]
    const double* Jt;   ///< [dof][column], columns as in A
    const double* W;    ///< as Jt
    int dofs;
  };
  /// @param counts [term] rows
  void begin(const Matrices& matrices, std::span<const int> counts);
  bool solve(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) override;
  bool solve_again(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change) override;
  bool takes_changes() const override { return true; }
  void move(double) override {}                                                       ///< the impulses determine x
  RowBlocks& row_blocks(std::span<const int>) override { return matrices_->blocks; }  ///< of all rows
  SweepKind sweeps() const override { return SweepKind::at_once; }
  void keep() override {}

 private:
  void choose(std::span<const Tangent> tangents);
  void factor(std::span<const Tangent> tangents);
  void solve_factored(std::span<const Tangent> tangents, std::span<const double> force, std::span<double> change);
  bool by_rows() const { return int(unknown_.size()) <= matrices_->dofs; }
  void solve_rows(std::span<const double> force);
  void solve_dofs(std::span<const double> force);
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
  AlignedVector<double> right_, x_, sum_;   ///< right_ becomes J x [unknown]
  std::vector<int> picked_;                 ///< rows of A_
  AlignedVector<double> A_;                 ///< of unknown rows [unknown][unknown, padded]
  AlignedVector<double> GJ_;                ///< [unknown][dofs, padded]
  AlignedVector<double> W_;                 ///< [row][dofs, padded], made when it is first needed
  bool turned_ = false, factored_ = false;  ///< factored_: of the last solve's tangents
  std::vector<double> impulse_;
};

}  // namespace tarsus
