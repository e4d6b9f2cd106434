// Conserved quantities and invariances: energy, momentum, reversal of time, the unit of length.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "water_drift.hpp"

namespace tarsus::md_test {
namespace {

ParticleSystem water_216() {
  ParticleSystem system = converted(read_md_system(reference("water216.sys")), units_nm_ps());
  set_force_field(system, "spce-reaction-field");
  return system;
}

// The total energy oscillates by O(Δt²) (0.5 kJ/mol here); the energy that the discrete equations conserve
// (shadow_shift) oscillates five times less. Trajectories are chaotic: the slopes over 20 ps of eight runs that differ
// by rounding scatter by 0.0037 kT/ns about their mean. One run cannot resolve less than this.
TEST(Conservation, WaterEnergyDriftsLessThanAHundredthOfKtPerNanosecond) {
  TARSUS_NEEDS_REFERENCE("water216.sys");
  const Drift drift = water_drift(0);
  std::printf("drift %.5f kT/ns per degree of freedom (of the plain total %.5f)\n", drift.per_ns, drift.of_total);
  EXPECT_LT(std::abs(drift.per_ns), 0.01);
  EXPECT_LT(drift.shadow, 0.35 * drift.total);
}

// Root mean square deviation of the total energy from its mean over the same time.
double energy_noise(ParticleSystem system, double dt, double time) {
  VelocityVerlet verlet(system, {.timestep = dt});
  std::vector<double> totals;
  const int steps = static_cast<int>(std::lround(time / dt));
  for (int step = 0; step < steps; ++step) {
    const StepReport report = verlet.step(true);
    EXPECT_TRUE(report.ok) << report.message;
    totals.push_back(verlet.energies().potential() + kinetic_energy(system));
  }
  return deviation(totals);
}

TEST(Conservation, EnergyNoiseGrowsFourfoldWithEachDoubling) {
  TARSUS_NEEDS_REFERENCE("water216.sys");
  std::vector<double> noise;
  for (const double dt : {0.0005, 0.001, 0.002}) noise.push_back(energy_noise(water_216(), dt, 0.2));
  for (std::size_t k = 1; k < noise.size(); ++k) {
    std::printf("energy noise ratio %.3f\n", noise[k] / noise[k - 1]);
    EXPECT_NEAR(noise[k] / noise[k - 1], 4.0, 0.3);
  }
}

TEST(Conservation, StepsForthAndBackReturnToTheStart) {
  struct Case {
    const char* system;
    double dt;
  };
  for (const Case& c : {Case{"water1", 2.0}, Case{"chain:64", 0.002}, Case{"c60", 0.001}, Case{"ring:20", 0.002},
                        Case{"rope:20", 0.0005}}) {
    SCOPED_TRACE(c.system);
    ParticleSystem system = make_builtin_system(c.system);
    const std::vector<double> x = system.position, v = system.velocity;
    VelocityVerlet verlet(system, {.timestep = c.dt, .tolerance = 1e-15});
    run_steps(verlet, 1000);
    EXPECT_GT(largest_difference(system.position, x), 1e-3);  // it moved
    verlet.reverse();
    run_steps(verlet, 1000);
    EXPECT_LE(largest_difference(system.position, x), 1e-11);
  }
}

/// Runs a built-in system at its default step. Its energy must stay within a fiftieth of m g l/2, which gravity
/// releases.
void hangs_on(const char* name, double seconds, double length = 1) {
  SCOPED_TRACE(name);
  ParticleSystem system = make_builtin_system(name);
  VelocityVerlet verlet(system, {.timestep = system.units.timestep});
  const auto total = [&] { return verlet.energies().potential() + kinetic_energy(system); };
  const double start = total(), mass = std::accumulate(system.mass.begin(), system.mass.end(), 0.0);
  double spread = 0;
  for (int step = 0; verlet.time() < seconds; ++step) {
    const StepReport report = verlet.step(step % 10 == 0);
    ASSERT_TRUE(report.ok) << report.message;
    if (step % 10 == 0) spread = std::max(spread, std::abs(total() - start));
  }
  std::printf("%s: step %.3g s, energy within %.4f of m g l/2\n", name, system.units.timestep,
              spread / (0.5 * 9.81 * mass * length));
  EXPECT_LT(spread, 0.02 * 0.5 * 9.81 * mass * length);
}

// At 1 ms the ropes' ends whip by a radian a step at 1.39 s, and the cloths, without resistance to shear, have a mesh
// sheared into a line after 7.6 s and 6.3 s.
TEST(Conservation, RopesAndClothsRunAtTheirDefaultStep) {
  for (const char* rope : {"rope:30", "rope", "rope:100"}) hangs_on(rope, 3);
  hangs_on("cloth:10x10", 9);
  hangs_on("cloth:20x5", 7, 4 / 19.0);
}

TEST(Conservation, MomentumStaysAtRounding) {
  for (const char* name : {"water216", "chain:200", "c60", "butane125"}) {
    SCOPED_TRACE(name);
    ParticleSystem system = make_builtin_system(name);
    const auto momenta = [&](Vec3d& linear, Vec3d& angular, double& size) {
      linear = angular = zero3<double>(), size = 0;
      for (int i = 0; i < system.particles(); ++i) {
        const Vec3d x{system.position[3 * i], system.position[3 * i + 1], system.position[3 * i + 2]};
        const Vec3d p =
            Vec3d{system.velocity[3 * i], system.velocity[3 * i + 1], system.velocity[3 * i + 2]} * system.mass[i];
        linear += p, angular += cross(x, p), size += norm(p);
      }
    };
    Vec3d before, after, spin_before, spin_after;
    double size = 0;
    momenta(before, spin_before, size);
    const double extent = norm(system.box.length) + 10;
    VelocityVerlet verlet(system, {.timestep = system.units.timestep});
    run_steps(verlet, 200);
    momenta(after, spin_after, size);
    EXPECT_LT(norm(after - before), 1e-13 * size);
    // The periodic box does not conserve angular momentum; open systems do.
    if (!system.box.periodic()) {
      EXPECT_LT(norm(spin_after - spin_before), 1e-13 * size * extent);
    }
  }
}

TEST(Conservation, AnswersDoNotDependOnTheUnitOfLength) {
  for (const char* name : {"chain:50", "c60", "ring:12"}) {
    for (const double unit : {1024.0, 1e-9, 1e7}) {
      SCOPED_TRACE(std::string(name) + " in units of 1/" + std::to_string(unit));
      ParticleSystem a = make_builtin_system(name), b = a;
      b.constraints = ConstraintSet(b.particles());
      for (int k = 0; k < a.constraints.nrow(); ++k) {
        b.constraints.add_distance(a.constraints.row_particles(k)[0], a.constraints.row_particles(k)[1],
                                   unit * a.constraints.value(k));
      }
      for (double& x : b.position) x *= unit;
      for (double& v : b.velocity) v *= unit;
      VelocityVerlet first(a, {.timestep = 0.002}), second(b, {.timestep = 0.002});
      int rounds_a = 0, rounds_b = 0;
      for (int k = 0; k < 50; ++k) {
        rounds_a += first.step().position.iterations, rounds_b += second.step().position.iterations;
      }
      EXPECT_EQ(rounds_a, rounds_b);
      // A power of two changes no bit; other units differ by rounding.
      EXPECT_LE(largest_difference(b.position, a.position, 1 / unit), unit == 1024.0 ? 0.0 : 1e-12);
    }
  }
}

TEST(Conservation, ForcesDoNotDependOnTheUnitOfLength) {
  TARSUS_NEEDS_REFERENCE("water216.sys");
  ParticleSystem angstrom = read_md_system(reference("water216.sys"));
  ParticleSystem nm = converted(angstrom, units_nm_ps());
  set_force_field(angstrom, "spce-shifted-force");
  set_force_field(nm, "spce-shifted-force");
  angstrom.force_field.coulomb.constant = nm.force_field.coulomb.constant * 10 / 4.184;
  std::vector<double> fa(angstrom.position.size()), fb(fa.size());
  Energies ea, eb;
  Forces(angstrom).compute(angstrom.position, fa, &ea);
  Forces(nm).compute(nm.position, fb, &eb);
  EXPECT_NEAR(ea.potential() * 4.184, eb.potential(), 1e-11 * std::abs(eb.potential()));
  EXPECT_LT(largest_difference(fa, fb, 41.84), 1e-8);
}

TEST(Conservation, ThermostatSamplesTheCanonicalKineticEnergy) {
  ParticleSystem system = make_builtin_system("chain:40");
  const int degrees = degrees_of_freedom(system);
  const double kt = system.units.boltzmann * 300;
  VelocityVerlet verlet(system, {.timestep = 0.004, .tolerance = 1e-10});
  verlet.set_thermostat(std::make_unique<Thermostat>(0.5 * degrees * kt, degrees, 0.02, 3));
  double mean = 0, square = 0;
  const int samples = 40000;
  double low = 1e300, high = -1e300;
  for (int k = 0; k < samples; ++k) {
    ASSERT_TRUE(verlet.step(true).ok);
    const double kinetic = kinetic_energy(system);
    mean += kinetic / samples, square += kinetic * kinetic / samples;
    const double conserved = kinetic + verlet.thermostat()->exchanged();
    low = std::min(low, conserved), high = std::max(high, conserved);
  }
  // Gamma distribution: mean f kT/2, variance f (kT)²/2. The correlation time is about 5 steps: 8,000 independent
  // samples.
  EXPECT_NEAR(mean, 0.5 * degrees * kt, 5 * std::sqrt(0.5 * degrees) * kt / std::sqrt(samples / 10.0));
  EXPECT_NEAR((square - mean * mean) / (0.5 * degrees * kt * kt), 1.0, 0.1);
  EXPECT_LT(high - low, 0.02 * mean);  // the thermostat's work is accounted for
}

}  // namespace
}  // namespace tarsus::md_test
