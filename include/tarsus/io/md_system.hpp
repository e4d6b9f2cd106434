// The `.sys` and `.frames` text formats of particle systems.
//
// .sys     `#` comments to the line's end, blank lines anywhere; `natoms N`; `nconstraints K`; `box Lx Ly Lz | none`,
//          0 where open; then `atoms` and N rows `index mass x y z vx vy vz`, `constraints` and K rows `i j length`,
//          indices from 0.
// .frames  `frame STEP`, then one row `x y z vx vy vz` (or `x y z`) for each particle.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/particles/system.hpp"

namespace tarsus {

/// Masses, state, box and distance constraints; no forces. Units are taken from a comment that names them ("units nm,
/// ps", "units Angstrom, fs", "units si", "units reduced"), else nm_ps.  @throws InputError with file, line, column
ParticleSystem read_md_system(const std::string& path);
ParticleSystem parse_md_system(std::string_view text, const std::string& file);
/// 17 digits: reading it back gives the same numbers. Pins are left out.  @throws ValueError as check_md_system()
void write_md_system(std::ostream& out, const ParticleSystem& system);
/// @throws ValueError if a constraint is no distance or a mass is 0: the format has neither
void check_md_system(const ParticleSystem& system);

struct MdFrame {
  long step = 0;
  std::vector<double> position, velocity;  ///< [3 n]; velocity empty where the file has none
};
/// @throws InputError if the rows of a frame are not `particles` many
std::vector<MdFrame> read_md_frames(const std::string& path, int particles);
std::vector<MdFrame> parse_md_frames(std::string_view text, const std::string& file, int particles);
void write_md_frame(std::ostream& out, long step, const ParticleSystem& system);

}  // namespace tarsus
