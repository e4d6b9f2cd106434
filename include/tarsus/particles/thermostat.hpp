// Stochastic velocity rescaling: one factor for all velocities, so constraints keep holding and the canonical
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
  /// The factor for velocities after a step of length timestep, given the kinetic energy now.
  double factor(double kinetic, double timestep);
  /// Energy taken from the system so far: total energy plus this is conserved.
  double exchanged() const { return exchanged_; }

 private:
  double gauss();

  double target_, relaxation_;
  int degrees_;
  double exchanged_ = 0;
  std::mt19937_64 generator_;
};

}  // namespace tarsus
