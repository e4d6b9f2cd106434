// The constraint matrix A = J₁ M^-1 J₀ᵀ: assembly, factorisation and solves for any mass operator.
//
// A diagonal mass gives a sparse matrix, in which rows couple if they share a coordinate with mass, and SparseLdu
// factors it. Any other operator, or `dense`, gives M^-1 J₀ᵀ column by column (one application a row) and a dense
// factor, O(m³).
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <span>
#include <vector>

#include "tarsus/math/sparse_ldu.hpp"
#include "tarsus/solver/problem.hpp"

namespace tarsus {

class Delassus {
 public:
  /// Symbolic phase, valid until called with other arguments. `mass` must outlive this object.
  /// @return false: the arguments are those of the last call, and nothing was done
  bool analyze(const RowPattern& pattern, const MassOperator& mass, bool dense);
  /// Sets J₀, the Jacobian whose transpose carries the multipliers.
  void set_base(std::span<const double> jacobian);
  /// Factors J₁ M^-1 J₀ᵀ.
  PivotReport factor(std::span<const double> jacobian) { return factor(jacobian, false); }
  /// Factors J₀ M^-1 J₀ᵀ, symmetric.
  PivotReport factor_symmetric() { return factor(base_, true); }
  /// Factors J₀ M^-1 J₀ᵀ and drops rows that depend on others; diagonal mass only.
  PivotReport factor_symmetric_dropping(double threshold);
  void solve(std::span<double> rhs) const;
  /// out = M^-1 J₀ᵀ multiplier, length nv.
  void displace(std::span<const double> multiplier, std::span<double> out) const;
  /// Diagonal element J₁ M^-1 J₀ᵀ of one row.
  double diagonal(int row, std::span<const double> gradient) const;
  /// out += M^-1 J₀ᵀ e_row amount.
  void displace_row(int row, double amount, std::span<double> out) const;

 private:
  struct Term {
    std::int64_t slot;
    int first, second;  // indices into J₁ and J₀
  };
  PivotReport factor(std::span<const double> jacobian, bool symmetric);
  void assemble(std::span<const double> jacobian, bool symmetric);

  const MassOperator* mass_ = nullptr;
  RowPattern pattern_;
  bool dense_ = false, symmetric_ = false;
  std::vector<double> base_;      // J₀
  std::vector<double> weighted_;  // J₀ times the inverse mass of its column (diagonal mass)
  SparseLdu sparse_;
  std::vector<Term> terms_;
  Eigen::MatrixXd columns_;  // M^-1 J₀ᵀ (other masses)
  Eigen::PartialPivLU<Eigen::MatrixXd> lu_;
  Eigen::LDLT<Eigen::MatrixXd> ldlt_;
};

}  // namespace tarsus
