// What tasks share: checks of options, and vectors into observations.
#pragma once

#include <cmath>

#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {

inline void positive(const char* name, double x) {
  if (!(x > 0) || !std::isfinite(x)) throw ValueError(name, number_text(x), "positive and finite");
}

inline void not_negative(const char* name, double x) {
  if (!(x >= 0) || !std::isfinite(x)) throw ValueError(name, number_text(x), "at least 0 and finite");
}

inline void put(double*& to, const Vec3d& v) { *to++ = v.x, *to++ = v.y, *to++ = v.z; }

}  // namespace tarsus
