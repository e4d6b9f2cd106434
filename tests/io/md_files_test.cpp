// Particle files: reading, writing, and every kind of bad input with its location.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/grouped_digits.hpp"
#include "tarsus/io/lammps_data.hpp"
#include "tarsus/io/md_system.hpp"
#include "tarsus/io/particle_source.hpp"
#include "tarsus/io/xyz.hpp"
#include "tarsus/particles/builtin.hpp"

namespace tarsus {
namespace {

const std::string kGood =
    "# two particles; units Angstrom, fs, g/mol\r\n\nnatoms 2\nnconstraints 1\nbox 10 11. +12\natoms  # index mass x y "
    "z vx vy vz\n"
    "1 2.5 .5 1e-3 -2 0 0 0\n0 1 0 0 0 1 2 3 # a comment\nconstraints\n0 1 1.5\n";

std::string message_of(const std::string& text) {
  try {
    parse_md_system(text, "a.sys");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(SysFile, ReadsAllOfIt) {
  const ParticleSystem system = parse_md_system(kGood, "a.sys");
  EXPECT_EQ(system.units.name, "angstrom_fs");
  EXPECT_EQ(system.mass, (std::vector<double>{1, 2.5}));
  EXPECT_EQ(system.position, (std::vector<double>{0, 0, 0, 0.5, 1e-3, -2}));
  EXPECT_EQ(system.velocity, (std::vector<double>{1, 2, 3, 0, 0, 0}));
  EXPECT_EQ(system.box.length.y, 11);
  ASSERT_EQ(system.constraints.nrow(), 1);
  EXPECT_EQ(system.constraints.value(0), 1.5);
  EXPECT_EQ(parse_md_system(replaced(kGood, "box 10 11. +12", "box none"), "a").box.periodic(), false);
  EXPECT_EQ(parse_md_system("\xEF\xBB\xBF" + kGood, "a").particles(), 2);
}

TEST(SysFile, WritingAndReadingBackChangesNoBit) {
  for (const char* name : {"chain:20", "water1", "c60", "water:27"}) {
    const ParticleSystem system = make_builtin_system(name);
    std::ostringstream out;
    write_md_system(out, system);
    const ParticleSystem back = parse_md_system(out.str(), "written");
    EXPECT_EQ(back.position, system.position);
    EXPECT_EQ(back.velocity, system.velocity);
    EXPECT_EQ(back.mass, system.mass);
    EXPECT_EQ(back.units.name, system.units.name);
    ASSERT_EQ(back.constraints.nrow(), system.constraints.nrow());
    for (int k = 0; k < back.constraints.nrow(); ++k) EXPECT_EQ(back.constraints.value(k), system.constraints.value(k));
  }
}

TEST(SysFile, UnitsAreWrittenAndReadWhateverTheFilesName) {
  for (const Units& units : {units_nm_ps(), units_angstrom_fs(), units_si(), units_reduced()}) {
    ParticleSystem system = make_builtin_system("pendulum2");
    system.units = units, system.name = "angstrom_offsets_nm_ps_units si";
    std::ostringstream out;
    write_md_system(out, system);
    EXPECT_EQ(parse_md_system(out.str(), "written").units.name, units.name) << out.str();
  }
  // Some files give the units without the word.
  const char* atoms = "\nnatoms 1\nbox none\natoms\n0 1 0 0 0 0 0 0\n";
  EXPECT_EQ(parse_md_system(std::string("# Angstrom, fs") + atoms, "x").units.name, "angstrom_fs");
}

TEST(SysFile, ACommentWithTheWordUnitsDecides) {
  const auto units = [](const std::string& comments) {
    return parse_md_system(comments + "\nnatoms 1\nbox none\natoms\n0 1 0 0 0 0 0 0\n", "x").units.name;
  };
  const std::string stated = "# argon; units Angstrom, fs\n";
  for (const char* other : {"# snapshot: box 0.3 nm, after 1000 steps", "# was nm, ps", "# offsets in angstrom", "#"}) {
    EXPECT_EQ(units(stated + other), "angstrom_fs") << other;
    EXPECT_EQ(units(other + ("\n" + stated)), "angstrom_fs") << other;
  }
  EXPECT_EQ(units("# offsets of 3 Angstrom"), "nm_ps");  // "fs" and "ps" are words, not parts of words
  EXPECT_EQ(units("# steps of 3 Angstrom, 2 fs\n# 300 nm of steps"), "angstrom_fs");
  EXPECT_EQ(units(stated + "# units: Angstrom, fs, g/mol"), "angstrom_fs");
  for (const std::string& contradiction :
       {stated + "# units nm, ps", std::string("# nm, ps\n# Angstrom, fs"), std::string("# units si\n# units reduced"),
        std::string("# units nm, ps, not Angstrom, fs")})
    EXPECT_THROW(units(contradiction), InputError) << contradiction;
}

TEST(SysFile, WhatTheFormatDoesNotHaveIsNotWritten) {
  ParticleSystem massless = make_builtin_system("pendulum2"), plane = massless;
  massless.mass[0] = 0;
  plane.constraints.add_plane(1, {0, 0, 0}, {0, 1, 0}, 1);
  for (const ParticleSystem* system : {&massless, &plane}) {
    std::ostringstream out;
    EXPECT_THROW(write_md_system(out, *system), ValueError);
    EXPECT_EQ(out.str(), "");
  }
}

TEST(SysFile, BadInputIsNamedWithItsPlace) {
  struct Case {
    std::string text, line_column, words;
  };
  const std::vector<Case> cases = {
      {"", "a.sys:", "natoms is missing"},
      {"# only a comment\n", "a.sys:", "natoms is missing"},
      {replaced(kGood, "natoms 2", "natoms two"), "a.sys:3:8", "'two'"},
      {replaced(kGood, "natoms 2", "natoms -1"), "a.sys:3:8", "-1"},
      {replaced(kGood, "natoms 2", "natoms 500000000"), "a.sys:3:8", "bytes"},
      {replaced(kGood, "natoms 2", "natoms 2\nnatoms 2"), "a.sys:4:1", "twice"},
      {replaced(kGood, "natoms 2", "natoms 2 3"), "a.sys:3:10", "natoms N"},
      {replaced(kGood, "natoms 2", "natoms 3"), "a.sys:9:1", "'constraints' after 2 of 3 atoms"},
      {replaced(kGood, "natoms 2\n", ""), "", "before natoms"},
      {replaced(kGood, "box 10 11. +12", "box 10 11"), "a.sys:5:", "box"},
      {replaced(kGood, "box 10 11. +12", "box 10 -11 12"), "a.sys:5:8", "positive"},
      {replaced(kGood, "box 10 11. +12\n", ""), "", "box is missing"},
      {replaced(kGood, "1 2.5 .5", "1 2.5 nan"), "a.sys:7:7", "nan"},
      {replaced(kGood, "1 2.5 .5", "1 2.5 inf"), "a.sys:7:7", "inf"},
      {replaced(kGood, "1 2.5 .5", "1 2.5 1e400"), "a.sys:7:7", "1e400"},
      {replaced(kGood, "1 2.5 .5", "1 2.5 1e-400"), "a.sys:7:7", "1e-400"},
      {replaced(kGood, "1 2.5 .5", "1 2.5 0x1p3"), "a.sys:7:7", "0x1p3"},
      {replaced(kGood, "1 2.5 .5", "1 2.5 0,5"), "a.sys:7:7", "0,5"},
      {replaced(kGood, "1 2.5 .5", "1 2.5 1.0f"), "a.sys:7:7", "1.0f"},
      {replaced(kGood, "1 2.5 .5", "1 0 .5"), "a.sys:7:3", "mass is 0"},
      {replaced(kGood, "1 2.5 .5", "1 -2.5 .5"), "a.sys:7:3", "mass is -2.5"},
      {replaced(kGood, "1 2.5 .5", "0 2.5 .5"), "a.sys:8:1", "twice"},
      {replaced(kGood, "1 2.5 .5", "2 2.5 .5"), "a.sys:7:1", "0 to 1"},
      {replaced(kGood, "1 2.5 .5", "1 2.5 .5 7"), "a.sys:7:", "8 words"},
      {replaced(kGood, "1 2.5 .5", "1 2.5"), "a.sys:7:", "8 words"},
      {replaced(kGood, "0 1 1.5", "0 2 1.5"), "a.sys:10:3", "0 to 1"},
      {replaced(kGood, "0 1 1.5", "1 1 1.5"), "a.sys:10:3", "itself"},
      {replaced(kGood, "0 1 1.5", "0 1 0"), "a.sys:10:5", "positive"},
      {replaced(kGood, "0 1 1.5", "0 1 nan"), "a.sys:10:5", "nan"},
      {replaced(kGood, "0 1 1.5\n", ""), "", "ends after 0 of 1 constraints"},
      {replaced(kGood, "0 1 1.5\n", "0 1 1.5\n0 1 1.5\n"), "a.sys:11:1", "nconstraints"},
      {replaced(kGood, "constraints\n0", "bonds\n0"), "a.sys:9:1", "'bonds'"},
      {kGood.substr(0, 60), "", "a.sys"},
      {kGood + std::string(1, '\0'), "a.sys:11:1", "NUL"},
      {std::string("\x7f"
                   "ELF\x01\x02",
                   6),
       "a.sys:1:1", "unknown"},
  };
  for (const Case& c : cases) {
    const std::string message = message_of(c.text);
    EXPECT_NE(message.find(c.line_column), std::string::npos) << message << "\n expected " << c.line_column;
    EXPECT_NE(message.find(c.words), std::string::npos) << message << "\n expected " << c.words;
  }
  EXPECT_THROW(read_md_system("no_such_file.sys"), InputError);
  EXPECT_THROW(read_md_system("."), InputError);
}

TEST(SysFile, EveryTruncationEndsInAnErrorOrAReading) {
  for (std::size_t length = 0; length < kGood.size(); ++length) {
    try {
      parse_md_system(kGood.substr(0, length), "a.sys");
    } catch (const InputError&) {
    }
  }
}

TEST(FramesFile, RoundTripAndErrors) {
  const ParticleSystem system = make_builtin_system("chain:5");
  std::ostringstream out;
  write_md_frame(out, 3, system);
  write_md_frame(out, 7, system);
  const std::vector<MdFrame> frames = parse_md_frames(out.str(), "f", 5);
  ASSERT_EQ(frames.size(), 2u);
  EXPECT_EQ(frames[1].step, 7);
  EXPECT_EQ(frames[1].position, system.position);
  EXPECT_EQ(frames[1].velocity, system.velocity);
  EXPECT_THROW(parse_md_frames(out.str(), "f", 6), InputError);
  EXPECT_THROW(parse_md_frames("1 2 3\n", "f", 1), InputError);
  EXPECT_THROW(parse_md_frames("frame 1\n1 2 3 4\n", "f", 1), InputError);
  EXPECT_EQ(parse_md_frames("# c\nframe 1\n1 2 3\n", "f", 1)[0].velocity.size(), 0u);
}

TEST(Xyz, RoundTripsAndReadsPlainFiles) {
  for (const char* name : {"water1", "chain:9", "water:27"}) {
    const ParticleSystem system = make_builtin_system(name);
    std::ostringstream out;
    write_xyz_frame(out, system, "step=0");
    write_xyz_frame(out, system, "step=5");
    const auto frames = parse_xyz(out.str(), "x.xyz");
    ASSERT_EQ(frames.size(), 2u);
    const ParticleSystem back = system_from_xyz(frames, "x.xyz", system.units);
    EXPECT_EQ(back.position, system.position);
    EXPECT_EQ(back.velocity, system.velocity);
    EXPECT_EQ(back.mass, system.mass);
    EXPECT_EQ(back.species, system.species);
    EXPECT_EQ(back.box.length.x, system.box.length.x);
  }
  const auto plain = parse_xyz("2\n any comment = at all\nO 0 0 0\nH .5 1. +1\n", "p.xyz");
  const ParticleSystem system = system_from_xyz(plain, "p.xyz", units_nm_ps());
  EXPECT_EQ(system.mass, (std::vector<double>{15.999, 1.008}));
  EXPECT_EQ(system.velocity, std::vector<double>(6, 0.0));
}

TEST(Xyz, FilesDoNotFollowTheGlobalLocale) {
  const test::GroupedDigits locale;
  const ParticleSystem system = make_builtin_system("chain:1500");
  std::ostringstream xyz, sys;
  write_xyz_frame(xyz, system);
  EXPECT_TRUE(xyz.str().starts_with("1500\n")) << xyz.str().substr(0, 10);
  EXPECT_EQ(parse_xyz(xyz.str(), "x.xyz")[0].position, system.position);
  write_md_system(sys, system);
  EXPECT_EQ(parse_md_system(sys.str(), "x.sys").position, system.position);
}

// Other programs look species up among the elements. Species that are not elements are written as X, with their name as
// a label.
TEST(Xyz, SpeciesAreChemicalSymbols) {
  const ParticleSystem system = make_builtin_system("butane:1");
  std::ostringstream out;
  write_xyz_frame(out, system);
  std::istringstream lines(out.str());
  std::string line;
  std::getline(lines, line), std::getline(lines, line);
  EXPECT_NE(line.find("Properties=species:S:1:pos:R:3:velo:R:3:masses:R:1:label:S:1 "), std::string::npos) << line;
  for (const std::string& name : system.species) {
    std::getline(lines, line);
    EXPECT_TRUE(line.starts_with("X ") && line.ends_with(" " + name)) << line;
  }
  EXPECT_EQ(parse_xyz(out.str(), "x")[0].species, system.species);
  // A label from another program does not replace a known element symbol.
  const auto labelled = parse_xyz("1\nProperties=species:S:1:pos:R:3:label:S:1\nO 0 0 0 water\n", "x");
  EXPECT_EQ(labelled[0].species, std::vector<std::string>{"O"});
}

TEST(Xyz, OpenDirectionsAreOpen) {
  const auto along = [](const char* pbc) {
    const std::string text = std::string("1\nLattice=\"20 0 0 0 21 0 0 0 22\" ") + pbc + "\nAr 0 0 0.5\n";
    const ParticleSystem system = system_from_xyz(parse_xyz(text, "x"), "x", units_angstrom_fs());
    std::ostringstream out;  // and once more through the written file
    write_xyz_frame(out, system);
    const Vec3d again = system_from_xyz(parse_xyz(out.str(), "x"), "x", units_angstrom_fs()).box.length;
    std::stringstream sys;
    write_md_system(sys, system);
    const Vec3d third = parse_md_system(sys.str(), "x").box.length;
    const Vec3d& box = system.box.length;
    for (int c = 0; c < 3; ++c) EXPECT_TRUE(box[c] == again[c] && box[c] == third[c]) << out.str() << sys.str();
    return std::array{box.x, box.y, box.z};
  };
  using Lengths = std::array<double, 3>;
  EXPECT_EQ(along(""), (Lengths{20, 21, 22}));
  EXPECT_EQ(along("pbc=\"T T T\""), (Lengths{20, 21, 22}));
  EXPECT_EQ(along("pbc=\"T T F\""), (Lengths{20, 21, 0}));
  EXPECT_EQ(along("pbc=\"0 1 0\""), (Lengths{0, 21, 0}));
  EXPECT_EQ(along("pbc=\"False False False\""), (Lengths{0, 0, 0}));
}

TEST(Xyz, BadInputIsNamedWithItsPlace) {
  struct Case {
    std::string text, place, words;
  };
  for (const Case& c :
       std::vector<Case>{{"", "x:1", "empty"},
                         {"two\n\n", "x:1:1", "'two'"},
                         {"-2\n\n", "x:1:1", "-2"},
                         {"100000000\n\n", "x:1:1", "bytes"},
                         {"2\n", "x:1", "comment"},
                         {"2\n\nO 0 0 0\n", "x:3", "1 of 2"},
                         {"1\n\nO 0 0\n", "x:3:6", "columns"},
                         {"1\n\nO 0 0 nan\n", "x:3:7", "nan"},
                         {"1\nLattice=\"1 0 0 0 1 0 0 0\"\nO 0 0 0\n", "x:2", "Lattice"},
                         {"1\nLattice=\"1 0.5 0 0 1 0 0 0 1\"\nO 0 0 0\n", "x:2", "rectangular"},
                         {"1\nLattice=\"1 0 0 0 -1 0 0 0 1\"\nO 0 0 0\n", "x:2", "positive"},
                         {"1\nLattice=\"1 0 0\nO 0 0 0\n", "x:2", "not closed"},
                         {"1\nLattice=\"1 0 0 0 1 0 0 0 1\" pbc=\"T T\"\nO 0 0 0\n", "x:2", "pbc"},
                         {"1\nLattice=\"1 0 0 0 1 0 0 0 1\" pbc=\"T T X\"\nO 0 0 0\n", "x:2", "pbc"},
                         {"1\nLattice=\"1 0 0 0 1 0 0 0 1\" pbc=\"T T T T\"\nO 0 0 0\n", "x:2", "pbc"},
                         {"1\nLattice=\"1 0 0 0 1 0 0 0 0\" pbc=\"T T T\"\nO 0 0 0\n", "x:2", "positive"},
                         {"1\npbc=\"T F F\"\nO 0 0 0\n", "x:2", "no Lattice"},
                         {"1\nProperties=species:S:1:pos:R\nO 0 0 0\n", "x:2", "name:type:columns"},
                         {"1\nProperties=species:S:1\nO\n", "x:2", "pos:R:3"},
                         {"1\nProperties=species:S:1:pos:R:3:pos:R:3\nO 0 0 0 1 1 1\n", "x:3", "twice"},
                         {"1\nProperties=species:S:1:pos:Q:3\nO 0 0 0\n", "x:2", "S|R|I|L"},
                         {"1\nProperties=species:S:1:pos:R:3:masses:R:1\nO 0 0 0 -1\n", "x:3:9", "mass is -1"},
                         {"1\nProperties=pos:R:99999999999\nO 0 0 0\n", "x:2", "columns"}}) {
    try {
      parse_xyz(c.text, "x");
      ADD_FAILURE() << "accepted: " << c.text;
    } catch (const InputError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(c.place), std::string::npos) << message << "\n expected " << c.place;
      EXPECT_NE(message.find(c.words), std::string::npos) << message << "\n expected " << c.words;
    }
  }
  EXPECT_THROW(system_from_xyz(parse_xyz("1\n\nQq 0 0 0\n", "x"), "x", units_nm_ps()), InputError);
}

const std::string kWaterData =
    "one water across the face of the box\n\n3 atoms\n2 bonds\n1 angles\n2 atom types\n1 bond types\n1 angle types\n\n"
    "-1 9 xlo xhi\n0 10 ylo yhi\n0 10 zlo zhi\n\nMasses\n\n1 15.9994 # O\n2 1.008\n\nPair Coeffs # lj/cut\n\n1 0.1553 "
    "3.166\n2 0 1\n\n"
    "Bond Coeffs\n\n1 1000 1.0\n\nAngle Coeffs\n\n1 100 109.47\n\nAtoms # full\n\n"
    "7 1 2 0.4238 -0.5 5 5\n2 1 1 -0.8476 8.5 5 5\n9 1 2 0.4238 8.8 5.9 5\n\nVelocities\n\n2 0.1 0 0\n7 0 0.2 0\n9 0 0 "
    "0.3\n\n"
    "Bonds\n\n1 1 2 7\n2 1 2 9\n\nAngles\n\n1 1 7 2 9\n";

TEST(LammpsData, ReadsAWaterAndMakesItWhole) {
  LammpsData data = parse_lammps_data(kWaterData, "w.data", units_angstrom_fs());
  EXPECT_EQ(data.system.particles(), 3);
  EXPECT_EQ(data.system.mass, (std::vector<double>{1.008, 15.9994, 1.008}));
  EXPECT_EQ(data.charge, (std::vector<double>{0.4238, -0.8476, 0.4238}));
  EXPECT_EQ(data.system.box.length.x, 10);
  // Atom 7 lies beyond the face: it stays, and its molecule follows it.
  EXPECT_NEAR(data.system.position[3] - data.system.position[0], -1.0, 1e-12);
  EXPECT_NEAR(data.system.position[6] - data.system.position[3], 0.3, 1e-12);
  EXPECT_EQ(data.system.velocity[1], 0.2);
  use_lammps_data(data, {{1}, {1}, 4.0, false});
  ASSERT_EQ(data.system.constraints.nrow(), 3);
  EXPECT_NEAR(data.system.constraints.value(2), 1.6329808618402346, 1e-12);
  EXPECT_EQ(data.system.force_field.exclusions.size(), 3u);
  EXPECT_TRUE(data.system.force_field.bonds.empty());
  LammpsData soft = parse_lammps_data(kWaterData, "w.data", units_angstrom_fs());
  use_lammps_data(soft, {});
  EXPECT_EQ(soft.system.force_field.bonds.size(), 2u);
  EXPECT_EQ(soft.system.force_field.bonds[0].stiffness, 2000);
  EXPECT_EQ(soft.system.force_field.angles.size(), 1u);
}

TEST(LammpsData, BadInputIsNamedWithItsPlace) {
  struct Case {
    std::string from, to, words;
  };
  for (const Case& c :
       std::vector<Case>{{"3 atoms", "4 atoms", "w.data:"},
                         {"3 atoms", "3000000000 atoms", "w.data:3:1"},
                         {"3 atoms", "300000 atoms", "bytes"},
                         {"2 bonds", "5 bonds", "w.data:"},
                         {"-1 9 xlo xhi", "9 -1 xlo xhi", "w.data:10:3"},
                         {"-1 9 xlo xhi\n", "", "before the box"},
                         {"0 10 zlo zhi", "0 10 zlo zhi\n1 0 0 xy xz yz", "tilted"},
                         {"1 15.9994 # O", "1 -15.9994", "positive"},
                         {"1 15.9994 # O", "3 15.9994", "1 to 2"},
                         {"Atoms # full", "Atoms # body", "'body'"},
                         {"7 1 2 0.4238", "7 1 3 0.4238", "1 to 2"},
                         {"7 1 2 0.4238", "2 1 2 0.4238", "twice"},
                         {"7 1 2 0.4238", "7 1 2 0x4", "0x4"},
                         {"7 1 2 0.4238 -0.5 5 5", "7 1 2 0.4238 -0.5 5", "7 words"},
                         {"1 1 2 7", "1 1 2 8", "no atom 8"},
                         {"1 1 2 7", "1 1 2 2", "twice"},
                         {"1 1 7 2 9", "1 1 7 2", "5 words"},
                         {"2 0.1 0 0", "2 nan 0 0", "nan"},
                         {"7 0 0.2 0", "2 0 0.2 0", "atom 2 is given twice"},
                         {"2 1.008", "1 1.008", "type 1 is given twice"},
                         {"Angles\n\n", "Bonds\n\n1 1 2 7\n2 1 2 9\n\nAngles\n\n", "section Bonds is given twice"},
                         {"Velocities", "Speeds", "'Speeds'"}}) {
    try {
      parse_lammps_data(replaced(kWaterData, c.from, c.to), "w.data", units_angstrom_fs());
      ADD_FAILURE() << "accepted: " << c.to;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(c.words), std::string::npos)
          << error.what() << "\n expected " << c.words;
      EXPECT_NE(std::string(error.what()).find("w.data:"), std::string::npos) << error.what();
    }
  }
  LammpsData data = parse_lammps_data(kWaterData, "w.data", units_angstrom_fs());
  EXPECT_THROW(use_lammps_data(data, {{2}, {}, 0, false}), ValueError);
  try {
    use_lammps_data(data, {{}, {1}, 0, false});
    ADD_FAILURE() << "a rigid angle of soft bonds";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("atoms 7 and 2"), std::string::npos) << error.what();
  }
}

TEST(LammpsData, WhatNeedsACutoffSaysSo) {
  LammpsData data = parse_lammps_data(kWaterData, "w.data", units_angstrom_fs());
  LammpsUse field;
  field.reaction_field = true;
  EXPECT_THROW(use_lammps_data(data, field), ValueError);
  data.pair_coefficients.clear(), data.notes.clear();
  use_lammps_data(data, {});
  ASSERT_EQ(data.notes.size(), 1u);
  EXPECT_EQ(data.notes[0].message, "charges are not used: no cutoff is given");
}

TEST(LammpsData, TheTitlesUnitsAreObeyedOrRefused) {
  const auto units = [](const std::string& title) {
    return parse_lammps_data(replaced(kWaterData, "one water across the face of the box", title), "w.data",
                             units_nm_ps())
        .system.units.name;
  };
  EXPECT_EQ(units("LAMMPS data file via write_data, version 29 Sep 2021, timestep = 100, units = real"), "angstrom_fs");
  EXPECT_EQ(units("units = lj"), "reduced");
  EXPECT_EQ(units("x, units = si"), "si");
  EXPECT_EQ(units("a title without them"), "nm_ps");  // the caller's units
  for (const char* name : {"metal", "electron", "cgs", "micro", "nano"}) {
    try {
      units(std::string("LAMMPS data file via write_data, units = ") + name);
      ADD_FAILURE() << "accepted: " << name;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("w.data:1"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

TEST(LammpsData, StylesBehindASectionsNameAreObeyedOrRefused) {
  const auto use = [](const std::string& from, const std::string& to) {
    LammpsData data = parse_lammps_data(replaced(kWaterData, from, to), "w.data", units_angstrom_fs());
    use_lammps_data(data, {{}, {}, 4.0, false});
    return data;
  };
  for (const char* style : {"lj/cut", "lj/cut/coul/dsf"})
    EXPECT_TRUE(use("Pair Coeffs # lj/cut", std::string("Pair Coeffs # ") + style).notes.empty()) << style;
  EXPECT_EQ(use("Pair Coeffs # lj/cut", "Pair Coeffs # lj/cut/coul/cut").notes.size(), 1u);  // other Coulomb
  EXPECT_EQ(use("1 0.1553 3.166\n", "1 0.1553 3.166 9\n").notes.size(), 1u);                 // other cutoff
  const char* refused[][2] = {{"Pair Coeffs # lj/cut", "Pair Coeffs # buck"},
                              {"Pair Coeffs # lj/cut", "Pair Coeffs # lj/charmm/coul/long"},
                              {"Pair Coeffs # lj/cut", "Pair Coeffs # lj/cut/coul/long"},
                              {"Bond Coeffs", "Bond Coeffs # morse"},
                              {"Angle Coeffs", "Angle Coeffs # charmm"}};
  for (const auto& [from, to] : refused) {
    try {
      use(from, to);
      ADD_FAILURE() << "accepted: " << to;
    } catch (const InputError& error) {
      const std::string style = std::string(to).substr(std::string(to).rfind(' ') + 1);
      EXPECT_NE(std::string(error.what()).find(style), std::string::npos) << error.what();
    }
  }
  // Without a cutoff no pair interacts, and a note says so.
  LammpsData data = parse_lammps_data(kWaterData, "w.data", units_angstrom_fs());
  use_lammps_data(data, {{1}, {1}, 0, false});
  ASSERT_EQ(data.notes.size(), 1u);
  EXPECT_NE(data.notes[0].text().find("no cutoff"), std::string::npos);
}

// Positions wrapped into the box with image flags that are all zero, as many tools write them.
TEST(LammpsData, MoleculesAreMadeWholeInSpiteOfZeroImageFlags) {
  std::string text = kWaterData;
  for (const char* row : {"-0.5 5 5", "8.5 5 5", "8.8 5.9 5"}) text = replaced(text, row, std::string(row) + " 0 0 0");
  const LammpsData cut = parse_lammps_data(text, "w.data", units_angstrom_fs());
  EXPECT_NEAR(cut.system.position[3] - cut.system.position[0], -1.0, 1e-12);
  // Correct flags are kept: the whole molecule lies one box further.
  text = kWaterData;
  text = replaced(replaced(replaced(text, "-0.5 5 5", "-0.5 5 5 2 0 0"), "8.5 5 5", "8.5 5 5 1 0 0"), "8.8 5.9 5",
                  "8.8 5.9 5 1 0 0");
  const LammpsData moved = parse_lammps_data(text, "w.data", units_angstrom_fs());
  EXPECT_NEAR(moved.system.position[0], 19.5, 1e-12);
  EXPECT_NEAR(moved.system.position[3], 18.5, 1e-12);
  EXPECT_NEAR(moved.system.position[6], 18.8, 1e-12);
}

// Every particle is wrapped into the box, as in XYZ files of other programs. The bonds of a setup, or the molecules of
// a force field, make the molecules whole again.
TEST(ParticleFiles, MoleculesThatTheBoxCutsAreMadeWhole) {
  const auto folder = std::filesystem::path(TARSUS_BINARY_DIR) / "md_files_test";
  std::filesystem::create_directories(folder);
  const std::string whole = (folder / "whole.xyz").string(), cut = (folder / "cut.xyz").string(),
                    setup = (folder / "water.json").string(), sys = (folder / "cut.sys").string();
  std::ofstream(setup) << R"({"units": "angstrom_fs", "molecule": ["O", "H", "H"],
    "types": {"O": {"epsilon": 0.1553, "sigma": 3.166, "charge": -0.8476}, "H": {"charge": 0.4238}},
    "lennard_jones": {"cutoff": 4}, "coulomb": {"cutoff": 4},
    "distances": [[0, 1, 1], [0, 2, 1], [1, 2, 1.6329808618402346]]})";
  ParticleSystem system = make_builtin_system("water:27");
  for (std::size_t i = 0; i < system.position.size(); ++i)
    system.position[i] += system.box.length[i % 3] / 6;  // three a side: some lie in the faces now
  const std::vector<double> start = system.position;
  std::ofstream(whole) << [&] {
    std::ostringstream out;
    write_xyz_frame(out, system);
    return out.str();
  }();
  int cuts = 0;
  for (std::size_t i = 0; i < system.position.size(); ++i) {
    const double length = system.box.length[i % 3], before = system.position[i];
    system.position[i] -= length * std::floor(before / length);
    cuts += system.position[i] != before ? 1 : 0;
  }
  ASSERT_GT(cuts, 3);
  std::ofstream cut_file(cut), sys_file(sys);
  write_xyz_frame(cut_file, system);
  write_md_system(sys_file, system);
  cut_file.close(), sys_file.close();
  Diagnostics notes, none;
  for (const auto& [file, forces] :
       {std::pair<std::string, std::string>{cut, ""}, {sys, "spce-smooth"}, {cut, "spce-smooth"}}) {
    SCOPED_TRACE(file + forces);
    notes.clear();
    const ParticleSystem read =
        load_particles({.system = file, .forces = forces, .setup = forces.empty() ? setup : ""}, notes);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].text().find("made whole"), std::string::npos);
    for (int i = 0; i < read.particles(); i += 3) {
      for (int s = 1; s < 3; ++s) {
        double r2 = 0;
        for (int c = 0; c < 3; ++c) r2 += std::pow(read.position[3 * (i + s) + c] - read.position[3 * i + c], 2);
        EXPECT_NEAR(std::sqrt(r2), 1.0, 1e-9) << i;
      }
    }
  }
  const ParticleSystem untouched = load_particles({.system = whole, .setup = setup}, none);
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(untouched.position, start);
}

// LAMMPS marks atoms that belong to no molecule with molecule 0. Such atoms keep the file's positions.
TEST(ParticleFiles, AtomsOfNoMoleculeStay) {
  const auto folder = std::filesystem::path(TARSUS_BINARY_DIR) / "md_files_test";
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "argon.data").string();
  std::ofstream(file) << "argon\n2 atoms\n1 atom types\n0 30 xlo xhi\n0 30 ylo yhi\n0 30 zlo zhi\n\nMasses\n\n1 40\n\n"
                         "Atoms # full\n\n1 0 1 0 1 1 1\n2 0 1 0 29 1 1\n";
  Diagnostics notes;
  EXPECT_EQ(load_particles({.system = file}, notes).position, (std::vector<double>{1, 1, 1, 29, 1, 1}));
  EXPECT_TRUE(notes.empty());
}

TEST(ParticleFiles, ColumnsOfXyzThatAreNotReadAreNamed) {
  const auto folder = std::filesystem::path(TARSUS_BINARY_DIR) / "md_files_test";
  std::filesystem::create_directories(folder);
  const std::string file = (folder / "ase.xyz").string();
  std::ofstream(file) << "1\nProperties=species:S:1:pos:R:3:momenta:R:3:masses:I:1:charge:R:1\nO 0 0 0 1 2 3 17 -0.8\n";
  Diagnostics notes;
  EXPECT_EQ(load_particles({.system = file}, notes).mass, std::vector<double>{17});
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].text(), file + ": warning: columns that are not used: momenta, charge");
}

TEST(Xyz, UnitsAreWrittenAndRead) {
  for (const char* name : {"angstrom_fs", "nm_ps", "si", "reduced"}) {
    ParticleSystem system = make_builtin_system("chain:4");
    system.units = units_by_name(name);
    std::ostringstream out;
    write_xyz_frame(out, system);
    EXPECT_EQ(system_from_xyz(parse_xyz(out.str(), "x"), "x", units_nm_ps()).units.name, name);
  }
  EXPECT_EQ(system_from_xyz(parse_xyz("1\n\nO 0 0 0\n", "x"), "x", units_angstrom_fs()).units.name, "angstrom_fs");
  EXPECT_THROW(parse_xyz("1\nunits=parsec\nO 0 0 0\n", "x"), InputError);
}

TEST(LammpsData, EveryTruncationEndsInAnErrorOrAReading) {
  for (std::size_t length = 0; length < kWaterData.size(); ++length) {
    try {
      parse_lammps_data(kWaterData.substr(0, length), "w.data", units_angstrom_fs());
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace tarsus
