// Unit systems of particle files. Internally masses are multiplied by `energy_per_mv2`, so that m v² is an energy.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tarsus {

struct Units {
  std::string name;                  ///< "nm_ps", "angstrom_fs", "si", "reduced"
  std::string length, time, energy;  ///< names of the units
  double energy_per_mv2 = 1.0;       ///< energy units in one (mass unit)(length/time)²
  double boltzmann = 1.0;            ///< energy per kelvin (per temperature unit)
  double coulomb = 1.0;              ///< energy · length for two unit charges
  double timestep = 1.0;             ///< default step, time unit
};

/// GROMACS' units: nm, ps, g/mol, kJ/mol.
Units units_nm_ps();
/// LAMMPS' "real" units: Å, fs, g/mol, kcal/mol, with LAMMPS' own constants.
Units units_angstrom_fs();
/// Metres, seconds, kilograms, joules.
Units units_si();
/// All constants 1.
Units units_reduced();
/// @throws ValueError for an unknown name, listing the known ones.
Units units_by_name(std::string_view name);

}  // namespace tarsus
