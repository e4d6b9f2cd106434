// Forces along generalised directions that depend on the acceleration they cause: f_r = clamp(force - slope J_r q̈).
// The rk4 integrator treats these as such rows: servos on tendons; springs, dampers, armature, ranges and dry friction
// of tendons (sim/servo.hpp). The semi-implicit integrator includes them among the step's terms
// (constraint/path_terms.inl).
//
// The step without the rows is q̈(τ), which is linear except for drives with force limits. B = J ∂q̈/∂τ Jᵀ is found by
// solving the step once for each active row. Given B, the rows are a small problem with bounds, solved by semismooth
// Newton, or by projected Gauss-Seidel where Newton cycles. The step is then solved with the forces found. Everything
// is repeated if B has changed.
#pragma once

#include "tarsus/sim/servo.hpp"

namespace tarsus {

/// The force rows of one world.
template <class R>
class ForceRows {
 public:
  /// Solves the rows together with the step of h seconds. solve(tau, qacc) must compute the step without the rows; its
  /// last call has the final forces.
  /// @return false if the forces did not converge to a relative error of 1e-9 (float: 1e-4); the best forces found are
  /// then applied
  template <class F>
  bool solve(const Servos<R>& servos, double h, In<R> tau, Out<R> qacc, const F& solve);

  double force(std::size_t row) const { return force_[row]; }  ///< in the last solve [N | N m]

 private:
  static constexpr int kMostIterations = 30;
  static constexpr double kTolerance = sizeof(R) == 8 ? 1e-9 : 1e-4;
  void begin(const Servos<R>& servos, double h, In<R> tau);
  void push(int row, double force);
  /// Evaluates J q̈ of all rows and finds the rows that must act from now on. Returns the largest relative residual of
  /// a force law.
  double measure(In<R> qacc);
  void respond(int place, In<R> probe);
  void settle_responses();
  void improve();

  double h_ = 0;
  std::vector<ForceRow> rows_;
  std::vector<double> force_, speedup_;  ///< [rows] f, J q̈
  std::vector<int> acting_;              ///< rows that may have a non-zero force
  std::vector<double> response_;         ///< [acting][acting] B
  bool known_ = false;                   ///< response_ matches acting_
  AlignedVector<R> tau_, probe_;
};

template <class R>
template <class F>
bool ForceRows<R>::solve(const Servos<R>& servos, double h, In<R> tau, Out<R> qacc, const F& solve) {
  begin(servos, h, tau);
  solve(In<R>(tau_), qacc);
  probe_.resize(qacc.size());
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    if (measure(qacc) < kTolerance) return true;
    for (int place = 0; !known_ && place < int(acting_.size()); ++place) {
      push(acting_[place], 1);
      solve(In<R>(tau_), Out<R>(probe_));
      push(acting_[place], -1);
      for (std::size_t i = 0; i < probe_.size(); ++i) probe_[i] -= qacc[i];
      respond(place, probe_);
    }
    settle_responses();
    improve();
    solve(In<R>(tau_), qacc);
  }
  return measure(qacc) < kTolerance;
}

extern template class ForceRows<double>;
extern template class ForceRows<float>;

}  // namespace tarsus
