// DCD trajectories (CHARMM's and NAMD's): binary records of single precision, lengths in Å.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "tarsus/particles/system.hpp"

namespace tarsus {

/// Writes a header and then frame after frame, in little-endian byte order. VMD, MDAnalysis and MDTraj read the file.
class DcdWriter {
 public:
  /// @param every steps between frames  @param timestep in the system's units  @throws ValueError like angstroms()
  DcdWriter(std::ostream& out, const ParticleSystem& system, long every, double timestep);
  void frame(const ParticleSystem& system);
  /// The length unit in Å.  @throws ValueError if the units are not nm_ps or angstrom_fs
  static double angstroms(const Units& units);

 private:
  std::ostream& out_;
  double angstrom_;  ///< the system's length unit [Å]
  bool cell_;
  std::int32_t frames_ = 0;
};

}  // namespace tarsus
