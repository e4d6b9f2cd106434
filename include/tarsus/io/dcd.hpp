// DCD trajectories (CHARMM's and NAMD's): binary records of single precision, lengths in Å.
#pragma once

#include <cstdint>
#include <iosfwd>

#include "tarsus/particles/system.hpp"

namespace tarsus {

/// Writes a header and then frame after frame; VMD, MDAnalysis and MDTraj read it. Bytes are those of a little-endian
/// machine.
class DcdWriter {
 public:
  /// @param every steps between frames   @param timestep in the system's units   @throws ValueError as angstroms()
  DcdWriter(std::ostream& out, const ParticleSystem& system, long every, double timestep);
  void frame(const ParticleSystem& system);
  /// A unit of length in Å.  @throws ValueError where the units are not nm_ps or angstrom_fs
  static double angstroms(const Units& units);

 private:
  std::ostream& out_;
  double angstrom_;  ///< of the system's length
  bool cell_;
  std::int32_t frames_ = 0;
};

}  // namespace tarsus
