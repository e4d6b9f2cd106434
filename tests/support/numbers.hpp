// Numbers used by tests of several folders.
#pragma once

#include <random>

namespace tarsus::test {

inline constexpr double kGravity = 9.81;  ///< [m/s²]

inline double uniform(std::mt19937_64& random, double low, double high) {
  return std::uniform_real_distribution<double>(low, high)(random);
}

}  // namespace tarsus::test
