// A particle system as read or built: state, constraints, forces.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/particles/constraint_set.hpp"
#include "tarsus/particles/force_field.hpp"
#include "tarsus/particles/units.hpp"

namespace tarsus {

/// Rectangular box; a length of 0 is an open direction. Positions are never wrapped: molecules stay whole, and only
/// non-bonded forces take the nearest image.
struct Box {
  Vec3d length = zero3<double>();
  bool periodic() const { return length.x > 0 || length.y > 0 || length.z > 0; }
};

struct ParticleSystem {
  std::string name;
  Units units = units_reduced();
  Box box;
  std::vector<double> mass;                ///< [n], mass unit; 0 stands for a pinned particle
  std::vector<char> pinned;                ///< [n], 1: never moves (inverse mass 0); empty: none
  std::vector<double> position, velocity;  ///< [3 n]
  std::vector<std::string> species;        ///< [n] for files; may be empty
  std::vector<int> molecule;               ///< [n]; may be empty
  ConstraintSet constraints;
  ForceField force_field;

  int particles() const { return static_cast<int>(mass.size()); }
  /// [n] 1/(mass in energy · (time/length)²), 0 where pinned.
  std::vector<double> inverse_masses() const;
  /// Sizes, indices, finite numbers, positive masses, cutoffs that fit the box.  @throws ValueError, ShapeError
  void check() const;
};

/// Particles that never move, by ParticleSystem::inverse_masses().
std::vector<int> pinned_particles(std::span<const double> inverse_mass);
/// Takes their velocity from these particles.
void stop(ParticleSystem& system, std::span<const int> particles);

/// What prepare() did to make the start satisfy its constraints.
struct Preparation {
  std::vector<std::string> redundant;   ///< rows left out because the others imply them, in words
  int rank = 0;                         ///< rows left
  double start_violation = 0;           ///< dimensionless, before
  double velocity_violation = 0;        ///< max |J v| Δt/scale, before
  double moved_max = 0, moved_rms = 0;  ///< how far positions were moved, length unit
  double velocity_changed_max = 0;
  int iterations = 0;
  /// Two particles that no pair force acts between and nothing holds together, as of a file without bonds; -1: none.
  std::array<int, 2> loose{-1, -1};
  bool moved() const { return moved_max > 0; }
  std::string text(const Units& units) const;  ///< one or two lines for a person; empty if nothing was done
};

/// Finds redundant rows and takes them out, projects positions (mass-weighted nearest, J at the start) and velocities.
/// @param tolerance dimensionless  @param timestep of the integrator that follows
/// @throws ValueError for one of these that is not positive; naming rows if they contradict one another, are singular
/// at this geometry, or cannot be reached.
Preparation prepare(ParticleSystem& system, double tolerance, double timestep);

/// Degrees of freedom: moving coordinates less constraints, less 3 where momentum is conserved.
int degrees_of_freedom(const ParticleSystem& system);
bool conserves_momentum(const ParticleSystem& system);
double kinetic_energy(const ParticleSystem& system);
double temperature(const ParticleSystem& system);
/// Gaussian velocities at a temperature, on the constraints, without total momentum; the temperature is met exactly.
void set_temperature(ParticleSystem& system, double temperature, std::uint64_t seed);

}  // namespace tarsus
