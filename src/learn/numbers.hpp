// Helpers of tasks: checks of options, and writing vectors to observations.
#pragma once

#include <cmath>
#include <string>

#include "tarsus/base/error.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {

inline void positive(const char* name, double x) {
  if (!(x > 0) || !std::isfinite(x)) throw ValueError(name, number_text(x), "a positive, finite number");
}

inline void not_negative(const char* name, double x) {
  if (!(x >= 0) || !std::isfinite(x)) throw ValueError(name, number_text(x), "a finite number of at least 0");
}

/// Number of simulation steps per action.
inline void check_substeps(int n) {
  constexpr int kMost = 10'000;
  if (n < 1 || n > kMost) throw ValueError("substeps", std::to_string(n), "1 to " + std::to_string(kMost));
}

inline void put(double*& to, const Vec3d& v) { *to++ = v.x, *to++ = v.y, *to++ = v.z; }

}  // namespace tarsus
