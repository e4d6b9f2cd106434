// Projected Gauss-Seidel on the terms that act, in the space of their impulses:
//
//     y_k ← P(y_k - (u_k + R_k (y_k - c_k) - b_k)/ρ_k),   u += A_·k (change of y_k),   A = J M̂⁻¹ Jᵀ
//
// Rows that a law projects together change together (a contact's normal, then its friction), with ρ no less than what
// they feel of each other. Which contact opens, sticks or slips is a local question, which sweeps answer quickly; how
// large the impulses are they answer slowly. [Jourdan, Alart and Jean 1998; Gräser and Kornhuber 2009]
#pragma once

#include <span>
#include <vector>

#include "tarsus/solver/term.hpp"

namespace tarsus {

class StepOperator;
struct StepProblem;

class Sweeps {
 public:
  /// A new step: nothing is known of its mass.
  void begin(const StepProblem& problem);
  /// How many go before the next iteration: none before the seventh; where the residual does not fall to half, twice as
  /// many, and every second such iteration none. @param residuals of the iterations so far
  int due(std::span<const double> residuals);
  /// @param velocity [row] J v at these impulses @param impulse [row] in and out
  /// @return false: too many rows, nothing was done
  bool run(StepOperator& mass, const StepProblem& problem, int count, std::span<const double> velocity,
           std::span<double> impulse);

 private:
  struct Rows {  ///< that are projected together
    int term, first, count, at;
    double inverse;  ///< 1/ρ
  };
  bool choose(const StepProblem& problem, std::span<const double> velocity, std::span<const double> impulse);
  void group(const StepProblem& problem);
  void relax(const StepProblem& problem, const Rows& rows, std::span<double> impulse);

  std::vector<char> acted_;  ///< [term] it acts, or has acted in this step
  std::vector<int> terms_;   ///< these terms
  std::vector<Rows> rows_;
  std::vector<double> A_, velocity_;  ///< of these terms' rows, one after another
  int count_ = 0, done_ = 0;          ///< before this iteration, if any; in this step
  bool without_ = false;              ///< this iteration goes without
};

}  // namespace tarsus
