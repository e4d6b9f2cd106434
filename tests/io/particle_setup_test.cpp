// Forces and constraints from JSON: the same numbers as those set in C++, and every fault with its location.
#include "tarsus/io/particle_setup.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tarsus/io/particle_source.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/particles/builtin.hpp"
#include "tarsus/particles/verlet.hpp"

namespace tarsus {
namespace {

void expect_same_forces(const ParticleSystem& a, const ParticleSystem& b) {
  std::vector<double> fa(a.position.size()), fb(fa.size());
  Energies ea, eb;
  Forces(a).compute(a.position, fa, &ea);
  Forces(b).compute(b.position, fb, &eb);
  double size = 0;
  for (const double f : fa) size = std::max(size, std::abs(f));
  EXPECT_GT(size, 0);
  for (std::size_t i = 0; i < fa.size(); ++i) ASSERT_NEAR(fa[i], fb[i], 1e-12 * size) << i;
  const double parts[][2] = {
      {ea.lennard_jones, eb.lennard_jones}, {ea.coulomb, eb.coulomb}, {ea.bonds, eb.bonds},    {ea.angles, eb.angles},
      {ea.torsions, eb.torsions},           {ea.springs, eb.springs}, {ea.gravity, eb.gravity}};
  for (const auto& [x, y] : parts) EXPECT_NEAR(x, y, 1e-12 * std::abs(x));
}

TEST(ParticleSetup, ButaneIsTheBuiltInOne) {
  const ParticleSystem built_in = make_builtin_system("butane125");
  ParticleSystem system = built_in;
  system.force_field = {};
  const double k = system.units.boltzmann;
  apply_particle_setup(system,
                       fmt::format(R"({{"units": "nm_ps", "molecule": ["A", "B", "B", "A"],
        "types": {{"A": {{"epsilon": {}, "sigma": 0.375}}, "B": {{"epsilon": {}, "sigma": 0.395}}}},
        "lennard_jones": {{"cutoff": 1.1, "switch_from": 0.9, "form": "force_switch"}},
        "angles": [[0, 1, 2, {}, 114], [1, 2, 3, {}, 114]], "torsions": [[0, 1, 2, 3, {}, {}, {}]]}})",
                                   98 * k, 46 * k, 62500 * k, 62500 * k, 355.03 * k, -68.19 * k, 791.32 * k),
                       "butane.json");
  expect_same_forces(built_in, system);
}

TEST(ParticleSetup, EveryWaterIsTheBuiltInOne) {
  struct Case {
    const char *name, *form, *more;
  };
  const ParticleSystem water = converted(make_builtin_system("water216"), units_nm_ps());
  for (const Case& c : {Case{"spce-shifted-force", "shifted_force", ""},
                        Case{"spce-reaction-field", "reaction_field", R"(, "epsilon_outside": 0)"},
                        Case{"spce-lammps-dsf", "shifted_force", R"(, "bare": 0.999999999)"}}) {
    SCOPED_TRACE(c.name);
    ParticleSystem named = water, system = water;
    set_force_field(named, c.name);
    apply_particle_setup(system,
                         fmt::format(R"({{"molecule": ["O", "H", "H"],
        "types": {{"O": {{"epsilon": {:.17g}, "sigma": 0.3166, "charge": -0.8476}}, "H": {{"charge": 0.4238}}}},
        "lennard_jones": {{"cutoff": 0.85}}, "coulomb": {{"cutoff": 0.85, "form": "{}"{}}}}})",
                                     0.1553 * 4.184, c.form, c.more),
                         "water.json");
    expect_same_forces(named, system);
  }
}

// A pair at distance r, with energies in closed form.
TEST(ParticleSetup, FormsOfOnePair) {
  const double r = 1.25, s6 = std::pow(r, -6), t6 = std::pow(2.0, -6), qq = -0.5;
  const auto energy = [&](const std::string& setup) {
    ParticleSystem system;
    system.mass = {1, 1}, system.position = {0, 0, 0, r, 0, 0}, system.velocity.assign(6, 0.0);
    system.species = {"A", "B"};
    apply_particle_setup(system, setup, "pair.json");
    std::vector<double> force(6);
    Energies e;
    Forces(system).compute(system.position, force, &e);
    return e.potential();
  };
  const std::string types =
      R"({"types": {"A": {"epsilon": 4, "sigma": 1, "charge": 1}, "B": {"epsilon": 1, "sigma": 1, "charge": -0.5}}, )";
  const double lj = 4 * 2 * (s6 * s6 - s6), shift = 4 * 2 * (t6 * t6 - t6);
  EXPECT_NEAR(energy(types + R"("lennard_jones": {"cutoff": 2, "form": "plain"}})"), lj, 1e-14);
  EXPECT_NEAR(energy(types + R"("lennard_jones": {"cutoff": 2}})"), lj - shift, 1e-14);
  EXPECT_NEAR(energy(types + R"("lennard_jones": {"cutoff": 1.2}})"), 0, 1e-14);
  EXPECT_NEAR(energy(types + R"("lennard_jones": {"cutoff": 2, "form": "plain", "pairs": {"B A": [6, 1]}}})"), 3 * lj,
              1e-14);
  const auto coulomb = [&](const char* form) {
    return energy(types + R"("coulomb": {"cutoff": 2, "corrections": false, "form": ")" + form + "\"}}");
  };
  EXPECT_NEAR(coulomb("plain"), qq / r, 1e-14);
  EXPECT_NEAR(coulomb("shifted"), qq * (1 / r - 0.5), 1e-14);
  EXPECT_NEAR(coulomb("shifted_force"), qq * (1 / r - 1 + r / 4), 1e-14);
  EXPECT_NEAR(coulomb("shifted_gradient"), qq * (1 / r - 1.5 + 3 * r / 4 - r * r / 8), 1e-14);
  EXPECT_NEAR(coulomb("reaction_field"), qq * (1 / r + r * r / 16 - 0.75), 1e-14);
  const double k = (78.5 - 1) / (2 * 78.5 + 1) / 8, c = 0.5 + k * 4;
  EXPECT_NEAR(energy(types + R"("coulomb": {"cutoff": 2, "corrections": false, "form": "reaction_field",
                     "epsilon_outside": 78.5}})"),
              qq * (1 / r + k * r * r - c), 1e-14);
}

TEST(ParticleSetup, ConstraintsPinsAndPlacesHoldInARun) {
  ParticleSystem system;
  system.units = units_reduced();
  system.mass.assign(8, 1.0);
  for (int m = 0; m < 2; ++m) {
    for (const Vec3d& p : {Vec3d{0, 0, 0}, Vec3d{1, 0, 0}, Vec3d{1.5, 0.8, 0}, Vec3d{2.4, 0.9, 0.4}})
      system.position.insert(system.position.end(), {p.x, p.y + 5.0 * m, p.z});
  }
  system.velocity.assign(24, 0.0);
  system.velocity[14] = 0.3;
  apply_particle_setup(system, R"({"molecule": ["A", "A", "A", "A"], "gravity": [0, 0, -1], "pinned": [0],
      "distances": [[0, 1, 1], [1, 2, 1], [2, 3, 1]], "rigid_angles": [[0, 1, 2, 120]],
      "rigid_torsions": [[0, 1, 2, 3, 60]], "planes": [[4, 0, 5, 0, 0, 0, 1]], "spheres": [[7, 2.4, 5.9, 3.4, 3]],
      "springs": [[5, 2, 0, 0, 0]]})",
                       "all.json");
  EXPECT_EQ(system.constraints.nrow(), 2 * 5 + 2);
  prepare(system, 1e-12, 0.002);
  VelocityVerlet verlet(system, {.timestep = 0.002});
  for (int k = 0; k < 500; ++k) {
    const StepReport report = verlet.step();
    ASSERT_TRUE(report.ok) << report.message;
  }
  EXPECT_LE(largest_violation_at(system.constraints, system.position).value, 1e-12);
  EXPECT_EQ(system.position[2], 0.0);            // pinned
  EXPECT_NEAR(system.position[14], 0.0, 1e-12);  // on the plane z = 0
  EXPECT_LT(system.position[8], -0.01);          // fell
  for (int m = 0; m < 2; ++m) {
    double bent[9];
    std::copy_n(&system.position[12 * m], 9, bent);
    EXPECT_NEAR(bond_angle(std::span<const double, 9>(bent), {}) * 180 / kPi, 120, 1e-9);
    double turned[12];
    std::copy_n(&system.position[12 * m], 12, turned);
    EXPECT_NEAR(torsion_angle(std::span<const double, 12>(turned), {}) * 180 / kPi, 60, 1e-9);
  }
}

TEST(ParticleSetup, FaultsAreNamedWithTheirPlaceAndLeaveTheSystem) {
  struct Case {
    const char *text, *expected;
  };
  for (const Case& c : {
           Case{"", "setup.json:1"},
           Case{"[1]", "an object is expected"},
           Case{"{\n \"gravty\": [0, 0, 1]}", "setup.json:2:12"},
           Case{R"({"units": "si"})", "but the system is in nm_ps"},
           Case{R"({"molecule": ["A", "B"]})", "3 particles cannot be divided into molecules of 2"},
           Case{R"({"molecule": []})", "cannot be divided"},
           Case{R"({"types": {"O": {"epsilon": -1, "sigma": 1}, "H": {}}})", "types/O/epsilon"},
           Case{R"({"types": {"O": {"epsilon": 1}, "H": {}}})", "types/O/sigma"},
           Case{R"({"types": {"O": {}}})", "particle 1 has type 'H'"},
           Case{R"({"types": {"O": {}, "H": {}}, "gravity": [0, 0, 1]})", "without effect"},
           Case{R"({"exclude": [[0, 1]]})", "without effect"},
           Case{R"({"types": {"O": {"mass": 1}, "H": {}}})", "mass"},
           Case{R"({"lennard_jones": {"cutoff": 1}})", "needs \"types\""},
           Case{R"({"types": {"O": {}, "H": {}}, "lennard_jones": {}})", "lennard_jones/cutoff"},
           Case{R"({"types": {"O": {}, "H": {}}, "lennard_jones": {"cutoff": -1}})", "-1 is not a positive number"},
           Case{R"({"types": {"O": {}, "H": {}}, "lennard_jones": {"cutoff": 1, "form": "magic"}})", "'magic'"},
           Case{R"({"types": {"O": {}, "H": {}}, "lennard_jones": {"cutoff": 1, "switch_from": 0.5}})", "force_switch"},
           Case{R"({"types": {"O": {}, "H": {}}, "lennard_jones": {"cutoff": 1, "form": "force_switch"}})",
                "is missing"},
           Case{R"({"types": {"O": {}, "H": {}}, "lennard_jones": {"cutoff": 1, "form": "force_switch",
                   "switch_from": 1}})",
                "is not below the cutoff"},
           Case{R"({"types": {"O": {}, "H": {}}, "lennard_jones": {"cutoff": 1, "mixing": "x"}})", "geometric"},
           Case{R"({"types": {"O": {}, "H": {}}, "lennard_jones": {"cutoff": 1, "pairs": {"O X": [1, 1]}}})",
                "two types"},
           Case{R"({"types": {"O": {}, "H": {}}, "lennard_jones": {"cutoff": 1, "pairs": {"O H": [1, -1]}}})",
                "positive"},
           Case{R"({"types": {"O": {}, "H": {}}, "coulomb": {"cutoff": 1, "form": "ewald"}})", "'ewald'"},
           Case{R"({"types": {"O": {}, "H": {}}, "coulomb": {"cutoff": 1, "epsilon_outside": 3}})", "reaction_field"},
           Case{R"({"coulomb": {"cutoff": 1}})", "needs \"types\""},
           Case{R"({"types": {"O": {}, "H": {}}, "coulomb": {"cutoff": 1, "form": "reaction_field",
                   "epsilon_outside": -2}})",
                "-2 is negative"},
           Case{R"({"exclude": "some"})", "\"none\""},
           Case{R"({"exclude": [[0, 0]]})", "two particles"},
           Case{R"({"bonds": [[0, 3, 1, 1]]})", "3 is not a particle, expected 0 to 2"},
           Case{R"({"bonds": [[0, 0.5, 1, 1]]})", "0.5 is not a particle"},
           Case{R"({"bonds": [[0, 1, 1]]})", "bonds[0]"},
           Case{R"({"bonds": [[0, 1, 1, 1], [1, 1, 1, 1]]})", "bonds[1]"},
           Case{R"({"bonds": 3})", "an array of arrays"},
           Case{R"({"bonds": [1, 2, 3, 4]})", "an array of arrays"},
           Case{R"({"angles": [[0, 1, 0, 1, 1]]})", "each particle only once"},
           Case{R"({"springs": [[0, -5, 0, 0, 0]]})", "stiffness of the spring of particle 0: is -5"},
           Case{R"({"bonds": [[0, 1, -5, 1]]})", "stiffness of the bond of particles 0, 1: is -5"},
           Case{R"({"bonds": [[0, 1, 5, -1]]})", "length of the bond of particles 0, 1: is -1"},
           Case{R"({"angles": [[0, 1, 2, -5, 90]]})", "stiffness of the angle of particles 0, 1, 2: is -5"},
           Case{R"({"angles": [[0, 1, 2, 5, 200]]})", "expected a number from 0 to 3.14159"},
           Case{R"({"distances": [[0, 1, -1]]})", "distances[0]"},
           Case{R"({"distances": [[0, 0, 1]]})", "distances[0]"},
           Case{R"({"rigid_angles": [[0, 1, 2, 180]]})", "strictly between 0 and pi"},
           Case{R"({"planes": [[0, 0, 0, 0, 0, 0, 0]]})", "planes[0]"},
           Case{R"({"spheres": [[0, 0, 0, 0, -1]]})", "spheres[0]"},
           Case{R"({"pinned": [0, 7]})", "7 is not a particle"},
           Case{R"({"pinned": "all"})", "an array of particles"},
           Case{R"({"gravity": [0, 1]})", "3 numbers is expected, not 2"},
           Case{R"({"gravity": [0, 0, "x"]})", "3 numbers is expected, not one with other elements"},
           Case{R"({"gravity": [0, 1, 1e999]})", "setup.json:1"},
           Case{R"({"gravity": [0, 1, NaN]})", "setup.json:1"},
       }) {
    SCOPED_TRACE(c.text);
    ParticleSystem system;
    system.units = units_nm_ps();
    system.mass.assign(3, 1.0), system.species = {"O", "H", "H"};
    system.position = {0, 0, 0, 1, 0, 0, 0, 1, 0}, system.velocity.assign(9, 0.0);
    system.constraints = ConstraintSet(3);
    std::string message;
    try {
      apply_particle_setup(system, c.text, "setup.json");
    } catch (const InputError& error) {
      message = error.what();
    }
    EXPECT_NE(message.find(c.expected), std::string::npos) << message;
    EXPECT_NE(message.find("setup.json"), std::string::npos) << message;
    EXPECT_EQ(system.constraints.nrow(), 0);
    EXPECT_TRUE(system.force_field.empty() && system.pinned.empty() && system.molecule.empty());
  }
}

TEST(ParticleSetup, PinsAloneLeaveTheForcesAsTheyAre) {
  ParticleSystem system = make_builtin_system("water216");
  const auto pull = [&] { return system.force_field.lennard_jones.cutoff; };
  const double before = pull();
  EXPECT_FALSE(apply_particle_setup(system, R"({"pinned": [0], "spheres": [[3, 0, 0, 0, 5]]})", "pins.json"));
  EXPECT_EQ(pull(), before);
  EXPECT_FALSE(system.force_field.empty());
  EXPECT_TRUE(apply_particle_setup(system, R"({"gravity": [0, 0, -1]})", "gravity.json"));
  EXPECT_TRUE(system.force_field.lennard_jones.type.empty());
  EXPECT_EQ(system.pinned[0], 1);
}

TEST(ParticleSetup, ACutoffBeyondHalfTheBoxIsRefused) {
  ParticleSystem system = make_builtin_system("water:27");
  EXPECT_THROW(apply_particle_setup(system, R"({"molecule": ["O", "H", "H"], "types": {"O": {"epsilon": 1, "sigma": 3},
               "H": {}}, "lennard_jones": {"cutoff": 8}})",
                                    "big.json"),
               InputError);
}

TEST(ParticleSource, NamesWhatItCannotLoad) {
  Diagnostics notes;
  const auto message = [&](const ParticleSource& source) -> std::string {
    try {
      load_particles(source, notes);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message({.system = "nosuch"}).find("water216"), std::string::npos);
  EXPECT_NE(message({.system = "chain:1"}).find("chain"), std::string::npos);
  EXPECT_NE(message({.system = "chain:8", .setup = "/nosuch.json"}).find("/nosuch.json"), std::string::npos);
  EXPECT_NE(message({.system = "chain:8", .units = "parsec"}).find("nm_ps"), std::string::npos);
  EXPECT_NE(message({.system = "chain:8", .cutoff = 1}).find("LAMMPS"), std::string::npos);
  EXPECT_NE(message({.system = "x.sys", .rigid_bonds = {1}}).find("LAMMPS"), std::string::npos);
  EXPECT_EQ(load_particles({.system = "chain:8"}, notes).particles(), 8);
}

}  // namespace
}  // namespace tarsus
