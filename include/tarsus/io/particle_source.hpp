// Loads a particle system by name: a built-in system or a file, with options for reading it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/particles/system.hpp"

namespace tarsus {

struct ParticleSource {
  std::string system = {};  ///< a file (.sys, .xyz, .extxyz, .data, .lmp, .lammps) or a name of builtin_systems()
  /// Name of the units to convert to, or empty. For .xyz and .data files that do not name their units, the units of the
  /// file (empty: Å, fs).
  std::string units = {};
  std::string forces = {};  ///< name of force_field_names(), or empty
  std::string setup = {};   ///< JSON file for apply_particle_setup(), or empty
  double cutoff = 0;        ///< LAMMPS data: cutoff of pair forces; 0: no pair forces
  bool reaction_field = false;
  std::vector<int> rigid_bonds = {}, rigid_angles = {};  ///< LAMMPS data: types to constrain
  std::uint64_t seed = 1;                                ///< of built-in systems
  std::function<void(double)> on_settling = {};          ///< see make_builtin_system()
};

/// Makes molecules whole that a periodic box cuts, for files and arrays whose particles are all within the box. Takes
/// the nearest image along constraints and bonds, and within its molecule for a particle that has neither. Returns the
/// number of particles moved.
int make_whole(ParticleSystem& system);
/// A sentence with that number.
std::string made_whole(int moved);

/// Loads the system and makes molecules whole that a periodic box cuts. Appends the reader's notes to `notes`.
/// @throws InputError, ValueError
ParticleSystem load_particles(const ParticleSource& source, Diagnostics& notes);

}  // namespace tarsus
