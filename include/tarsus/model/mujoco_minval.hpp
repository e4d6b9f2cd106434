// MuJoCo's smallest denominator.
#pragma once

namespace tarsus {

/// mjMINVAL: MuJoCo's lower bound of denominators and its threshold for small values. It reproduces MuJoCo's results
/// where numbers of a file are zero.
inline constexpr double kMujocoMinval = 1e-15;

}  // namespace tarsus
