// Forces along generalised directions that depend on the acceleration they cause: f_r = clamp(force - slope J_r q̈).
// Servos on tendons, springs, dampers and armature of tendons (control/servo.hpp).
//
// The step without them is q̈(τ), linear but for force limits of drives. Newton: (1 + S J ∂q̈/∂τ Jᵀ) df = residual,
// S the slopes of the rows that are within their bounds; the matrix by solving the step once for each row.
#pragma once

#include "tarsus/control/servo.hpp"

namespace tarsus {

template <class R>
class ForceRows {
 public:
  /// solve(tau, qacc) is the step without the rows; it is called last with the forces that hold.
  /// @return false where they were not found to 1e-9 (float 1e-4) of their size: the best so far are applied
  template <class F>
  bool solve(const BasicData<R>& data, const Servos<R>& servos, In<R> tau, Out<R> qacc, const F& solve);

 private:
  struct World {
    std::vector<double> force, speedup, response;  // [rows] f, J q̈; [rows][rows] J ∂q̈/∂f
  };
  static constexpr int kMostIterations = 30;
  void begin(const BasicData<R>& data, const Servos<R>& servos, In<R> tau);
  void push(const Servos<R>& servos, int world, int row, double force);
  /// J q̈ of all rows, and the largest part by which a force misses its law.
  double measure(const Servos<R>& servos, In<R> qacc);
  void respond(const Servos<R>& servos, int row, In<R> probe);
  void improve(const Servos<R>& servos);
  double along(const ForceRow& row, int world, In<R> qacc) const;

  int nv_ = 0, width_ = 1;
  std::vector<World> worlds_;
  AlignedVector<R> tau_, probe_;
};

template <class R>
template <class F>
bool ForceRows<R>::solve(const BasicData<R>& data, const Servos<R>& servos, In<R> tau, Out<R> qacc, const F& solve) {
  begin(data, servos, tau);
  std::size_t most = 0;
  for (const World& world : worlds_) most = std::max(most, world.force.size());
  solve(In<R>(tau_), qacc);
  probe_.resize(qacc.size());
  bool responses = false;
  for (int iteration = 0; iteration < kMostIterations; ++iteration) {
    if (measure(servos, qacc) < (sizeof(R) == 8 ? 1e-9 : 1e-4)) return true;
    if (!responses) {
      for (std::size_t row = 0; row < most; ++row) {
        for (std::size_t world = 0; world < worlds_.size(); ++world) push(servos, int(world), int(row), 1);
        solve(In<R>(tau_), Out<R>(probe_));
        for (std::size_t world = 0; world < worlds_.size(); ++world) push(servos, int(world), int(row), -1);
        for (std::size_t i = 0; i < probe_.size(); ++i) probe_[i] -= qacc[i];
        respond(servos, int(row), probe_);
      }
      responses = true;
    }
    improve(servos);
    solve(In<R>(tau_), qacc);
  }
  return measure(servos, qacc) < (sizeof(R) == 8 ? 1e-9 : 1e-4);
}

extern template class ForceRows<double>;
extern template class ForceRows<float>;

}  // namespace tarsus
