// A particle system by name: a built-in one or a file, with the options that say how to read it.
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
  /// Name, or empty: converts; for .xyz and .data says what the numbers mean where the file does not (Å, fs if empty).
  std::string units = {};
  std::string forces = {};  ///< name of force_field_names(), or empty
  std::string setup = {};   ///< JSON file for apply_particle_setup(), or empty
  double cutoff = 0;        ///< LAMMPS data: of pair forces; 0: none
  bool reaction_field = false;
  std::vector<int> rigid_bonds = {}, rigid_angles = {};  ///< LAMMPS data: types to constrain
  std::uint64_t seed = 1;                                ///< of built-in systems
  std::function<void(double)> on_settling = {};          ///< as make_builtin_system()'s
};

/// Follows constraints, bonds and, for a particle that has neither, its molecule, by the nearest image, for files and
/// arrays that have every particle within the box. Returns how many particles it moved.
int make_whole(ParticleSystem& system);
/// That, in words.
std::string made_whole(int moved);

/// Molecules that a periodic box cuts are made whole along constraints and bonds.
/// Notes of the reader are appended to `notes`.  @throws InputError, ValueError
ParticleSystem load_particles(const ParticleSource& source, Diagnostics& notes);

}  // namespace tarsus
