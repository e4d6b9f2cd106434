// Molecules that a box's faces cut.
#pragma once

#include <vector>

#include "tarsus/particles/system.hpp"

namespace tarsus {

/// Follows the links of each particle to others, linked[i] by their numbers, and puts each at its nearest image.
/// @return how many particles it moved
int make_molecules_whole(ParticleSystem& system, const std::vector<std::vector<int>>& linked);

}  // namespace tarsus
