// `tarsus md` as a user runs it: what it prints, writes and refuses.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "app/program.hpp"

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

TEST(MdCommand, TableFramesAndLastState) {
  TARSUS_NEEDS_PROGRAM();
  const std::string frames = scratch("ring.frames"), xyz = scratch("ring.xyz"), last = scratch("ring.sys");
  const Outcome run = md("ring:6 --steps 10 --every 5 --out " + frames + " --final " + last);
  EXPECT_EQ(run.code, 0) << run.text;
  for (const char* word : {"potential", "kinetic", "total", "violation", "steps/s", "rounds", "dt*omega_max"})
    EXPECT_NE(run.text.find(word), std::string::npos) << word;
  std::ifstream in(frames);
  std::string line;
  int count = 0, rows = 0;
  while (std::getline(in, line)) ++(line.starts_with("frame") ? count : rows);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(rows, 18);
  // The last state goes on where the first run stopped.
  EXPECT_EQ(md(last + " --steps 1 --quiet --out " + xyz).code, 0);
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

TEST(MdCommand, BadOptionsAreNamed) {
  TARSUS_NEEDS_PROGRAM();
  const char* cases[][2] = {
      {"chain:8 --dt 0", "--dt: is 0"},
      {"chain:8 --dt nan", "--dt"},
      {"chain:8 --dt -1", "--dt"},
      {"chain:8 --steps -1", "--steps"},
      {"chain:8 --steps 99999999999999999999", "--steps"},
      {"chain:8 --every -1", "--every"},
      {"chain:8 --tol 0", "--tol"},
      {"chain:8 --max-iterations -4", "--max-iterations"},
      {"chain:8 --temperature -5", "--temperature"},
      {"chain:8 --thermostat nan", "--thermostat"},
      {"chain:8 --tau 1", "--thermostat"},
      {"chain:8 --cutoff 1", "LAMMPS"},
      {"chain:8 --out x.pdb", ".xyz"},
      {"chain:8 --out /nosuch/x.xyz", "cannot be written"},
      {"chain:8 --setup /nosuch.json", "/nosuch.json"},
      {"chain:8 --forces spce-smooth", "O H H"},
      {"chain:8 --units parsec", "nm_ps"},
      {"chain:1", "chain"},
      {"nosuch", "water216"},
      {"", "--list"},
  };
  for (const auto& [arguments, expected] : cases) {
    SCOPED_TRACE(arguments);
    const Outcome run = md(arguments);
    EXPECT_EQ(run.code, 1);
    EXPECT_NE(run.text.find(expected), std::string::npos) << run.text;
  }
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
