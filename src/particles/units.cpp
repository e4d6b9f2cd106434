#include "tarsus/particles/units.hpp"

#include "tarsus/base/error.hpp"

namespace tarsus {

Units units_nm_ps() { return {"nm_ps", "nm", "ps", "kJ/mol", 1.0, 0.00831446261815324, 138.935457644, 0.002}; }

Units units_angstrom_fs() {
  constexpr double kSpeed = 48.88821291;  // from LAMMPS: (g/mol)(Å/fs)² is kSpeed² kcal/mol
  return {"angstrom_fs", "A", "fs", "kcal/mol", kSpeed * kSpeed, 0.0019872067, 332.06371, 2.0};
}

Units units_si() { return {"si", "m", "s", "J", 1.0, 1.380649e-23, 8.9875517923e9, 0.001}; }

Units units_reduced() { return {"reduced", "length", "time", "energy", 1.0, 1.0, 1.0, 0.001}; }

Units units_by_name(std::string_view name) {
  for (Units (*make)() : {units_nm_ps, units_angstrom_fs, units_si, units_reduced}) {
    if (Units units = make(); units.name == name) return units;
  }
  throw ValueError("units", std::string(name), "nm_ps, angstrom_fs, si or reduced");
}

}  // namespace tarsus
