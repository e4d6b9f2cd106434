// Stochastic velocity rescaling. One factor scales all velocities, so they still satisfy the constraints. The canonical
// distribution of the kinetic energy is sampled exactly.  [Bussi, Donadio and Parrinello 2007]
#pragma once

#include <cstdint>
#include <random>

namespace tarsus {

class Thermostat {
 public:
  /// @param target mean kinetic energy, ½ N_f k T   @param degrees N_f > 0   @param relaxation time constant, > 0
  /// @throws ValueError
  Thermostat(double target, int degrees, double relaxation, std::uint64_t seed);
  /// The factor for the velocities after a step; 1 without kinetic energy.  @param kinetic present kinetic energy
  double factor(double kinetic, double timestep);
  /// Energy removed from the system so far. Its sum with the total energy is conserved.
  double exchanged() const { return exchanged_; }

 private:
  double gauss();

  double target_, relaxation_;
  int degrees_;
  double exchanged_ = 0;
  std::mt19937_64 generator_;
};

}  // namespace tarsus
