// Forces are minus the gradient of the energy; neighbour lists and cells find every pair; instruction sets agree.
#include "tarsus/particles/forces.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "particles/kernels.hpp"
#include "tarsus/math/cpu.hpp"
#include "tarsus/particles/builtin.hpp"

namespace tarsus {
namespace {

/// A gas of two kinds of charged particles in a box, some bonded.
ParticleSystem gas(int n, double length, bool periodic, LennardJones::Cutoff mode, bool reaction_field, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> place(0, length);
  ParticleSystem system;
  system.units = units_nm_ps();
  for (int i = 0; i < n; ++i) {
    system.mass.push_back(1);
    Vec3d p;
    bool close = true;
    while (close) {
      p = {place(random), place(random), place(random)};
      close = false;
      for (int j = 0; j < i && !close; ++j) {
        double r2 = 0;
        for (int c = 0; c < 3; ++c) {
          double d = p[c] - system.position[3 * j + c];
          if (periodic) d -= length * std::round(d / length);
          r2 += d * d;
        }
        close = r2 < 0.04;
      }
    }
    for (int c = 0; c < 3; ++c)
      system.position.push_back(p[c] + (periodic ? length * static_cast<int>(random() % 5) : 0)),
          system.velocity.push_back(0);
  }
  system.constraints = ConstraintSet(n);
  if (periodic) system.box.length = {length, length, length};
  ForceField& field = system.force_field;
  field.lennard_jones.mix_lorentz_berthelot({1.0, 0.5}, {0.3, 0.25});
  field.lennard_jones.cutoff = 0.9, field.lennard_jones.switch_from = 0.6, field.lennard_jones.mode = mode;
  for (int i = 0; i < n; ++i) {
    field.lennard_jones.type.push_back(i % 2);
    field.coulomb.charge.push_back(i % 3 == 0 ? 0.0 : i % 2 ? 0.5 : -0.5);
  }
  field.coulomb.constant = 138.9;
  if (reaction_field)
    field.coulomb.reaction_field(1.0, 78);
  else
    field.coulomb.shifted_force(1.0);
  for (int i = 0; i + 1 < n; i += 7) field.exclusions.push_back({i, i + 1});
  return system;
}

/// The potential of all pairs, by definition.
double potential_of_pairs(const ParticleSystem& system) {
  const ForceField& field = system.force_field;
  const LennardJones& lj = field.lennard_jones;
  const Coulomb& q = field.coulomb;
  double total = 0;
  for (int i = 0; i < system.particles(); ++i) {
    for (int j = 0; j < i; ++j) {
      double r2 = 0;
      for (int c = 0; c < 3; ++c) {
        double d = system.position[3 * i + c] - system.position[3 * j + c];
        if (system.box.length[c] > 0) d -= system.box.length[c] * std::round(d / system.box.length[c]);
        r2 += d * d;
      }
      const double r = std::sqrt(r2);
      const bool excluded = std::any_of(field.exclusions.begin(), field.exclusions.end(), [&](const auto& e) {
        return (e[0] == j && e[1] == i) || (e[0] == i && e[1] == j);
      });
      const double qq = q.constant * q.charge[i] * q.charge[j], smooth = q.linear * r + q.quadratic * r2 - q.offset;
      if (excluded) {
        double whole = 0;  // excluded pairs take no image
        for (int c = 0; c < 3; ++c) whole += std::pow(system.position[3 * i + c] - system.position[3 * j + c], 2);
        if (whole < q.cutoff * q.cutoff) total += qq * (q.linear * std::sqrt(whole) + q.quadratic * whole - q.offset);
        continue;
      }
      if (r < q.cutoff) total += qq * (1 / r + smooth);
      const int pair = lj.type[i] * lj.types + lj.type[j];
      const auto u = [&](double s) {
        return 4 * lj.epsilon[pair] * (std::pow(lj.sigma[pair] / s, 12) - std::pow(lj.sigma[pair] / s, 6));
      };
      if (r < lj.cutoff) total += u(r) - (lj.mode == LennardJones::Cutoff::shifted ? u(lj.cutoff) : 0.0);
    }
    total -= 0.5 * q.constant * q.offset * q.charge[i] * q.charge[i];
  }
  return total;
}

TEST(Forces, EnergyIsThatOfAllPairsWithAndWithoutCells) {
  // 2.05: no cells; 6: five cells a side.
  for (const auto& [n, length, periodic] :
       {std::tuple{120, 2.05, true}, std::tuple{900, 6.0, true}, std::tuple{600, 6.0, false}}) {
    for (const bool reaction_field : {false, true}) {
      const ParticleSystem system = gas(n, length, periodic, LennardJones::Cutoff::shifted, reaction_field, 3);
      std::vector<double> force(system.position.size());
      Energies energies;
      Forces(system).compute(system.position, force, &energies);
      const double expected = potential_of_pairs(system);
      EXPECT_NEAR(energies.potential(), expected, 1e-11 * (std::abs(expected) + n)) << n << " in " << length;
    }
  }
}

TEST(Forces, AreMinusTheGradient) {
  for (const auto mode : {LennardJones::Cutoff::shifted, LennardJones::Cutoff::force_switch}) {
    for (const bool reaction_field : {false, true}) {
      for (const bool periodic : {false, true}) {
        ParticleSystem system = gas(60, 2.2, periodic, mode, reaction_field, 9);
        ForceField& field = system.force_field;
        field.bonds = {{0, 1, 100, 0.3}, {5, 9, 10, 0.5}};
        field.angles = {{0, 1, 2, 20, 1.9}, {3, 4, 5, 7, 2.5}};
        field.torsions = {{0, 1, 2, 3, 3.0, -0.5, 6.0}, {7, 8, 9, 10, 1, 2, 3}};
        field.springs = {{4, 50, {1, 1, 1}}};
        field.gravity = {0.1, -0.2, 9.0};
        Forces forces(system);
        std::vector<double> force(system.position.size()), scratch(force.size());
        Energies energies, up, down;
        forces.compute(system.position, force, &energies);
        forces.compute(system.position, scratch, nullptr);
        for (std::size_t c = 0; c < force.size(); ++c) EXPECT_EQ(force[c], scratch[c]);  // with energies or without
        for (std::size_t c = 0; c < force.size(); c += 5) {
          // So large that a pair may cross the cutoff: one-sided kinks are of third order there.
          const double h = 1e-6;
          std::vector<double> x = system.position;
          x[c] += h;
          forces.compute(x, scratch, &up);
          x[c] -= 2 * h;
          forces.compute(x, scratch, &down);
          const double slope = (up.potential() - down.potential()) / (2 * h);
          EXPECT_NEAR(force[c], -slope, 1e-5 * (1 + std::abs(slope))) << c;
        }
      }
    }
  }
}

TEST(Forces, VirialIsTheDerivativeUnderStretching) {
  ParticleSystem system = gas(80, 2.4, false, LennardJones::Cutoff::force_switch, false, 4);
  system.force_field.bonds = {{0, 1, 100, 0.3}};
  system.force_field.angles = {{0, 1, 2, 20, 1.9}};
  system.force_field.torsions = {{0, 1, 2, 3, 3.0, -0.5, 6.0}};
  Forces forces(system);
  std::vector<double> force(system.position.size());
  Energies energies, up, down;
  forces.compute(system.position, force, &energies);
  constexpr int kDiagonal[3] = {0, 3, 5};
  for (int c = 0; c < 3; ++c) {
    const double h = 1e-6;
    std::vector<double> x = system.position;
    for (std::size_t i = c; i < x.size(); i += 3) x[i] *= 1 + h;
    forces.compute(x, force, &up);
    x = system.position;
    for (std::size_t i = c; i < x.size(); i += 3) x[i] *= 1 - h;
    forces.compute(x, force, &down);
    const double slope = (up.potential() - down.potential()) / (2 * h);
    EXPECT_NEAR(energies.virial[kDiagonal[c]], -slope, 1e-5 * (1 + std::abs(slope)));
  }
}

// A list kept over many small moves gives what a fresh one gives.
TEST(Forces, AnOldListMissesNoPair) {
  ParticleSystem system = gas(500, 4.0, true, LennardJones::Cutoff::shifted, false, 8);
  Forces kept(system);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> move(-0.02, 0.02);
  std::vector<double> a(system.position.size()), b(a.size());
  for (int round = 0; round < 60; ++round) {
    for (double& x : system.position) x += move(random);
    Energies ea, eb;
    kept.compute(system.position, a, &ea);
    Forces(system).compute(system.position, b, &eb);
    EXPECT_NEAR(ea.potential(), eb.potential(), 1e-9 * (1 + std::abs(eb.potential()))) << round;
  }
  EXPECT_GT(kept.list_builds(), 5);
  EXPECT_LT(kept.list_builds(), 61);
}

TEST(Forces, RefuseACutoffBeyondHalfTheBox) {
  ParticleSystem system = gas(20, 1.9, true, LennardJones::Cutoff::shifted, false, 8);
  EXPECT_THROW(Forces{system}, ValueError);
}

#if defined(TARSUS_HAS_baseline) && defined(TARSUS_HAS_avx2)  // a build for one set has nothing to compare
TEST(Forces, InstructionSetsAgree) {
  if (isa_level() < IsaLevel::avx2) GTEST_SKIP() << "this processor has no AVX2";
  const ParticleKernels a = isa_baseline::make_table<ParticleKernels>(false),
                        b = isa_avx2::make_table<ParticleKernels>(false);
  std::mt19937 random(2);
  std::uniform_real_distribution<double> value(-1, 1);
  // Candidates: the same set, whatever the range.
  std::vector<double> x(103), y(103), z(103);
  std::vector<int> id(103 + kListPadding), first(120), second(120);
  for (int i = 0; i < 103; ++i) x[i] = value(random), y[i] = value(random), z[i] = value(random), id[i] = 1000 + i;
  const CandidateArgs search{x.data(), y.data(), z.data(), id.data(), {1.5, 1.5, 0}, {1 / 1.5, 1 / 1.5, 0}, 0.36};
  for (int from = 0; from < 20; ++from) {
    const int to = 103 - from / 2;
    const int na = a.candidates(search, 0.1, 0.2, 0.3, from, to, first.data()),
              nb = b.candidates(search, 0.1, 0.2, 0.3, from, to, second.data());
    ASSERT_EQ(na, nb);
    for (int k = 0; k < na; ++k) ASSERT_EQ(first[k], second[k]);
  }
  // Triangles: the same solution to rounding.
  TriangleBatch batch{};
  batch.used = 4;
  std::vector<double> x0(36), xa(36);
  for (int i = 0; i < 36; ++i) x0[i] = value(random) + 4 * (i / 9), xa[i] = x0[i] + 0.02 * value(random);
  for (int lane = 0; lane < 4; ++lane) {
    constexpr int kEnds[3][2] = {{0, 1}, {0, 2}, {1, 2}};
    for (int k = 0; k < 3; ++k) {
      batch.particle[k][lane] = 3 * lane + k, batch.row[k][lane] = 3 * lane + k, batch.inverse_mass[k][lane] = 1.0 + k;
      double d2 = 0;
      for (int c = 0; c < 3; ++c)
        d2 += std::pow(x0[9 * lane + 3 * kEnds[k][0] + c] - x0[9 * lane + 3 * kEnds[k][1] + c], 2);
      batch.length2[k][lane] = d2, batch.inverse_length2[k][lane] = 1 / d2;
    }
  }
  std::vector<double> xb = xa, la(12), lb(12);
  const LaneReport ra = a.triangle_positions(&batch, 1, {x0.data(), xa.data(), la.data(), 1e-14, 60, 1.0});
  const LaneReport rb = b.triangle_positions(&batch, 1, {x0.data(), xb.data(), lb.data(), 1e-14, 60, 1.0});
  EXPECT_FALSE(ra.failed);
  EXPECT_FALSE(rb.failed);
  for (int i = 0; i < 36; ++i) EXPECT_NEAR(xa[i], xb[i], 1e-12);
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(la[i], lb[i], 1e-11);
}

TEST(Forces, InstructionSetsNameTheSameRowOfWhatCannotBeSolved) {
  if (isa_level() < IsaLevel::avx2) GTEST_SKIP() << "this processor has no AVX2";
  constexpr int kSpare = 3;  // where lanes without a triangle store their multipliers
  const double start[9] = {0, 0, 0, 0.1, 0, 0, 0, 0.1, 0}, length[3] = {0.1, 0.1, 107}, mass[3] = {16, 1, 1};
  TriangleBatch batch{};
  batch.used = 1;
  for (int lane = 0; lane < kLaneBatch; ++lane) {
    for (int k = 0; k < 3; ++k) {
      batch.particle[k][lane] = k, batch.row[k][lane] = lane < batch.used ? k : kSpare;
      batch.inverse_mass[k][lane] = 1 / mass[k];
      batch.length2[k][lane] = length[k] * length[k], batch.inverse_length2[k][lane] = 1 / batch.length2[k][lane];
    }
  }
  for (const ParticleKernels& kernels :
       {isa_baseline::make_table<ParticleKernels>(false), isa_avx2::make_table<ParticleKernels>(false)}) {
    double x[9], multiplier[4];
    std::copy_n(start, 9, x);
    const LaneReport report = kernels.triangle_positions(&batch, 1, {start, x, multiplier, 1e-10, 60, 0.001});
    EXPECT_TRUE(report.failed);
    EXPECT_GE(report.worst_row, 0);
    EXPECT_LT(report.worst_row, kSpare);
  }
}
#endif

}  // namespace
}  // namespace tarsus
