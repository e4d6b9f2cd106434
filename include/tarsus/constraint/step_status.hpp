// How a step's terms were solved, at worst.
#pragma once

#include <cstdint>

namespace tarsus {

enum class StepStatus : std::uint8_t {
  converged,            ///< the residual is within the tolerance, the impulses within their sets
  swept,                ///< as converged, except for large contact islands, which sweeps left at the residual
  cut_short,            ///< in SIMD lanes: max_iterations are spent, and the best iterate misses by kLost at most
  too_many_iterations,  ///< the best iterate was taken; in SIMD lanes: the scalar path must take the world's step
  crowded,              ///< in SIMD lanes: too many contacts between links, no term acted; the scalar path must step it
  not_finite,           ///< an input is not finite; no term acted
};
const char* name(StepStatus status);

}  // namespace tarsus
