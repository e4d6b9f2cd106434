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
  /// Name of the units to convert to, or empty. A .xyz or .data file that does not name its units is read in these
  /// units (if empty, in Å and fs).
  std::string units = {};
  std::string forces = {};  ///< name of force_field_names(), or empty
  std::string setup = {};   ///< JSON file for apply_particle_setup(), or empty
  double cutoff = 0;        ///< LAMMPS data: cutoff of pair forces; 0: no pair forces
  bool reaction_field = false;
  std::vector<int> rigid_bonds = {}, rigid_angles = {};  ///< LAMMPS data: types to constrain
  std::uint64_t seed = 1;                                ///< of built-in systems
  std::function<void(double)> on_settling = {};          ///< see make_builtin_system()
};

/// Makes molecules whole that a periodic box cuts: for files and arrays whose particles are all inside the box. Each
/// particle moves to the image nearest to the one that it shares a constraint or bond with. A particle with neither
/// moves to the image nearest to the previous particle of its molecule. Returns the number of particles moved.
int make_whole(ParticleSystem& system);
/// A sentence for the user with the number of particles moved.
std::string made_whole(int moved);

/// Loads the system and makes molecules whole that a periodic box cuts. Appends the reader's notes to `notes`.
/// @throws InputError, ValueError
ParticleSystem load_particles(const ParticleSource& source, Diagnostics& notes);

}  // namespace tarsus
