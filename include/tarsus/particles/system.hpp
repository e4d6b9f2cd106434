// A particle system: state, constraints, forces.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/particles/constraint_set.hpp"
#include "tarsus/particles/force_field.hpp"
#include "tarsus/particles/units.hpp"

namespace tarsus {

/// Rectangular box; a length of 0 is an open direction. Lengths have the system's length unit. Positions are never
/// wrapped: molecules stay whole. Only non-bonded forces take the nearest image.
struct Box {
  Vec3d length = zero3<double>();
  bool periodic() const { return length.x > 0 || length.y > 0 || length.z > 0; }
};

struct ParticleSystem {
  std::string name;
  Units units = units_reduced();
  Box box;
  std::vector<double> mass;                ///< [n], mass unit; 0: pinned particle
  std::vector<char> pinned;                ///< [n], 1: never moves (inverse mass 0); empty: no particle is pinned
  std::vector<double> position, velocity;  ///< [3 n] x y z of each particle, length and length/time
  std::vector<std::string> species;        ///< [n] for files; may be empty
  std::vector<int> molecule;               ///< [n]; may be empty
  ConstraintSet constraints;
  ForceField force_field;

  int particles() const { return static_cast<int>(mass.size()); }
  /// [n] 1/(mass in energy · (time/length)²), 0 where pinned.
  std::vector<double> inverse_masses() const;
  /// Checks sizes, indices, finite numbers, positive masses and cutoffs against the box.  @throws ValueError,
  /// ShapeError
  void check() const;
};

/// Indices of the particles whose inverse mass is 0.
std::vector<int> pinned_particles(std::span<const double> inverse_mass);
/// Sets the velocities of these particles to zero.
void stop(ParticleSystem& system, std::span<const int> particles);

/// What prepare() changed to make the initial state satisfy the constraints.
struct Preparation {
  std::vector<std::string> redundant;   ///< descriptions of the rows removed because the others imply them
  int rank = 0;                         ///< number of rows left
  double start_violation = 0;           ///< max |σ|/scale before
  double velocity_violation = 0;        ///< max |J v| Δt/scale before
  double moved_max = 0, moved_rms = 0;  ///< displacement of the positions, length unit
  double velocity_changed_max = 0;
  int iterations = 0;
  /// Two particles without a pair force that no bonds or constraints connect, as in a file without bonds; -1: none.
  std::array<int, 2> loose{-1, -1};
  bool moved() const { return moved_max > 0; }
  std::string text(const Units& units) const;  ///< one or two lines for a person; empty if nothing was done
};

/// Removes redundant rows, and projects positions (mass-weighted nearest, J at the start) and velocities.
/// @param tolerance dimensionless, > 0  @param timestep step of the integrator, > 0
/// @throws ValueError for a tolerance or timestep that is not positive, and, naming the rows, for rows that contradict
///   one another, are singular at this geometry, or cannot be satisfied
Preparation prepare(ParticleSystem& system, double tolerance, double timestep);
/// The rows that depend on the others at the system's positions, for a person; empty if there are none.
std::string name_dependent_rows(const ParticleSystem& system);

/// Degrees of freedom: moving coordinates less constraints, less 3 where momentum is conserved; at least 0.
int degrees_of_freedom(const ParticleSystem& system);
/// Whether the total momentum is constant: no springs, gravity or pinned particles, and no constraints other than
/// distances, angles and dihedrals.
bool conserves_momentum(const ParticleSystem& system);
/// ½ Σ m v² in the system's energy unit.
double kinetic_energy(const ParticleSystem& system);
/// 2 kinetic_energy()/(degrees_of_freedom() k) in the temperature unit (K), 0 without degrees of freedom.
double temperature(const ParticleSystem& system);
/// Draws Gaussian velocities that satisfy the constraints and, where momentum is conserved, have no total momentum.
/// They are scaled to this temperature exactly.
/// @throws ValueError for a temperature that is negative or not finite, or constraints onto which the velocities cannot
/// be projected
void set_temperature(ParticleSystem& system, double temperature, std::uint64_t seed);

}  // namespace tarsus
