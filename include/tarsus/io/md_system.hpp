// The `.sys` and `.frames` text formats of particle systems.
//
// .sys     `natoms N`; `nconstraints K`; `box Lx Ly Lz | none`, 0 in an open direction; `atoms` and N rows
//          `index mass x y z vx vy vz`; `constraints` and K rows `i j length`. Indices count from 0. Comments run from
//          `#` to the line's end. Blank lines may be anywhere.
// .frames  `frame STEP`, then one row `x y z vx vy vz` (or `x y z`) for each particle.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/particles/system.hpp"

namespace tarsus {

/// Masses, state, box and distance constraints; no forces. Units are taken from a comment that names them ("units nm,
/// ps", "units Angstrom, fs", "units si", "units reduced"), or else from one that does so without the word "units", or
/// else are nm_ps.
/// @throws InputError with file, line, column
ParticleSystem read_md_system(const std::string& path);
ParticleSystem parse_md_system(std::string_view text, const std::string& file);
/// Writes 17 digits, so that reading gives the same numbers. Pins are not written.  @throws ValueError like
/// check_md_system()
void write_md_system(std::ostream& out, const ParticleSystem& system);
/// @throws ValueError if a constraint is not a distance or a mass is 0: the format supports neither
void check_md_system(const ParticleSystem& system);

struct MdFrame {
  long step = 0;
  std::vector<double> position, velocity;  ///< [3 n]; velocity empty where the file has none
};
/// @throws InputError if a frame does not have `particles` rows
std::vector<MdFrame> read_md_frames(const std::string& path, int particles);
std::vector<MdFrame> parse_md_frames(std::string_view text, const std::string& file, int particles);
void write_md_frame(std::ostream& out, long step, const ParticleSystem& system);

}  // namespace tarsus
