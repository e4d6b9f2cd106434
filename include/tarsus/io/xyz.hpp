// Extended XYZ: one or more frames of `N`, a comment line of key=value pairs, and N rows.
//
// Supported keys: Lattice="ax 0 0 0 by 0 0 0 cz" (rectangular), pbc="T T F" (open along z),
// Properties=species:S:1:pos:R:3[:velo:R:3][:masses:R:1][:label:S:1][:other:…, skipped]; without Properties the columns
// are species x y z. A species may be any word; without a masses column it must be an element's symbol. A particle
// whose species is no symbol is named by its label; written files then have the species X and a label. units=NAME takes
// a name of units_by_name(); written files contain it.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/particles/system.hpp"

namespace tarsus {

struct XyzFrame {
  std::string comment;
  std::string units;  ///< the units' name in the comment line, or empty
  Box box;
  std::vector<std::string> species;
  std::vector<double> position, velocity;  ///< [3 n]; velocity empty where the file has none
  std::vector<double> mass;                ///< [n] or empty
  std::vector<std::string> skipped;        ///< names of the columns that are not read
};

/// @throws InputError with file, line, column
std::vector<XyzFrame> read_xyz(const std::string& path);
std::vector<XyzFrame> parse_xyz(std::string_view text, const std::string& file);
/// The last frame as a system without constraints and forces; `units` are used if the file names none.
/// @throws InputError if a mass is unknown
ParticleSystem system_from_xyz(const std::vector<XyzFrame>& frames, const std::string& file, const Units& units);
/// Writes a frame with positions, velocities and masses, 17 digits. `extra` goes into the comment line ("step=100").
/// @throws ValueError for a mass of 0, which readers refuse
void write_xyz_frame(std::ostream& out, const ParticleSystem& system, std::string_view extra = {});

/// Standard atomic mass in g/mol by symbol, 0 if unknown.
double element_mass(std::string_view symbol);

}  // namespace tarsus
