// The reference cases, read in place; tests that need them are skipped if they are absent.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "tarsus/io/md_system.hpp"
#include "tarsus/particles/builtin.hpp"
#include "tarsus/particles/verlet.hpp"

namespace tarsus::md_test {

inline std::string reference(const std::string& name) {
  return std::string(TARSUS_SOURCE_DIR) + "/../shared/reference/md/" + name;
}

#define TARSUS_NEEDS_REFERENCE(NAME) \
  if (!std::filesystem::exists(::tarsus::md_test::reference(NAME))) GTEST_SKIP() << "no reference file " << NAME

inline double largest_difference(std::span<const double> a, std::span<const double> b, double scale = 1.0) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] * scale - b[i]);
    if (!(d <= worst)) worst = d;
  }
  return worst;
}

inline void run_steps(VelocityVerlet& verlet, int steps, bool energies_at_end = false) {
  for (int k = 0; k < steps; ++k) {
    const StepReport report = verlet.step(energies_at_end && k + 1 == steps);
    ASSERT_TRUE(report.ok) << report.message;
  }
}

}  // namespace tarsus::md_test
