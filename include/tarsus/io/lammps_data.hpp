// LAMMPS `data` files (read_data): the header, Masses, Atoms, Velocities, Bonds, Angles, Dihedrals and their
// coefficients.
//
// Atom styles atomic, charge, bond, angle, molecular and full, named after the section ("Atoms # full") or told by the
// number of columns where that is unambiguous. Ids may come in any order and with gaps. Image flags unwrap positions;
// molecules that the box still cuts are made whole along their bonds. Tilted boxes are an error. Sections that are
// not used here (Impropers, EXTRA…) are named in `notes` and skipped.
//
// `units = NAME` in the title, as write_data puts it there, is obeyed: real, lj, si; others are an error. So is what
// stands behind a section of coefficients ("Pair Coeffs # lj/cut"): use_lammps_data() refuses a style that it has not.
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

/// Numbers of a coefficient line, and the style word before them if there was one.
struct LammpsCoefficients {
  std::string style;
  std::vector<double> numbers;
};

struct LammpsData {
  ParticleSystem system;       ///< masses, state, box, charges, molecules; no constraints, no forces yet
  std::vector<int> id, type;   ///< [n] the file's own number of each atom; from 1
  std::vector<double> charge;  ///< [n] or empty
  std::vector<LammpsTopology> bonds, angles, dihedrals;
  std::vector<LammpsCoefficients> pair_coefficients, bond_coefficients, angle_coefficients,
      dihedral_coefficients;  ///< [types] or empty
  Diagnostics notes;
};

/// @param units where the title names none   @throws InputError with file, line, column
LammpsData read_lammps_data(const std::string& path, const Units& units);
LammpsData parse_lammps_data(std::string_view text, const std::string& file, const Units& units);

struct LammpsUse {
  std::vector<int> rigid_bonds,
      rigid_angles;             ///< types to constrain, as `fix rattle … b 1 a 1`; an angle needs both its bonds
  double cutoff = 0;            ///< of pair forces; 0: no pair forces
  bool reaction_field = false;  ///< else shifted force
};
/// Constraints and forces from the coefficients: harmonic bonds and angles (K (r - r0)², LAMMPS' convention), opls
/// dihedrals, lj/cut pairs mixed geometrically (LAMMPS' default) and energy-shifted, Coulomb where charges are; pairs
/// up to three bonds apart are excluded (LAMMPS' default special_bonds). Coefficients that nothing uses are noted.
/// @throws InputError naming a type without coefficients or a style that is not one of these; ValueError for a use that
/// the file has nothing for
void use_lammps_data(LammpsData& data, const LammpsUse& use);

}  // namespace tarsus
