// Makes molecules whole that a periodic box cuts.
#pragma once

#include <vector>

#include "tarsus/particles/system.hpp"

namespace tarsus {

/// Follows the links between particles (linked[i]: the particles linked to i). Moves each particle to the image nearest
/// to the one from which it is reached.
/// @return the number of particles moved
int make_molecules_whole(ParticleSystem& system, const std::vector<std::vector<int>>& linked);

}  // namespace tarsus
