// Reads and writes one particle's vector in an array of all particles' coordinates.
#pragma once

#include <cstddef>
#include <span>

#include "tarsus/math/vec.hpp"

namespace tarsus {

inline Vec3d point(std::span<const double> x, int particle) {
  const double* p = x.data() + 3 * std::size_t(particle);
  return {p[0], p[1], p[2]};
}

}  // namespace tarsus
