// Where `tarsus md` gets its system from: a built-in name or a file, with the options that say how to read it.
#pragma once

#include <string>
#include <vector>

#include "tarsus/particles/system.hpp"

namespace tarsus::app {

struct MdSource {
  std::string system;         ///< as typed
  std::string units, forces;  ///< names, or empty
  double cutoff = 0;          ///< LAMMPS data: of pair forces
  bool reaction_field = false;
  std::vector<int> rigid_bonds, rigid_angles;
  unsigned long seed = 1;
};

/// @throws InputError, ValueError
ParticleSystem load_md_system(const MdSource& source, bool quiet);

}  // namespace tarsus::app
