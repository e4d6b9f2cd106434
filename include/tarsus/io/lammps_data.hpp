// LAMMPS `data` files (read_data): the header, Masses, Atoms, Velocities, Bonds, Angles, Dihedrals and their
// coefficients.
//
// The atom styles atomic, charge, bond, angle, molecular and full are supported. The style is named after the section's
// name ("Atoms # full") or detected from the number of columns where that is unambiguous. Ids may come in any order and
// with gaps. Image flags unwrap positions. Molecules that the box still cuts are made whole along their bonds. Tilted
// boxes are an error. Unused sections (Impropers, EXTRA…) are named in `notes` and skipped.
//
// `units = NAME` in the title, as written by write_data, may be real, lj or si; others are an error. A style after the
// name of a coefficient section ("Pair Coeffs # lj/cut") is read too; use_lammps_data() refuses an unsupported style.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/particles/system.hpp"

namespace tarsus {

struct LammpsTopology {
  int type;                ///< from 1, as in the file
  std::vector<int> atoms;  ///< indices from 0 into the system
};

/// Numbers of a coefficient line, and the style word before them if there is one.
struct LammpsCoefficients {
  std::string style;
  std::vector<double> numbers;
};

struct LammpsData {
  ParticleSystem system;       ///< masses, state, box, charges, molecules; no constraints, no forces yet
  std::vector<int> id, type;   ///< [n] the atom's id in the file; its type, from 1
  std::vector<double> charge;  ///< [n] or empty
  std::vector<LammpsTopology> bonds, angles, dihedrals;
  std::vector<LammpsCoefficients> pair_coefficients, bond_coefficients, angle_coefficients,
      dihedral_coefficients;  ///< [types] or empty
  Diagnostics notes;
};

/// @param units used if the title names none   @throws InputError with file, line, column
LammpsData read_lammps_data(const std::string& path, const Units& units);
LammpsData parse_lammps_data(std::string_view text, const std::string& file, const Units& units);

struct LammpsUse {
  std::vector<int> rigid_bonds,
      rigid_angles;             ///< types to constrain, as in `fix rattle … b 1 a 1`; an angle needs both its bonds
  double cutoff = 0;            ///< of pair forces; 0: no pair forces
  bool reaction_field = false;  ///< else shifted force
};
/// Adds constraints and forces from the coefficients: harmonic bonds and angles (K (r - r0)², LAMMPS' convention), opls
/// dihedrals, lj/cut pairs mixed geometrically (LAMMPS' default) and energy-shifted, and Coulomb forces between
/// charges. Pairs up to three bonds apart are excluded (LAMMPS' default special_bonds). Unused coefficients get a note.
/// @throws InputError naming a type without coefficients or an unsupported style; ValueError if `use` asks for
/// something that the file does not have
void use_lammps_data(LammpsData& data, const LammpsUse& use);

}  // namespace tarsus
