// The number that MuJoCo takes for nothing.
#pragma once

namespace tarsus {

/// mjMINVAL: what MuJoCo divides by at least and compares small things with. Results are its own where numbers of a
/// file are zero.
inline constexpr double kMujocoMinval = 1e-15;

}  // namespace tarsus
