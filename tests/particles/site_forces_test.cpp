// Forces of waters by pairs of molecules: equal to the forces pair by pair, no pair missed, the same bits for any
// number of threads.
#include <gtest/gtest.h>

#include <cmath>

#include "md_reference.hpp"
#include "tarsus/particles/builtin.hpp"
#include "tarsus/particles/forces.hpp"

namespace tarsus {
namespace {

/// Equilibrated water, copied `times` along each axis.
ParticleSystem water(int times, const char* forces) {
  static const ParticleSystem one = make_builtin_system("water216");  // equilibrated once
  const int n = one.particles();
  ParticleSystem many = one;
  many.mass.clear(), many.position.clear(), many.velocity.clear(), many.species.clear(), many.molecule.clear();
  many.constraints = ConstraintSet(n * times * times * times);
  for (int cell = 0; cell < times * times * times; ++cell) {
    const int step[3] = {cell % times, cell / times % times, cell / times / times};
    for (int i = 0; i < n; ++i) {
      many.mass.push_back(one.mass[i]);
      for (int c = 0; c < 3; ++c) {
        many.position.push_back(one.position[3 * i + c] + step[c] * one.box.length[c]);
        many.velocity.push_back(one.velocity[3 * i + c]);
      }
    }
    for (int k = 0; k < one.constraints.nrow(); ++k) {
      const auto ends = one.constraints.row_particles(k);
      many.constraints.add_distance(ends[0] + cell * n, ends[1] + cell * n, one.constraints.value(k));
    }
  }
  many.box.length = one.box.length * double(times);
  set_force_field(many, forces);
  return many;
}

/// The same system with one more particle that no force acts on. It then no longer consists of molecules of three
/// alone, so its forces are computed pair by pair.
ParticleSystem with_a_ghost(ParticleSystem system) {
  system.mass.push_back(1);
  for (int c = 0; c < 3; ++c) system.position.push_back(0.01), system.velocity.push_back(0);
  system.species.clear(), system.molecule.clear();
  system.constraints = ConstraintSet(system.particles());
  system.force_field.lennard_jones.type.push_back(1);
  system.force_field.coulomb.charge.push_back(0);
  return system;
}

void expect_as_pair_by_pair(const ParticleSystem& system) {
  const std::size_t n3 = system.position.size();
  std::vector<double> force(n3), expected(n3 + 3), without_energy(n3);
  Energies energies, expected_energies;
  Forces sites(system);
  sites.compute(system.position, force, &energies);
  Forces(system).compute(system.position, without_energy, nullptr);
  const ParticleSystem ghost = with_a_ghost(system);
  Forces pairs(ghost);
  pairs.compute(ghost.position, expected, &expected_energies);
  EXPECT_EQ(sites.list_pairs() % 9, 0);
  EXPECT_NE(sites.list_pairs(), pairs.list_pairs());  // two algorithms, not one twice
  double largest = 0;
  for (const double f : expected) largest = std::max(largest, std::abs(f));
  for (std::size_t c = 0; c < n3; ++c) {
    ASSERT_NEAR(force[c], expected[c], 1e-13 * largest) << c;
    ASSERT_EQ(force[c], without_energy[c]) << c;
  }
  // Coulomb's sum is the difference of parts a hundred times its size.
  const double size = std::abs(expected_energies.coulomb);
  EXPECT_NEAR(energies.lennard_jones, expected_energies.lennard_jones, 1e-12 * size);
  EXPECT_NEAR(energies.coulomb, expected_energies.coulomb, 1e-12 * size);
  for (int c = 0; c < 6; ++c) EXPECT_NEAR(energies.virial[c], expected_energies.virial[c], 1e-11 * size) << c;
}

TEST(SiteForces, AreThoseOfPairsOneByOne) {
  for (const int times : {1, 2}) {
    for (const char* forces : {"spce-smooth", "spce-shifted-force", "spce-lammps-dsf", "spce-reaction-field"}) {
      SCOPED_TRACE(std::string(forces) + " " + std::to_string(times));
      expect_as_pair_by_pair(water(times, forces));
    }
  }
}

TEST(SiteForces, OpenAndHalfOpenBoxesAndMoleculesFarFromTheBox) {
  for (const int open : {1, 2, 4, 7}) {
    ParticleSystem system = water(1, "spce-shifted-force");
    for (int c = 0; c < 3; ++c) {
      if (open >> c & 1) system.box.length[c] = 0;
    }
    for (int i = 0; i < system.particles(); ++i) {
      for (int c = 0; c < 3; ++c) system.position[3 * i + c] += system.box.length[c] * (i / 3 % 7 - 3);
    }
    SCOPED_TRACE(open);
    expect_as_pair_by_pair(system);
  }
}

TEST(SiteForces, AnOldListMissesNoPair) {
  ParticleSystem system = water(1, "spce-shifted-force");
  set_temperature(system, 600, 5);
  VelocityVerlet verlet(system, {.timestep = 2.0});
  for (int step = 0; step < 120; ++step) {
    ASSERT_TRUE(verlet.step(true).ok);
    std::vector<double> force(system.position.size());
    Energies fresh;
    Forces(system).compute(system.position, force, &fresh);
    ASSERT_NEAR(verlet.energies().potential(), fresh.potential(), 1e-9 * std::abs(fresh.potential())) << step;
  }
  EXPECT_GT(verlet.forces().list_builds(), 8);
  EXPECT_LT(verlet.forces().list_builds(), 60);
}

// One water approaches another from just outside the lists' radii, in steps that use up the skins gradually.
TEST(SiteForces, OldListsGiveTheForcesOfNewOnes) {
  const ParticleSystem many = water(1, "spce-shifted-force");
  ParticleSystem two = many;
  two.mass.resize(6), two.position.resize(18), two.velocity.resize(18), two.species.clear(), two.molecule.clear();
  two.constraints = ConstraintSet(6);
  two.box = {};
  for (int c = 0; c < 9; ++c) two.position[9 + c] = two.position[c];
  set_force_field(two, "spce-shifted-force");
  const double cutoff = two.force_field.lennard_jones.cutoff;
  for (int start = 100; start < 140; ++start) {
    ParticleSystem system = two;
    const auto come = [&](double way) {
      for (int i = 3; i < 6; ++i) system.position[3 * i] += way * cutoff;
    };
    come(0.01 * start);
    Forces old(system);
    std::vector<double> force(18), expected(18);
    old.compute(system.position, force, nullptr);
    EXPECT_EQ(old.list_pairs(), start < 132 ? 9 : 0) << start;  // cutoff, skin and twice the extent: 1.315
    for (int step = 0; step < 20; ++step, come(-0.009)) {
      old.compute(system.position, force, nullptr);
      Forces(system).compute(system.position, expected, nullptr);
      double largest = 0;
      for (const double f : expected) largest = std::max(largest, std::abs(f));
      for (int c = 0; c < 18; ++c) ASSERT_NEAR(force[c], expected[c], 1e-12 * largest) << start << " " << step;
    }
    EXPECT_LT(old.list_builds(), 10);
  }
}

// Rotation alone needs no new list, stretching does. Molecules that come apart are computed pair by pair.
TEST(SiteForces, MoleculesThatComeApartAreStillComputed) {
  ParticleSystem system = water(1, "spce-shifted-force");
  Forces kept(system);
  std::vector<double> force(system.position.size()), expected(system.position.size() + 3);
  for (const double stretch : {0.0, 0.02, 0.3, 3.0, 6.0, 0.0}) {
    ParticleSystem moved = system;
    for (int k = 1; k < moved.particles(); k += 30) moved.position[3 * k] += stretch;
    Energies energies, expected_energies;
    kept.compute(moved.position, force, &energies);
    const ParticleSystem ghost = with_a_ghost(moved);
    Forces(ghost).compute(ghost.position, expected, &expected_energies);
    EXPECT_NEAR(energies.potential(), expected_energies.potential(), 1e-10 * std::abs(expected_energies.potential()))
        << stretch;
  }
}

TEST(SiteForces, AnyNumberOfThreadsGivesTheSameBits) {
  for (const int times : {1, 2}) {
    std::vector<double> x, v;
    double energy = 0;
    for (const int threads : {1, 2, 3}) {
      ParticleSystem system = water(times, "spce-smooth");
      VelocityVerlet verlet(system, {.timestep = 2.0, .threads = threads});
      EXPECT_EQ(verlet.threads(), times == 1 ? 1 : ThreadTeam::useful(threads));  // too few particles to share
      for (int step = 0; step < 30; ++step) ASSERT_TRUE(verlet.step(step % 10 == 9).ok);
      EXPECT_GT(verlet.forces().list_builds(), 1);
      if (threads == 1) x = system.position, v = system.velocity, energy = verlet.energies().potential();
      EXPECT_EQ(system.position, x) << threads;
      EXPECT_EQ(system.velocity, v) << threads;
      EXPECT_EQ(verlet.energies().potential(), energy) << threads;
    }
  }
}

// Chains and a net in threads: rows across the cuts stay with one thread.
TEST(SiteForces, OtherSystemsInThreadsToo) {
  for (const char* name : {"chain:4000", "butane125", "cloth:61x61", "c60"}) {
    std::vector<double> x;
    for (const int threads : {1, 3}) {
      ParticleSystem system = make_builtin_system(name);
      VelocityVerlet verlet(system, {.timestep = 0.25 * system.units.timestep, .threads = threads});
      for (int step = 0; step < 20; ++step) ASSERT_TRUE(verlet.step().ok) << name;
      if (threads == 1) x = system.position;
      EXPECT_EQ(system.position, x) << name;
    }
  }
}

TEST(SiteForces, TrajectoriesThatLeaveRealityAreStillReported) {
  ParticleSystem system = water(1, "spce-shifted-force");
  VelocityVerlet verlet(system, {.timestep = 2.0, .threads = 2});
  ASSERT_TRUE(verlet.step().ok);
  system.velocity[100] = std::nan("");
  EXPECT_FALSE(verlet.step().ok);
}

}  // namespace
}  // namespace tarsus
