// Forces along generalised directions that depend on the acceleration they cause: f_r = clamp(force - slope J_r q̈).
// Servos on tendons, springs, dampers and armature of tendons, their ranges and dry friction (sim/servo.hpp), in rk4
// and in lanes; one world's semi-implicit step has them among its terms (constraint/path_terms.cpp).
//
// The step without them is q̈(τ), linear but for force limits of drives. With B = J ∂q̈/∂τ Jᵀ, by solving the step once
// for each row that acts, the rows are a small problem with bounds: semismooth Newton, and where that cycles projected
// Gauss-Seidel. The step is then solved with the forces found, and all of it again where B has changed.
#pragma once

#include "tarsus/sim/servo.hpp"

namespace tarsus {

template <class R>
class ForceRows {
 public:
  /// solve(tau, qacc) is the step of h seconds without the rows; it is called last with the forces that hold.
  /// @return false where they were not found to 1e-9 (float 1e-4) of their size: the best so far are applied
  template <class F>
  bool solve(const BasicData<R>& data, const Servos<R>& servos, double h, In<R> tau, Out<R> qacc, const F& solve);

  /// Force with which a tendon's range held it in the last solve, against whichever end [N | N m].
  double range_force(int world, int tendon) const;
  /// Its dry friction in the last solve, along its length [N | N m].
  double friction_force(int world, int tendon) const;

 private:
  struct World {
    std::vector<ForceRow> rows;
    std::vector<double> force, speedup;  ///< [rows] f, J q̈
    std::vector<int> acting;             ///< rows that may have a force
    std::vector<double> response;        ///< [acting][acting] B
    bool known = false;                  ///< response is that of `acting`
  };
  static constexpr int kMostIterations = 30;
  static constexpr double kTolerance = sizeof(R) == 8 ? 1e-9 : 1e-4;
  void begin(const BasicData<R>& data, const Servos<R>& servos, double h, In<R> tau);
  void push(int world, int row, double force);
  /// J q̈ of all rows; the largest part by which a force misses its law; rows that must act from now on.
  double measure(In<R> qacc);
  int unknown_responses() const;
  void respond(int place, In<R> probe);
  void settle_responses();
  void improve();
  double along(const ForceRow& row, int world, In<R> qacc) const;

  int nv_ = 0, width_ = 1;
  double h_ = 0;
  std::vector<World> worlds_;
  AlignedVector<R> tau_, probe_;
};

template <class R>
template <class F>
bool ForceRows<R>::solve(const BasicData<R>& data, const Servos<R>& servos, double h, In<R> tau, Out<R> qacc,
                         const F& solve) {
  begin(data, servos, h, tau);
  solve(In<R>(tau_), qacc);
  probe_.resize(qacc.size());
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    if (measure(qacc) < kTolerance) return true;
    const int most = unknown_responses();
    for (int place = 0; place < most; ++place) {
      const auto push_all = [&](double force) {
        for (std::size_t world = 0; world < worlds_.size(); ++world) {
          if (place < int(worlds_[world].acting.size())) push(int(world), worlds_[world].acting[place], force);
        }
      };
      push_all(1);
      solve(In<R>(tau_), Out<R>(probe_));
      push_all(-1);
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
