// Nonlinear equality rows σ_k(x) = 0 as the solvers see them: values and gradients, without the model.
//
// x is a configuration of nx() numbers. Velocities and rows live in the tangent space of nv() numbers. For particles
// both are 3 N coordinates and retract() is addition. For an articulated loop x = qpos and retract() is q ⊞ dv.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tarsus/solver/mass_operator.hpp"

namespace tarsus {

/// The tangent coordinates that each row depends on, by rows (CSR). The pattern is constant.
struct RowPattern {
  std::vector<int> start{0};  ///< [nrow + 1]
  std::vector<int> column;    ///< [start.back()]

  int nrow() const { return static_cast<int>(start.size()) - 1; }
  int nonzeros() const { return static_cast<int>(column.size()); }
};

class Problem {
 public:
  virtual ~Problem() = default;
  virtual int nx() const = 0;
  virtual int nv() const = 0;
  virtual const RowPattern& pattern() const = 0;
  int nrow() const { return pattern().nrow(); }

  /// One row: returns σ_k(x), and writes its gradient at the row's columns of the pattern unless `gradient` is empty.
  virtual double evaluate_row(int row, std::span<const double> x, std::span<double> gradient) const = 0;
  /// All rows: sigma [nrow], jacobian [pattern().nonzeros()] or empty.
  virtual void evaluate(std::span<const double> x, std::span<double> sigma, std::span<double> jacobian) const;
  /// The divisor that makes |σ_k| dimensionless: d² for σ = (r² - d²)/2.
  virtual double scale(int row) const = 0;
  /// The smallest |σ_k|/scale that the rounding of x permits.
  virtual double rounding_floor(int row, std::span<const double> x) const = 0;
  /// Name of the row for messages: "distance 12 (particles 3, 4)".
  virtual std::string describe(int row) const = 0;
  /// Curvature of σ_k: the largest |eigenvalue| of its Hessian, 0 if unknown. With the multiplier it bounds ω_max.
  virtual double curvature(int row) const = 0;
  /// out = x ⊞ dv. `x` and `out` may be the same.
  virtual void retract(std::span<const double> x, std::span<const double> dv, std::span<double> out) const;
};

/// max_k |σ_k(x)|/scale_k and its row; NaN counts as infinite.
struct Violation {
  double value = 0.0;
  int row = -1;  ///< -1: all violations are 0
};
/// @param sigma [nrow] of evaluate()
Violation largest_violation(const Problem& problem, std::span<const double> sigma);
Violation largest_violation_at(const Problem& problem, std::span<const double> x);

}  // namespace tarsus
