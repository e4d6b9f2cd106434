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
  /// Condition number of scaled(); 1e300 where it is singular.
  double condition() const;
  Eigen::VectorXd solve() const;
  /// max |M̂ q̈ + Jᵀ x₂ - y₁| over the largest term in it.
  double force_residual(const Eigen::VectorXd& a, const Eigen::VectorXd& x2) const;
  /// max |J q̈ - Σ x₂ - y₂| over the largest term in it, including that of the unconstrained q̈.
  double row_residual(const Eigen::VectorXd& a, const Eigen::VectorXd& x2) const;
};

/// The violation of a row that SPOOK corrects in a step, as a velocity [m/s | rad/s]. Without compliance the rows of
/// one unit, all of a constraint or three of a weld, have a correction of 10 m/s at most, a weld's angles of 20 rad/s.
double pull_back(const Equality& equality, int row, std::span<const double> phi, double dt);

/// The system of SPOOK's rows over the step dt where dt > 0, otherwise of exact rows, which are stabilised with
/// drift_time if that is positive (constrained_dynamics.hpp).
/// @param K joint_inertia @param ahead [rows] share of ½ h J̇ q̇ by which SPOOK's rates are ahead in time; empty: none
DenseSystem dense_system(const Model& model, const EqualitySet& set, const State& s, std::span<const double> K,
                         double dt, double drift_time, std::span<const double> ahead = {});

}  // namespace tarsus::test
