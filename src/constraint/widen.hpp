// Links' numbers in double, whatever the simulation's precision.
#pragma once

#include "tarsus/math/vec.hpp"

namespace tarsus {

template <class R>
Vec3d widen(const Vec3<R>& v) {
  return {double(v.x), double(v.y), double(v.z)};
}

}  // namespace tarsus
