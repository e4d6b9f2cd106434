// `tarsus md` from a user's view: what it prints, writes and refuses.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "app/program.hpp"
#include "tarsus/io/md_system.hpp"

using tarsus::test::Outcome;
using tarsus::test::tarsus_command;

namespace {

Outcome md(const std::string& arguments) { return tarsus_command("md " + arguments); }

std::string scratch(const std::string& name) {
  const auto folder = std::filesystem::path(TARSUS_BINARY_DIR) / "md_command_test";
  std::filesystem::create_directories(folder);
  return (folder / name).string();
}

TEST(MdCommand, EveryBuiltInSystemRuns) {
  TARSUS_NEEDS_PROGRAM();
  for (const char* system : {"water1", "water216", "butane:27", "chain:64", "ring:12", "c60", "c60-rigid", "rope:20",
                             "cloth:5x4", "pendulum2"}) {
    SCOPED_TRACE(system);
    const Outcome run = md(std::string(system) + " --steps 20 --json");
    ASSERT_EQ(run.code, 0) << run.text;
    const auto j = nlohmann::json::parse(run.text);
    EXPECT_EQ(j["status"], "ok");
    EXPECT_EQ(j["steps"], 20);
    EXPECT_GT(j["constraints"], 0);
    EXPECT_LE(j["violation_max"].get<double>(), 1e-12);
    EXPECT_EQ(j["energy"]["last"]["step"], 20);
  }
}

TEST(MdCommand, SettlingShowsItsProgress) {
  TARSUS_NEEDS_PROGRAM();
  const auto lines = [](const std::string& arguments) {  // of standard error alone
    const std::string text = tarsus_command("md " + arguments, "2>&1 >/dev/null").text;
    return text.find("md  90 %  settling\n") != std::string::npos;
  };
  EXPECT_TRUE(lines("water:1728 --steps 0"));
  EXPECT_FALSE(lines("water:1728 --steps 0 --quiet"));
  EXPECT_FALSE(lines("water:1728 --out x.pdb"));  // is refused before
}

TEST(MdCommand, TableFramesAndLastState) {
  TARSUS_NEEDS_PROGRAM();
  const std::string frames = scratch("ring.frames"), xyz = scratch("ring.xyz"), last = scratch("ring.sys");
  const Outcome run = md("ring:6 --steps 10 --every 5 --out " + frames + " --final " + last);
  EXPECT_EQ(run.code, 0) << run.text;
  for (const char* word : {"potential", "kinetic", "total", "violation", "steps/s", "iterations", "dt*omega_max"})
    EXPECT_NE(run.text.find(word), std::string::npos) << word;
  std::ifstream in(frames);
  std::string line;
  int count = 0, rows = 0;
  while (std::getline(in, line)) ++(line.starts_with("frame") ? count : rows);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(rows, 18);
  // The run continues from the last state of the first run.
  EXPECT_EQ(md(last + " --forces none --steps 1 --quiet --out " + xyz).code, 0);
  EXPECT_EQ(md("ring:6 --steps 1 --quiet").text, "");
}

TEST(MdCommand, AStartThatViolatesIsProjectedAndTold) {
  TARSUS_NEEDS_PROGRAM();
  const std::string file = scratch("stretched.sys");
  std::ofstream(file) << "natoms 2\nnconstraints 1\nbox none\natoms\n0 1 0 0 0 0 0 0\n1 1 1.01 0 0 0 0 0\n"
                         "constraints\n0 1 1\n";
  const Outcome run = md(file + " --steps 0");
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.text.find("moved by at most 0.005 nm"), std::string::npos) << run.text;
}

TEST(MdCommand, ASetupGivesForces) {
  TARSUS_NEEDS_PROGRAM();
  const std::string setup = scratch("fall.json");
  std::ofstream(setup) << R"({"gravity": [0, 0, -2], "pinned": [0]})";
  const auto j = nlohmann::json::parse(md("chain:5 --steps 100 --json --setup " + setup).text);
  EXPECT_EQ(j["degrees_of_freedom"], 8);
  EXPECT_NE(j["energy"]["last"]["potential"], j["energy"]["first"]["potential"]);
}

TEST(MdCommand, AFailedRunSaysWhy) {
  TARSUS_NEEDS_PROGRAM();
  const Outcome run = md("chain:20 --dt 10 --steps 5 --json");
  EXPECT_EQ(run.code, 3) << run.text;
  const auto j = nlohmann::json::parse(run.text);
  EXPECT_EQ(j["status"], "failed");
  EXPECT_GT(j["stability"].get<double>(), 2.0);
  EXPECT_NE(j["message"].get<std::string>().find("particles"), std::string::npos);
}

TEST(MdCommand, AStepWithoutASolutionAsksForASmallerOne) {
  TARSUS_NEEDS_PROGRAM();
  const Outcome run = md("rope --dt 0.001 --steps 2000 --quiet");  // fails where its end whips
  EXPECT_EQ(run.code, 3) << run.text;
  for (const char* word : {"distances turn by up to 0.", "rad in this step", "take a smaller timestep (--dt)"})
    EXPECT_NE(run.text.find(word), std::string::npos) << run.text;
}

// A file with two argon atoms at this distance, which is too close if the numbers are read in the wrong unit.
std::string argon(const std::string& name, const std::string& comment, double apart) {
  const std::string file = scratch(name);
  std::ofstream(file) << "2\n" << comment << "\nAr 0 0 0\nAr " << apart << " 0 0\n";
  return file;
}

TEST(MdCommand, XyzIsInAngstromUnlessTheFileOrTheUserSays) {
  TARSUS_NEEDS_PROGRAM();
  const std::string plain = argon("plain.xyz", "no units", 3.8), nm = argon("nm.xyz", "units=nm_ps", 0.38);
  const auto first = [](const std::string& arguments) {
    const Outcome run = md(arguments + " --steps 0 --json");
    EXPECT_EQ(run.code, 0) << run.text;
    return nlohmann::json::parse(run.text);
  };
  EXPECT_EQ(first(plain)["units"], "angstrom_fs");
  EXPECT_EQ(first(plain + " --units nm_ps")["units"], "nm_ps");
  EXPECT_EQ(first(nm)["units"], "nm_ps");
  EXPECT_EQ(first(nm + " --units angstrom_fs")["units"], "angstrom_fs");
  EXPECT_NE(md(argon("metal.xyz", "units=metal", 3.8)).text.find("metal.xyz:2"), std::string::npos);
  // Written files state their units and are read back in them.
  const std::string out = scratch("water1.xyz");
  EXPECT_EQ(md("water1 --units nm_ps --steps 1 --quiet --out " + out).code, 0);
  EXPECT_EQ(first(out)["units"], "nm_ps");
  // With --units angstrom_fs nm.xyz is converted, not reinterpreted: 3.8 A either way.
  const std::string a = scratch("a.xyz"), b = scratch("b.xyz");
  EXPECT_EQ(md(plain + " --forces none --steps 1 --quiet --out " + a).code, 0);
  EXPECT_EQ(md(nm + " --units angstrom_fs --forces none --steps 1 --quiet --out " + b).code, 0);
  std::ifstream left(a), right(b);
  std::string one, two;
  while (std::getline(left, one) && std::getline(right, two)) EXPECT_EQ(one, two);
}

TEST(MdCommand, ARunWithoutForcesIsRefusedUnlessAskedFor) {
  TARSUS_NEEDS_PROGRAM();
  const std::string file = argon("free.xyz", "", 3.8);
  const Outcome run = md(file + " --steps 10");
  EXPECT_EQ(run.code, 1);
  for (const char* word : {"no forces act on this system", "--forces none", "--setup"})
    EXPECT_NE(run.text.find(word), std::string::npos) << run.text;
  EXPECT_EQ(md(file + " --steps 10 --forces none --quiet").code, 0);
  EXPECT_EQ(md(file + " --steps 0 --quiet").code, 0);
}

TEST(MdCommand, ARunThatHeatsUpAThousandfoldFails) {
  TARSUS_NEEDS_PROGRAM();
  const std::string setup = scratch("argon.json");
  std::ofstream(setup)
      << R"({"units": "angstrom_fs", "molecule": ["Ar"], "types": {"Ar": {"epsilon": 0.238, "sigma": 3.405}},
    "lennard_jones": {"cutoff": 8}})";
  // As if the numbers were nanometres: 0.38 A apart.
  const std::string inside = argon("inside.xyz", "", 0.38), apart = argon("apart.xyz", "", 3.8);
  const Outcome run = md(inside + " --temperature 100 --steps 1000 --json --setup " + setup);
  EXPECT_EQ(run.code, 3) << run.text;
  const auto j = nlohmann::json::parse(run.text);
  EXPECT_EQ(j["status"], "failed");
  EXPECT_LT(j["steps"], 1000);
  EXPECT_NE(j["message"].get<std::string>().find("temperature"), std::string::npos);
  EXPECT_NE(md(inside + " --temperature 100 --steps 1000 --setup " + setup).text.find("a thousand times"),
            std::string::npos);
  EXPECT_EQ(md(apart + " --temperature 100 --steps 1000 --quiet --setup " + setup).code, 0);
  EXPECT_EQ(md(apart + " --steps 1000 --quiet --setup " + setup).code, 0);  // from rest
}

TEST(MdCommand, OutputsAreOpenedBeforeTheRun) {
  TARSUS_NEEDS_PROGRAM();
  for (const char* option : {"--out /nosuch/x.xyz", "--final /nosuch/x.sys", "--energies /nosuch/x.csv"}) {
    // The steps would take an hour.
    const Outcome run = md(std::string("water216 --steps 100000000 ") + option);
    EXPECT_EQ(run.code, 1) << option;
    EXPECT_NE(run.text.find("cannot be written"), std::string::npos) << run.text;
    EXPECT_EQ(run.text.find("potential"), std::string::npos) << run.text;
  }
}

TEST(MdCommand, EnergiesAsCsv) {
  TARSUS_NEEDS_PROGRAM();
  const std::string file = scratch("energies.csv");
  const Outcome run = md("water1 --steps 20 --every 5 --json --energies " + file);
  ASSERT_EQ(run.code, 0) << run.text;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line, "step,time [fs],potential [kcal/mol],kinetic [kcal/mol],total [kcal/mol],temperature [K],violation");
  std::vector<std::vector<double>> rows;
  while (std::getline(in, line)) {
    rows.emplace_back();
    std::stringstream fields(line);
    for (std::string field; std::getline(fields, field, ',');) rows.back().push_back(std::stod(field));
  }
  ASSERT_EQ(rows.size(), 5u);
  const auto j = nlohmann::json::parse(run.text);
  for (std::size_t k = 0; k < rows.size(); ++k) {
    ASSERT_EQ(rows[k].size(), 7u);
    EXPECT_EQ(rows[k][0], 5.0 * k);
    EXPECT_EQ(rows[k][1], 10.0 * k);
    EXPECT_EQ(rows[k][2] + rows[k][3], rows[k][4]);
  }
  EXPECT_EQ(rows[4][4], j["energy"]["last"]["total"].get<double>());
}

// CHARMM's layout, record by record: X-PLOR's manual, "DCD files", and NAMD's dcdlib.
TEST(MdCommand, TrajectoriesAsDcd) {
  TARSUS_NEEDS_PROGRAM();
  const std::string file = scratch("water.dcd"), frames = scratch("water.frames");
  for (const std::string& out : {file, frames}) {
    const Outcome done = md("butane:27 --units nm_ps --forces none --steps 4 --every 2 --quiet --out " + out);
    ASSERT_EQ(done.code, 0) << done.text;
  }
  std::ifstream in(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  std::size_t at = 0;
  const auto number = [&](auto& value) {
    ASSERT_LE(at + sizeof value, bytes.size());
    std::memcpy(&value, bytes.data() + at, sizeof value);
    at += sizeof value;
  };
  const auto record = [&] {
    std::int32_t before = 0, after = 0;
    number(before);
    const std::string inside = bytes.substr(at, before);
    at += before;
    number(after);
    EXPECT_EQ(before, after);
    return inside;
  };
  const std::string header = record();
  ASSERT_EQ(header.size(), 84u);
  EXPECT_EQ(header.substr(0, 4), "CORD");
  std::int32_t control[20];
  std::memcpy(control, header.data() + 4, sizeof control);
  EXPECT_EQ(control[0], 3);   // frames
  EXPECT_EQ(control[2], 2);   // steps between them
  EXPECT_EQ(control[10], 1);  // a cell with each
  EXPECT_EQ(control[19], 24);
  float step = 0;
  std::memcpy(&step, &control[9], sizeof step);
  EXPECT_NEAR(step * 0.0488882129, 0.002, 1e-9);
  EXPECT_EQ(record().size(), 84u);
  std::int32_t particles = 0;
  std::memcpy(&particles, record().data(), sizeof particles);
  ASSERT_EQ(particles, 108);
  const auto expected = tarsus::read_md_frames(frames, particles);
  ASSERT_EQ(expected.size(), 3u);
  for (const auto& frame : expected) {
    double cell[6];
    const std::string box = record();
    ASSERT_EQ(box.size(), sizeof cell);
    std::memcpy(cell, box.data(), sizeof cell);
    for (const int angle : {1, 3, 4}) EXPECT_EQ(cell[angle], 90);
    EXPECT_GT(cell[0], 10);  // Angstrom
    EXPECT_EQ(cell[0], cell[2]);
    EXPECT_EQ(cell[0], cell[5]);
    for (int c = 0; c < 3; ++c) {
      std::vector<float> axis(particles);
      const std::string one = record();
      ASSERT_EQ(one.size(), sizeof(float) * particles);
      std::memcpy(axis.data(), one.data(), one.size());
      for (int i = 0; i < particles; ++i)
        EXPECT_NEAR(axis[i], 10 * frame.position[3 * i + c], 1e-6 * (1 + std::abs(axis[i])));
    }
  }
  EXPECT_EQ(at, bytes.size());
}

TEST(MdCommand, ThreadsChangeNoNumber) {
  TARSUS_NEEDS_PROGRAM();
  const std::string one = scratch("one.sys"), two = scratch("two.sys");
  EXPECT_EQ(md("water216 --steps 20 --quiet --final " + one).code, 0);
  EXPECT_EQ(md("water216 --steps 20 --quiet --threads 2 --final " + two).code, 0);
  std::ifstream left(one), right(two);
  std::string a, b;
  while (std::getline(left, a) && std::getline(right, b)) EXPECT_EQ(a, b);
}

TEST(MdCommand, ASystemWithoutParticlesIsRefused) {
  TARSUS_NEEDS_PROGRAM();
  const std::string xyz = scratch("none.xyz");
  std::ofstream(xyz) << "0\n\n";
  for (const char* forces : {"", " --forces none"}) {
    const auto run = md(xyz + forces);
    EXPECT_EQ(run.code, 1) << run.text;
    EXPECT_NE(run.text.find(xyz + ": error: the system has no particles"), run.text.npos) << run.text;
  }
}

TEST(MdCommand, BadOptionsAreNamed) {
  TARSUS_NEEDS_PROGRAM();
  const char* cases[][2] = {
      {"chain:8 --dt 0", "--dt: is 0"},
      {"chain:8 --dt nan", "--dt"},
      {"chain:8 --dt -1", "--dt"},
      {"chain:8 --steps -1", "--steps"},
      {"chain:8 --steps 99999999999999999999", "--steps: is 2^63 - 1 or more, expected a whole number"},
      {"chain:8 --every -1", "--every"},
      {"chain:8 --every 0", "--every: is 0, expected a whole number from 1"},
      {"chain:8 --units si",
       "units: is si, expected nm_ps, the system's own: only nm_ps and angstrom_fs are converted"},
      {"rope:5 --units nm_ps", "error: --units: is nm_ps, expected si, the system's own"},
      {"rope:5 --units reduced", "error: --units: is reduced, expected si, the system's own"},
      {"chain:8 --tol 0", "--tol"},
      {"chain:8 --max-iterations -4", "--max-iterations"},
      {"chain:8 --temperature -5", "--temperature"},
      {"chain:8 --thermostat nan", "--thermostat"},
      {"chain:8 --tau 1", "--thermostat"},
      {"chain:8 --cutoff 1", "error: --cutoff: is given, expected a LAMMPS data file"},
      {"chain:8 --reaction-field", "error: --reaction-field: is given"},
      {"chain:8 --rigid-bonds 1", "error: --rigid-bonds: is given"},
      {"chain:8 --rigid-angles 1", "error: --rigid-angles: is given"},
      {"c60-rigid --thermostat 300", "expected nonzero velocities"},
      {"c60-rigid --thermostat 0", "--thermostat: is 0, expected a positive temperature"},
      {"chain:8 --out x.pdb", ".xyz"},
      {"rope:5 --out x.dcd", "Angstrom"},
      {"chain:8 --out /nosuch/x.xyz", "cannot be written"},
      {"chain:8 --setup /nosuch.json", "/nosuch.json"},
      {"chain:8 --out x.xyz --energies ./x.xyz", "--energies: is ./x.xyz, expected a file other than that of --out"},
      {"chain:8 --out x.xyz --final x.xyz", "--final"},
      {"chain:8 --energies x --final x", "--final"},
      {"chain:8 --final x.xyz", "--final: is x.xyz, expected a file that ends in .sys"},
      {"chain:8 --forces spce-smooth", "O H H"},
      {"chain:8 --units parsec", "nm_ps"},
      {"chain:1", "chain"},
      {"nosuch", "water216"},
      {"", "--list"},
  };
  for (const auto& [arguments, expected] : cases) {
    SCOPED_TRACE(arguments);
    const Outcome run = md(arguments);
    EXPECT_EQ(run.code, std::strstr(arguments, "/nosuch") ? 1 : 2);
    EXPECT_NE(run.text.find(expected), std::string::npos) << run.text;
  }
}

TEST(MdCommand, OptionsThatWouldDoNothingAreRefused) {
  TARSUS_NEEDS_PROGRAM();
  const std::string atom = scratch("atom.data"), place = scratch("atom.xyz");
  std::ofstream(atom) << "an atom\n\n1 atoms\n1 atom types\n0 9 xlo xhi\n0 9 ylo yhi\n0 9 zlo zhi\n\nMasses\n\n1 1\n\n"
                         "Pair Coeffs # lj/cut\n\n1 0.1 3\n\nAtoms # atomic\n\n1 1 1 1 1\n";
  std::ofstream(place) << "1\n\nAr 1 1 1\n";
  for (const auto& [arguments, expected] : std::initializer_list<std::pair<std::string, std::string>>{
           {"chain:8 --skin 0.1", "--skin: is 0.1, expected 0, or a system with pair forces"},
           {place + " --forces none --seed 3", "--seed: is given, expected --temperature or --thermostat"},
           {atom + " --cutoff 4 --forces none", "error: --cutoff: is 4, expected no --forces and no --setup"}}) {
    const Outcome run = md(arguments + " --steps 1");
    EXPECT_EQ(run.code, 2);
    EXPECT_NE(run.text.find(expected), std::string::npos) << run.text;
  }
  for (const std::string& arguments :
       {place + " --forces none --seed 3 --temperature 9", atom + " --cutoff 4 --skin 0.2"})
    EXPECT_EQ(md(arguments + " --steps 1").code, 0) << arguments;
}

TEST(MdCommand, ASeedIsNotNegative) {
  TARSUS_NEEDS_PROGRAM();
  for (const char* seed : {"-1", "1.5", "x", "99999999999999999999"}) {
    const Outcome run = md(std::string("chain:8 --steps 1 --seed ") + seed);
    EXPECT_EQ(run.code, 2) << seed;
    EXPECT_NE(run.text.find("--seed"), std::string::npos) << run.text;
  }
}

TEST(MdCommand, ARefusedRunLeavesNoFile) {
  TARSUS_NEEDS_PROGRAM();
  const std::string file = scratch("rope.dcd");
  std::filesystem::remove(file);
  EXPECT_EQ(md("rope:5 --out " + file).code, 2);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(MdCommand, ARefusedRunLeavesTheFilesThatAreThere) {
  TARSUS_NEEDS_PROGRAM();
  const std::string system = scratch("chain.sys"), file = scratch("kept.sys");
  for (const std::string& to : {system, file}) ASSERT_EQ(md("chain:4 --steps 0 --quiet --final " + to).code, 0);
  const auto size = std::filesystem::file_size(file);
  // A contradiction is found when the start is prepared; the format has no place for a plane.
  const std::string contradiction = scratch("contradiction.json"), plane = scratch("plane.json");
  std::ofstream(contradiction) << R"({"distances": [[0, 1, 0.2]]})";
  std::ofstream(plane) << R"({"planes": [[0, 0, 0, 0, 0, 0, 1]], "gravity": [0, 0, -1]})";
  for (const std::string& wrong :
       {std::string("--forces none --thermostat 0"), "--setup " + contradiction, "--setup " + plane}) {
    const Outcome run = md(system + " --steps 100000000 --final " + file + " " + wrong);
    EXPECT_EQ(run.code, wrong.ends_with(contradiction) ? 1 : 2) << run.text;
    EXPECT_EQ(std::filesystem::file_size(file), size) << run.text;
  }
  EXPECT_NE(md("chain:4 --thermostat 0").text.find("--thermostat: is 0, expected a positive temperature"),
            std::string::npos);
}

TEST(MdCommand, PinsThatALastStateLosesAreNamed) {
  TARSUS_NEEDS_PROGRAM();
  const Outcome run = md("rope:4 --steps 1 --json --final " + scratch("rope.sys"));
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.text.find("the .sys format does not store pins: 1 pinned particles"), std::string::npos) << run.text;
  EXPECT_NE(run.text.find("\"final\""), std::string::npos) << run.text;
  EXPECT_NE(md(scratch("rope.sys") + " --forces none --steps 1").text.find("units si"), std::string::npos);
}

TEST(MdCommand, SystemsWithoutForcesSaySo) {
  TARSUS_NEEDS_PROGRAM();
  EXPECT_NE(md("water:27 --steps 0").text.find("no forces"), std::string::npos);
  EXPECT_EQ(md("water216 --steps 0").text.find("no forces"), std::string::npos);
}

TEST(MdCommand, SolversAreChosenByNamesThatAreListed) {
  TARSUS_NEEDS_PROGRAM();
  const Outcome wrong = md("chain:8 --solver magic");
  EXPECT_EQ(wrong.code, 2);
  for (const char* name : {"newton", "newton_general", "m_shake", "shake", "shake_matrix"}) {
    EXPECT_NE(wrong.text.find(name), std::string::npos) << wrong.text;
    EXPECT_EQ(md("chain:8 --steps 2 --quiet --solver " + std::string(name)).code, 0) << name;
  }
}

TEST(MdCommand, HelpAndListTeach) {
  TARSUS_NEEDS_PROGRAM();
  const Outcome help = md("--help"), list = md("--list");
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(list.code, 0);
  for (const char* word : {"tarsus md water216", "--setup", "--json", "--thermostat", "--solver"})
    EXPECT_NE(help.text.find(word), std::string::npos) << word;
  for (const char* word : {"cloth", "rope", "spce-reaction-field", "m_shake"})
    EXPECT_NE(list.text.find(word), std::string::npos) << word;
}

}  // namespace
