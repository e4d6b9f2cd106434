// Vectors and quaternions from a clip's rows of numbers.
#pragma once

#include "tarsus/math/rotation.hpp"

namespace tarsus {

inline Vec3d load3(const double* p) { return {p[0], p[1], p[2]}; }
inline Quatd load4(const double* p) { return {p[0], p[1], p[2], p[3]}; }

}  // namespace tarsus
