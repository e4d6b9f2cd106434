// Energy drift of 216 waters, shared by the short and the long test.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "md_reference.hpp"

namespace tarsus::md_test {

inline double slope_of(const std::vector<double>& t, const std::vector<double>& e) {
  double mt = 0, me = 0, tt = 0, te = 0;
  for (std::size_t k = 0; k < t.size(); ++k) mt += t[k] / t.size(), me += e[k] / t.size();
  for (std::size_t k = 0; k < t.size(); ++k) tt += (t[k] - mt) * (t[k] - mt), te += (t[k] - mt) * (e[k] - me);
  return te / tt;
}

inline double deviation(const std::vector<double>& values) {
  double mean = 0, square = 0;
  for (const double e : values) mean += e / values.size();
  for (const double e : values) square += (e - mean) * (e - mean) / values.size();
  return std::sqrt(square);
}

struct Drift {
  double per_ns = 0, of_total = 0;  ///< [kT/ns per degree of freedom]
  double shadow = 0, total = 0;     ///< root mean square about the mean [kJ/mol]
};

/// 20 ps of water from initial velocities that differ by 1e-9 between trajectories.
inline Drift water_drift(int trajectory) {
  ParticleSystem system = converted(read_md_system(reference("water216.sys")), units_nm_ps());
  set_force_field(system, "spce-shifted-force");
  system.velocity[0] *= 1 + 1e-9 * trajectory;
  VelocityVerlet verlet(system, {.timestep = 0.002});
  std::vector<double> times, totals, shadows;
  double mean_temperature = 0;
  for (int step = 1; step <= 10000; ++step) {
    const StepReport report = verlet.step(step % 10 == 9);
    EXPECT_TRUE(report.ok) << report.message;
    if (step % 10 == 9) {
      times.push_back(verlet.time());
      totals.push_back(verlet.energies().potential() + kinetic_energy(system));
      mean_temperature += temperature(system) / 1000;
    } else if (step % 10 == 0) {
      shadows.push_back(totals.back() + verlet.shadow_shift());
    }
  }
  const double unit = 1000 / (system.units.boltzmann * mean_temperature * degrees_of_freedom(system));
  return {slope_of(times, shadows) * unit, slope_of(times, totals) * unit, deviation(shadows), deviation(totals)};
}

}  // namespace tarsus::md_test
