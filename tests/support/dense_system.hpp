// The KKT system of constrained dynamics as dense matrices, made from crba, rnea and the rows' Jacobians alone.
#pragma once

#include <Eigen/Dense>

#include "support/random_model.hpp"
#include "tarsus/constraint/equality.hpp"

namespace tarsus::test {

/// [M̂ Jᵀ; J -Σ] [q̈; x₂] = [y₁; y₂].
struct DenseSystem {
  Eigen::MatrixXd M, J;
  Eigen::VectorXd sigma, y1, y2;

  int rows() const { return int(J.rows()); }
  /// J M̂⁻¹ Jᵀ + Σ, scaled to a unit diagonal.
  Eigen::MatrixXd scaled() const;
  /// Of scaled(); 1e300: singular.
  double condition() const;
  Eigen::VectorXd solve() const;
  /// max |M̂ q̈ + Jᵀ x₂ - y₁| over the largest term in it.
  double force_residual(const Eigen::VectorXd& a, const Eigen::VectorXd& x2) const;
  /// max |J q̈ - Σ x₂ - y₂| over the largest term in it, that of the unconstrained q̈ included.
  double row_residual(const Eigen::VectorXd& a, const Eigen::VectorXd& x2) const;
};

/// What SPOOK pulls an open row back by [m/s | rad/s]: without compliance all rows of one unit, a constraint's or a
/// weld's three, by 10 at most.
double pull_back(const Equality& equality, int row, std::span<const double> phi, double dt);

/// dt > 0: SPOOK's rows over that step; else exact ones, with drift_time > 0 pulled back (constrained_dynamics.hpp).
/// @param K joint_inertia
DenseSystem dense_system(const Model& model, const EqualitySet& set, const State& s, std::span<const double> K,
                         double dt, double drift_time);

}  // namespace tarsus::test
