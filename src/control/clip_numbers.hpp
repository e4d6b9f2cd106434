// Vectors and quaternions from a clip's rows of numbers.
#pragma once

#include "tarsus/math/rotation.hpp"

namespace tarsus {

inline Vec3d load3(const double* p) { return {p[0], p[1], p[2]}; }
inline Quatd load4(const double* p) { return {p[0], p[1], p[2], p[3]}; }

/// Columns of a rotation among a binding's knots: its quaternion, then how the segment to the next frame bends, the
/// vector w2 of clip_sample.cpp.
inline constexpr int kRotationKnots = 7, kBend = 4;

}  // namespace tarsus
