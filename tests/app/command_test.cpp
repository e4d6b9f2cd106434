// The commands for models from a user's view: which input they refuse and how, their output, and that every command
// line in README and docs works.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "app/program.hpp"
#include "support/base64.hpp"
#include "support/temporary_folder.hpp"
#include "tarsus/io/npz.hpp"
#include "tarsus/io/recording.hpp"

using tarsus::test::Outcome;
using tarsus::test::tarsus_command;

namespace {

struct Case {
  std::string arguments;
  int code;
  std::string expected;  // somewhere in the output
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments);
    const Outcome run = tarsus_command(c.arguments);
    EXPECT_EQ(run.code, c.code) << run.text;
    EXPECT_NE(run.text.find(c.expected), std::string::npos) << run.text;
    EXPECT_LT(run.text.size(), 2500u) << "an error is to be read";
  }
}

nlohmann::json recording_of_page(const std::string& file) {
  std::ifstream in(file);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  const std::string start = "<script id=\"recording\" type=\"application/json\">";
  const std::size_t at = text.find(start) + start.size();
  return nlohmann::json::parse(text.substr(at, text.find("</script>", at) - at));
}

TEST(Command, FailuresAreObjectsForPrograms) {
  TARSUS_NEEDS_PROGRAM();
  const std::vector<Case> cases = {
      {"run missing.xml --json", 1, "no such file"}, {"scene missing.xml --json", 1, "no such file"},
      {"scene nosuch --json", 2, "box_stack:N"},     {"info missing.npz --json", 1, "missing.npz"},
      {"md rope --dt 0 --json", 2, "--dt"},          {"run models/pendulum.xml --nosuch --json", 2, "--nosuch"},
      {"rnu --json", 2, "Unknown command"},          {"-kkt missing.xml --json", 1, "missing.xml"},
      {"-kkt x.xml --nosuch --json", 2, "--nosuch"}, {"-kkt models/pendulum.xml --method x --json", 2, "one of"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.arguments);
    const Outcome run = tarsus_command(c.arguments, "2>/dev/null");
    const nlohmann::json json = nlohmann::json::parse(run.text, nullptr, false);
    ASSERT_TRUE(json.is_object()) << run.text;
    EXPECT_EQ(run.code, c.code);
    EXPECT_EQ(json["exit_status"], c.code);
    EXPECT_NE(json["error"].get<std::string>().find(c.expected), std::string::npos) << run.text;
    EXPECT_EQ(tarsus_command(c.arguments, ">/dev/null").code, c.code);
  }
}

TEST(Command, WrongUsageSaysWhereToRead) {
  TARSUS_NEEDS_PROGRAM();
  expect_all({{"", 2, "Usage"},
              {"rnu models/pendulum.xml", 2, "Unknown command \"rnu\"; expected one of run, scene"},
              {"run", 2, "tarsus run --help"},
              {"bench foo", 2, "Unknown command \"foo\"; expected one of batch"},
              {"info ''", 2, "The argument after \"info\" is empty"},
              {"run models/pendulum.xml --duration 0.1 --no-record --dt ''", 2, "after \"--dt\" is empty"},
              {"run models/humanoid.xml --duration 0.1 --no-record --clip ''", 2, "after \"--clip\" is empty"},
              {"run models/pendulum.xml --nosuch", 2, "--nosuch"},
              {"run models/pendulum.xml --duration abc", 2, "--duration"},
              {"run models/pendulum.xml --restitution nan", 2, "0 to 1"},
              {"run models/pendulum.xml --no-record --out x.npz", 2, "--out"},
              {"run models/pendulum.xml --start 1", 2, "--clip"},
              {"scene box_stack:2 --friction nan", 2, "is nan, expected a number, 0 or more"},
              {"scene box_stack:2 --friction inf", 2, "is inf"},
              {"scene box_stack:2 --restitution nan", 2, "0 to 1"},
              {"scene box_stack:2 --compliance nan", 2, "is nan"},
              {"scene box_stack:2 --damping-time nan", 2, "is nan"},
              {"-kkt models/loops/four_bar.xml --sigma nan", 2, "--sigma"},
              {"-kkt models/loops/four_bar.xml --joint-inertia -1", 2, "--joint-inertia"}});
}

/// For each command a valid argument list, and values that its options refuse: exit code 1 for files, 2 for all else.
TEST(Command, EveryOptionRefusesWhatItCannotBe) {
  TARSUS_NEEDS_PROGRAM();
  const std::string clip = "--clip models/clips/humanoid_walk.json ";
  using Values = std::vector<std::pair<std::string, int>>;
  const std::vector<std::tuple<std::string, std::string, Values>> commands = {
      {"run",
       "models/humanoid.xml --no-record --duration 0.1 ",
       {{"--clip nosuch.json", 1},
        {clip + "--mapping nosuch.json", 1},
        {"--keyframe nosuch", 2},
        {"--dt -nan", 2},
        {"--dt 0x", 2},
        {"--dt 0 --duration 1", 2},
        {"--duration -nan", 2},
        {clip + "--start nan", 2},
        {clip + "--start 1e17", 2},
        {clip + "--start -1e17", 2},
        {"--push 1,torso", 2},
        {"--gains 5", 2},
        {"--gains -nan,1", 2},
        {"--gains models", 2},
        {"--gains models/pendulum.xml", 1},
        {"--gains 1,1 --force-limit -1", 2},
        {"--ctrl x", 2},
        {"--actuation no", 2},
        {clip + "--actuation off", 2},
        {"--gains 1,1 --actuation off", 2},
        {clip + "--policy nosuch.npz", 1},
        {"--integrator x", 2},
        {"--contacts x", 2},
        {"--contacts off --restitution 0.5", 2},
        {"--restitution 2", 2},
        {"--loops x", 2},
        {"--velocity-products x", 2},
        {"--page x.xyz", 2},
        {"--page nodir/x.html", 1}}},
      {"run", "models/humanoid.xml --duration 0.1 ", {{"--out x.csv", 2}, {"--out nodir/x.npz", 1}}},
      {"scene",
       "box_stack:2 ",
       {{"--duration nan", 2},
        {"--dt -nan", 2},
        {"--iterations 0", 2},
        {"--tolerance -nan", 2},
        {"--friction -1", 2},
        {"--restitution 2", 2},
        {"--compliance -1", 2},
        {"--damping-time -1", 2},
        {"--threads 0", 2},
        {"--out x.csv", 2}}},
      {"check", "models/humanoid.xml ", {}},
      {"convert", "models/pendulum.xml ", {{"x.usd", 2}, {"nodir/x.xml", 1}}},
      {"info", "models/humanoid.xml ", {}},
      {"gains", "models/humanoid.xml ", {{"--dt -nan", 2}, {"--gains 1,2,3", 2}}},
      {"map",
       "nosuch.bvh models/humanoid.xml ",
       {{"--mapping nosuch.json", 1}, {"--out nodir/x.json", 1}, {"--out x --clip-out x", 2}}},
      {"md",
       "water1 ",
       {{"--dt -nan", 2},
        {"--steps -1", 2},
        {"--solver x", 2},
        {"--tol 2", 2},
        {"--max-iterations -1", 2},
        {"--out x.foo", 2},
        {"--energies nodir/x", 1},
        {"--every -1", 2},
        {"--final nodir/x.sys", 1},
        {"--forces x", 2},
        {"--setup nosuch.json", 1},
        {"--units x", 2},
        {"--temperature -nan", 2},
        {"--thermostat 0", 2},
        {"--tau 1", 2},
        {"--seed -1", 2},
        {"--cutoff -nan", 2},
        {"--rigid-bonds x", 2},
        {"--rigid-angles 1", 2},
        {"--skin -nan", 2},
        {"--threads 0", 2}}},
      {"md", "", {{"cloth:3x", 2}, {"water:5", 2}, {"nosuch", 2}, {"nosuch.sys", 1}}},
      {"replay", "nosuch.npz ", {{"--model models/humanoid.xml", 1}}},
      {"bench batch",
       "--steps 1 --settle 0 ",
       {{"--worlds 0", 2},
        {"--threads 0", 2},
        {"--precision x", 2},
        {"--isa x", 2},
        {"--keyframe nosuch", 2},
        {"--gains 5", 2},
        {"--force-limit -1", 2},
        {"--targets nan", 2},
        {"--hold nan", 2},
        {"--dt nan", 2}}},
      {"bench batch", "", {{"--steps 0", 2}, {"--settle -1", 2}}},
      {"-kkt",
       "models/loops/four_bar.xml ",
       {{"--method x", 2}, {"--rhs x", 2}, {"--keyframe x", 2}, {"--joint-inertia -1", 2}, {"--sigma nan", 2}}}};
  for (const auto& [command, taken, values] : commands) {
    std::vector<Case> cases;
    for (const auto& [value, code] : values) cases.push_back({command + " " + taken + value, code, ""});
    if (command != "md" && command != "-kkt") {
      cases.push_back({command + " " + taken + "--package-path nodir", 2, "nodir"});
      cases.push_back({command + " " + taken + "--fix x", 2, "balance"});
    }
    expect_all(cases);
    for (const Case& c : cases) EXPECT_EQ(tarsus_command(c.arguments).text.find("is -nan"), std::string::npos);
    std::string all;
    for (const auto& other : commands) {
      for (const auto& [value, code] : std::get<2>(other)) all += std::get<0>(other) == command ? " " + value : "";
    }
    std::istringstream help(tarsus_command(command + " --help").text);
    const std::regex takes_value("^  (--[a-z-]+) (?!Needs|Excludes)[A-Z].*");
    for (std::string line; std::getline(help, line);) {
      std::smatch m;
      if (!std::regex_match(line, m, takes_value) || m[1] == "--package-path" || m[1] == "--fix") continue;
      EXPECT_NE(all.find(" " + m[1].str() + " "), std::string::npos) << command << " " << m[1] << " is not tried";
    }
  }
}

TEST(Command, FilesThatCannotBeUsedAreNamed) {
  TARSUS_NEEDS_PROGRAM();
  expect_all({{"run nosuch.xml", 1, "no such file"},
              {"run models", 1, "is a directory"},
              {"run models/clips/humanoid_walk.json", 1, "models/clips/humanoid_walk.json:1:1"},
              {"run models/humanoid.xml --clip models/humanoid.xml", 1, "not a motion clip"},
              {"run models/pendulum.xml --clip models/clips/humanoid_walk.json", 1, "no mapping fits"},
              {"run models/pendulum.xml --out x.csv", 2, ".npz"},
              {"run models/pendulum.xml --out /nosuch/x.npz", 1, "cannot be written"},
              {"run models/pendulum.xml --keyframe home", 2, "a model that has keyframes"},
              {"-kkt models/loops/four_bar.xml --keyframe -3", 2, "a model that has keyframes"},
              {"info README.md", 1, "not a motion clip"},
              {"info nosuch.npz", 1, "no such file"},
              {"convert models/pendulum.xml x.usd", 2, ".urdf"},
              {"scene models/pendulum.xml", 1, "joint other than free"},
              {"scene nosuch", 2, "box_stack:N"}});
  EXPECT_TRUE(tarsus_command("-kkt nosuch.xml").text.starts_with("nosuch.xml: error: "));
}

TEST(Command, OutputsAreTriedFirst) {
  TARSUS_NEEDS_PROGRAM();
  tarsus::test::TemporaryFolder folder;
  const std::string npz = folder.path() / "run.npz", kept = folder.path() / "kept.xml";
  const std::string full = folder.path() / "full.html";
  std::filesystem::create_symlink("/dev/full", full);
  const std::string unreadable = "nosuch.xml nodir/x", short_run = "run models/pendulum.xml --duration 0.1 ";
  expect_all({{short_run + "--out " + npz + " --page nodir/x.html", 1, "nodir/x.html: cannot be written: No such file"},
              {short_run + "--page " + full, 1, "full.html: cannot be written: No space left"},
              {"convert " + unreadable + ".urdf", 1, "nodir/x.urdf: cannot be written"},
              {"map nosuch.bvh nosuch.xml --out nodir/x.json", 1, "nodir/x.json: cannot be written"},
              {"map nosuch.bvh nosuch.xml --clip-out nodir/x.json", 1, "nodir/x.json: cannot be written"}});
  EXPECT_FALSE(std::filesystem::exists(npz)) << "the run was made, though its page cannot be written";
  std::ofstream(kept) << "mine";
  EXPECT_EQ(tarsus_command("convert nosuch.xml " + kept).code, 1);
  EXPECT_EQ(std::filesystem::file_size(kept), 4u);
}

TEST(Command, APageGoesFromTheStartToTheEndWithItsContacts) {
  TARSUS_NEEDS_PROGRAM();
  tarsus::test::TemporaryFolder folder;
  const std::string html = folder.path() / "run.html";
  const auto page = [&](const std::string& arguments) {
    EXPECT_EQ(tarsus_command("run models/humanoid.xml --no-record " + arguments + " --page " + html).code, 0);
    return recording_of_page(html);
  };
  const nlohmann::json fall = page("--contacts on --duration 1"),
                       walk = page("--clip models/clips/humanoid_walk.json --dt 0.007 --duration 0.5");
  for (const nlohmann::json* p : {&fall, &walk}) EXPECT_EQ(tarsus::test::decode<float>((*p)["time"]).front(), 0);
  EXPECT_NEAR(tarsus::test::decode<float>(fall["time"]).back(), 1, 1e-6);
  EXPECT_NEAR(tarsus::test::decode<float>(walk["time"]).back(), 71 * 0.007, 1e-6);
  EXPECT_FALSE(walk.contains("contacts"));
  ASSERT_TRUE(fall.contains("contacts"));
  float most = 0;
  for (const nlohmann::json& s : fall["series"]) {
    if (s["name"] != "contact force") continue;
    for (const float force : tarsus::test::decode<float>(s["values"])) most = std::max(most, force);
  }
  EXPECT_GT(most, 100) << "the floor carries a humanoid that has fallen [N]";
}

TEST(Command, NumbersOutOfRangeAreRefused) {
  TARSUS_NEEDS_PROGRAM();
  const std::string run = "run models/pendulum.xml --no-record ";
  expect_all({{run + "--duration 0", 2, "--duration: is 0, expected a positive"},
              {run + "--duration -1", 2, "--duration: is -1"},
              {run + "--duration nan", 2, "--duration: is nan"},
              {run + "--duration inf", 2, "--duration: is inf"},
              {run + "--duration 1e300", 2, "--duration: is 1e+300, expected at most 1e9 steps"},
              {run + "--dt 0", 2, "--dt: is 0"},
              {run + "--dt -1", 2, "--dt: is -1"},
              {run + "--dt nan", 2, "--dt: is nan"},
              {run + "--dt 1e-300", 2, "1e9 steps"},
              {run + "--dt 100", 2, "at least one step, here 100 s"},
              {run + "--gains 5", 2, "KP,KD"},
              {run + "--gains -5,1", 2, "kp of joint \"hinge\": is -5,"},
              {run + "--gains nan,1", 2, "kp"},
              {run + "--gains 1,1 --force-limit nan", 2, "--force-limit"},
              {"scene box_stack:2 --duration 0", 2, "--duration: is 0"},
              {"scene box_stack:2 --dt 0", 2, "error: --dt: is 0"},
              {"scene box_stack:2 --dt 100", 2, "at least one step"},
              {"scene box_stack:2 --iterations 0", 2, "error: --iterations: is 0"},
              {"scene box_stack:2 --iterations 2147483647", 2, "1 to 1,000,000"},
              {"scene box_stack:2 --iterations 9999999999", 2, "--iterations: is 9999999999, expected 1 to 1,000,000"},
              {"md water1 --dt 1e300 --steps 1", 1, "off the constraints in a step of 1e+300"},
              {"scene balls:2.5", 2, "whole numbers"},
              {"scene slope:95", 2, "degrees from 0 to below 90"},
              {"gains models/pendulum.xml --dt 0", 2, "error: --dt: is 0"},
              {"gains models/pendulum.xml --dt 1e300", 2, "error: --dt: is 1e+300"},
              {"gains models/pendulum.xml --dt 1e-300", 2, "error: --dt: is 1e-300"},
              {"gains models/pendulum.xml --gains 1e308,1", 2, "error: --gains: is 1e+308"}});
}

TEST(Command, WhatDoesNotFitIntoMemoryIsSaid) {
  TARSUS_NEEDS_PROGRAM();
  const tarsus::test::TemporaryFolder folder;
  const std::string out = " --out " + (folder.path() / "x.npz").string();
  const std::string page = " --page " + (folder.path() / "x.html").string();
  expect_all({{"run models/loops/ring.xml --dt 0.01 --duration 9e6" + out, 2, "GB of memory, of which there"},
              {"scene balls:20:20 --dt 0.01 --duration 9e6" + out, 2, "GB of memory, of which there"}});
#ifndef TARSUS_SANITIZED
  // The sanitizers reserve much more.
  const std::string bodies = folder.path() / "bodies.xml";
  std::ofstream(bodies)
      << "<mujoco><worldbody><replicate count='50000' offset='1 0 0'><body><joint/><geom size='.1'/></body>"
      << "</replicate></worldbody></mujoco>";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"run models/humanoid.xml --quiet --duration 1e5" + out,
       "for 3000000 steps of 34 degrees of freedom and their rec"},
      {"scene box_stack:5 --quiet --duration 1e5" + out, "x.npz has the "},
      {"run models/humanoid.xml --quiet --duration 1e5 --no-record" + page, "x.html has the "},
      {"run models/humanoid.xml --quiet --duration 1e5" + out + page, "x.html has the "},
      {"run models/humanoid.xml --quiet --duration 1e5" + out, "x.npz has the "},
      {"run " + bodies + " --no-record", "for the model " + bodies},
      {"check " + bodies, "for the model " + bodies},
      {"scene balls:150:150 --quiet", "for the scene balls:150:150"},
      {"md chain:2000000 --quiet", "for chain:2000000"},
      {"bench batch --worlds 300000 --threads 1 --steps 1 --settle 0", "for 300000 worlds of models/humanoid.xml"}};
  for (const auto& [arguments, expected] : cases) {
    const std::string line = "cd '" TARSUS_SOURCE_DIR "' && ulimit -v 100000 && '" + tarsus::test::kProgram + "' ";
    const std::string text = folder.path() / "text";
    EXPECT_EQ(WEXITSTATUS(std::system((line + arguments + " > " + text + " 2>&1").c_str())), 1) << arguments;
    std::ifstream file(text);
    const std::string said{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(said.find("error: not enough memory"), said.npos) << arguments << said;
    EXPECT_NE(said.find(expected), said.npos) << arguments << said;
  }
  const tarsus::Recording kept = tarsus::read_recording(folder.path() / "x.npz");
  EXPECT_EQ(kept.model, "humanoid");
  EXPECT_GT(kept.frame_count(), 10000);
  EXPECT_EQ(kept.first_changed(), -1);
  const nlohmann::json shown = recording_of_page(folder.path() / "x.html");
  const std::size_t frames = shown["frames"], bodies_shown = shown["scene"]["bodies"].size();
  EXPECT_GT(frames, 10000u);
  const auto base64_size = [](std::size_t numbers) { return (4 * numbers + 2) / 3 * 4; };
  EXPECT_EQ(shown["time"].get<std::string>().size(), base64_size(frames));
  EXPECT_EQ(shown["poses"].get<std::string>().size(), base64_size(7 * bodies_shown * frames));
  EXPECT_EQ(shown["contact_start"].get<std::string>().size(), base64_size(frames + 1));
  for (const nlohmann::json& series : shown["series"])
    EXPECT_EQ(series["values"].get<std::string>().size(), base64_size(frames)) << series["name"];
  const std::string many = "timeout 20 '" + tarsus::test::kProgram +
                           "' bench batch --precision double --worlds 256 --threads 256 > /dev/null 2>&1";
  const std::string limits = "cd " TARSUS_SOURCE_DIR "; ulimit -s 65536; ulimit -v 4000000; ";
  EXPECT_EQ(WEXITSTATUS(std::system((limits + many).c_str())), 2) << "stacks of 64 MB each";
#endif
}

TEST(Command, OutputsAreNoInputs) {
  TARSUS_NEEDS_PROGRAM();
  const tarsus::test::TemporaryFolder folder;
  const std::string at = folder.path().string() + "/", root = TARSUS_SOURCE_DIR "/models/";
  const std::string humanoid = "run models/humanoid.xml --duration 0.1 ";
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"pendulum.xml", "p.xml"}, {"clips/humanoid_walk.json", "c.npz"}, {"clips/humanoid_walk.json", "c.json"}})
    std::filesystem::copy_file(root + from, at + to);
  std::filesystem::create_symlink(at + "c.npz", at + "link.npz");
  std::ofstream(at + "scene.xml") << "<mujoco><include file='p.xml'/></mujoco>";
  std::ofstream(at + "holder.xml") << "<mujoco><asset><model name='p' file='p.xml'/></asset></mujoco>";
  std::ofstream(at + "g.html") << "{\"default\": [100, 10]}";
  ASSERT_EQ(tarsus_command("md water1 --steps 1 --quiet --out " + at + "w.xyz --final " + at + "w.sys").code, 0);
  std::map<std::string, std::string> before;
  const auto bytes = [&](const std::string& name) {
    std::ifstream file(at + name, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(file), {}};
  };
  for (const char* name : {"p.xml", "c.npz", "c.json", "g.html", "w.xyz", "w.sys"}) before[name] = bytes(name);
  expect_all(
      {{humanoid + "--clip " + at + "c.npz --out " + at + "c.npz", 2, "expected a file other than that of --clip"},
       {humanoid + "--clip " + at + "c.npz --out " + at + "link.npz", 2, "a file other than that of --clip"},
       {humanoid + "--gains " + at + "g.html --no-record --page " + at + "g.html", 2, "than that of --gains"},
       {"convert " + at + "p.xml " + at + "./p.xml", 2, "expected a file other than that of from"},
       {"convert " + at + "scene.xml " + at + "p.xml", 2, "other than those that the model includes"},
       {"convert " + at + "holder.xml " + at + "p.xml", 2, "other than those that the model includes or attaches"},
       {"map " + at + "c.json models/humanoid.xml --clip-out " + at + "c.json", 2, "than that of the clip"},
       {"md " + at + "w.xyz --forces none --out " + at + "w.xyz", 2, "than that of the system"},
       {"md " + at + "w.sys --forces none --final " + at + "w.sys", 2, "than that of the system"}});
  for (const auto& [name, content] : before) EXPECT_EQ(bytes(name), content) << name;
}

TEST(Command, OptionsThatWouldDoNothingAreRefused) {
  TARSUS_NEEDS_PROGRAM();
  const std::string run = "run models/pendulum.xml --no-record ";
  expect_all({{run + "--plain", 2, "--clip or --gains"},
              {run + "--force-limit 5", 2, "--clip or --gains"},
              {run + "--gains 1,1 --free-root", 2, "--free-root: is given, expected a model with a free root"},
              {run + "--gains 1,1 --plain --integrator rk4", 2, "euler"},
              {run + "--restitution 0.5 --contacts off", 2, "--contacts on"},
              {run + "--contacts on --integrator rk4", 2, "euler"},
              {run + "--integrator rk4 --velocity-products on", 2, "--velocity-products on: is given"},
              {run + "--loops shake", 2, "--loops shake: is given, expected a model with equality constraints"},
              {"info models/clips/humanoid_walk.json --floating-base", 2, "expected a model file"},
              {run + "--ctrl 1", 2, "--ctrl: is given, expected a model with actuators"},
              {run + "--actuation explicit", 2, "--actuation explicit: is given, expected a model with actuators"},
              {run + "--gains 1,1 --force-limit model", 2, "is model, expected a model with limits"},
              {"run models/quadruped.xml --no-record --actuation off --ctrl 1", 2, "no --actuation off"},
              {"map a.bvh models/humanoid.xml --out x.json --clip-out ./x.json", 2, "that of --out"},
              {"scene box_stack:2 --lenient", 2, "expected a model file"}});
}

TEST(Command, BuiltInScenesAreModels) {
  TARSUS_NEEDS_PROGRAM();
  tarsus::test::TemporaryFolder folder;
  const std::string out = folder.path() / "stack.npz", file = folder.path() / "slope.xml";
  expect_all({{"scene box_stack:2 --duration 0.1 --out " + out, 0, "bodies                2"},
              {"info " + out, 0, "box_stack"},
              {"run box_stack:2 --duration 0.5 --no-record", 0, "status                ok"},
              {"info slope:20", 0, "slope"},
              {"convert slope:20 " + file, 0, ""},
              {"run " + file + " --duration 0.1 --no-record", 0, "status                ok"}});
  // MuJoCo refuses a plane whose grid has no spacing, and so warns the reader.
  EXPECT_EQ(tarsus_command("check " + file).text.find("spacing"), std::string::npos);
}

TEST(Command, AFileInAnothersPlaceIsSaid) {
  TARSUS_NEEDS_PROGRAM();
  tarsus::test::TemporaryFolder folder;
  const std::string recording = folder.path() / "run.npz", clip = "models/clips/humanoid_walk.json";
  ASSERT_EQ(tarsus_command("run models/pendulum.xml --duration 0.1 --out " + recording).code, 0);
  const std::string json =
      "humanoid_walk.json:1:1: error: expected a model (MJCF or URDF), but this is a motion clip: give it with a "
      "model, "
      "as tarsus run MODEL --clip CLIP";
  const std::string setup = folder.path() / "setup.json", broken = folder.path() / "broken.json";
  const std::string empty = folder.path() / "list.json";
  std::ofstream(setup) << " {\"gravity\": [0, 0, -1], \"pinned\": [0]}";
  std::ofstream(broken) << "{\"gravity\": ";
  std::ofstream(empty) << "[]";
  const std::string mapping = "models/mappings/dog3d.json", table = "models/tasks/dog.json";
  expect_all({{"run " + clip, 1, json},
              {"check " + clip, 1, json},
              {"check " + setup, 1, "but this is JSON with the keys 'gravity', 'pinned'"},
              {"run " + mapping, 1, "but this is JSON of the format 'tarsus-clip-mapping' (--mapping takes it)"},
              {"run " + broken, 1, "but this is JSON with errors"},
              {"info " + setup, 1, "not a motion clip but JSON with the keys 'gravity', 'pinned': expected BVH"},
              {"info " + mapping, 1, "not a motion clip but JSON of the format 'tarsus-clip-mapping' (--mapping takes"},
              {"info " + table, 1, "'tarsus-motion-task' (tarsus.tasks.motion_task takes it)"},
              {"info " + empty, 1, "not a motion clip but JSON with an array"},
              {"info " + broken, 1, "the text ends where a value is expected"},
              {"map models/humanoid.xml " + clip, 1, json},
              {"check " + recording, 1, "run.npz: error: expected a model (MJCF or URDF), but this is an .npz file"},
              {"run models/humanoid.xml --clip models/humanoid.xml", 1, "this is not a motion clip"},
              {"run models/humanoid.xml --clip " + clip + " --policy " + recording, 1, "is not a policy"},
              {"replay " + recording + " --floating-base", 2, "a recording contains the options of its run"}});
}

TEST(Command, PushesActAndAreKept) {
  TARSUS_NEEDS_PROGRAM();
  const std::string run = "run models/humanoid.xml --no-record --duration 0.5 ";
  expect_all({{run + "--push 1", 2, "T,BODY,FX,FY,FZ,DURATION"},
              {run + "--push 0,torso,a,0,0,1", 2, "'a' is not a number"},
              {run + "--push 0,nobody,1,0,0,1", 2, "a moving body: "},
              {run + "--push 0.5,torso,1,0,0,1", 2, "the end of the run"},
              {run + "--push 0,torso,1,0,0,0", 2, "a duration greater than 0"}});
  tarsus::test::TemporaryFolder folder;
  const std::string out = folder.path() / "push.npz";
  const std::string line = "run models/humanoid.xml --contacts off --duration 0.5 --json --out " + out;
  const auto energy = [](const Outcome& o) { return nlohmann::json::parse(o.text)["energy"]["kinetic"].get<double>(); };
  const Outcome still = tarsus_command(line, "2>/dev/null");
  const Outcome pushed =
      tarsus_command(line + " --push 0.1,torso,-500,0,0,0.1 --push 0.2,head,0,40,0,0.05", "2>/dev/null");
  EXPECT_NEAR(nlohmann::json::parse(pushed.text)["push_impulse_Ns"][0].get<double>(), -50, 1e-9);
  EXPECT_NEAR(nlohmann::json::parse(pushed.text)["push_impulse_Ns"][1].get<double>(), 2, 1e-9);
  EXPECT_GT(energy(pushed), energy(still) + 10);
  EXPECT_NE(tarsus::read_recording(out).meta.find("force_N"), std::string::npos);
  const Outcome replayed = tarsus_command("replay " + out + " --verify");
  EXPECT_EQ(replayed.code, 0) << replayed.text;
}

TEST(Command, WithoutAClipTheStepIsTheModelsOwn) {
  TARSUS_NEEDS_PROGRAM();
  const auto dt = [](const std::string& arguments) {
    const Outcome run = tarsus_command("run " + arguments + " --duration 1 --no-record --json", "2>/dev/null");
    EXPECT_EQ(run.code, 0) << run.text;
    return nlohmann::json::parse(run.text)["dt"].get<double>();
  };
  EXPECT_EQ(dt("models/pendulum.xml"), 0.01);
  EXPECT_EQ(dt("models/pendulum.xml --dt 0.02"), 0.02);
  EXPECT_EQ(dt("models/dog.xml --clip models/clips/dog_trot.json"), 1.0 / 30);
}

TEST(Command, EveryJsonIsOneObject) {
  TARSUS_NEEDS_PROGRAM();
  tarsus::test::TemporaryFolder folder;
  const std::string out = folder.path() / "pendulum.urdf", npz = folder.path() / "run.npz";
  for (const std::string& arguments :
       {"run models/humanoid.xml --duration 0.2 --out " + npz, "info " + npz, std::string("check models/humanoid.xml"),
        std::string("info models/humanoid.xml"), std::string("info models/clips/humanoid_walk.json"),
        "convert models/pendulum.xml " + out, "check " + out, std::string("gains models/humanoid.xml"),
        std::string("-kkt models/loops/four_bar.xml"), std::string("scene box_stack:3 --duration 0.1"),
        std::string("md water1 --steps 5"), std::string("md --list"), std::string("scene --list")}) {
    SCOPED_TRACE(arguments);
    const Outcome run = tarsus_command(arguments + " --json");  // no other output, not even on standard error
    EXPECT_EQ(run.code, 0) << run.text;
    EXPECT_TRUE(nlohmann::json::parse(run.text, nullptr, false).is_object()) << run.text;
  }
}

TEST(Command, KktNamesTheMethodThatWasAskedFor) {
  TARSUS_NEEDS_PROGRAM();
  const std::string stewart = "-kkt models/loops/stewart.xml ", method = stewart + "--method ";
  const Outcome table = tarsus_command(method + "automatic");
  EXPECT_EQ(table.code, 0) << table.text;
  EXPECT_EQ(table.text.find("automatic*"), std::string::npos) << table.text;  // it chose branches, and solved by them
  EXPECT_NE(table.text.find(" rank  iterations "), std::string::npos) << table.text;
  const auto list = nlohmann::json::parse(tarsus_command(stewart + "--json").text)["methods"];
  for (const auto& one : list) EXPECT_EQ(one["requested"], one["method"]);
  // No method solves a system of such numbers but Cholesky; constrained_aba falls back to branches.
  const Outcome failed = tarsus_command(method + "constrained_aba --joint-inertia 1e300 --json");
  EXPECT_EQ(failed.code, 3) << failed.text;
  const auto one = nlohmann::json::parse(failed.text)["methods"][0];
  EXPECT_EQ(one["requested"], "constrained_aba");
  EXPECT_EQ(one["method"], "branches");
  EXPECT_EQ(one["status"], "not_finite");
}

TEST(Command, ABenchmarkSaysHowRightTheStepsWere) {
  TARSUS_NEEDS_PROGRAM();
  const std::string few = "bench batch --precision double --worlds 3,6 --threads 1,2 --steps 8 --settle 4 ";
  const Outcome run = tarsus_command(few + "--json", "2>/dev/null");
  ASSERT_EQ(run.code, 0) << run.text;
  const nlohmann::json json = nlohmann::json::parse(run.text);
  ASSERT_EQ(json["rows"].size(), 4u);
  for (const nlohmann::json& row : json["rows"]) {
    EXPECT_GT(row["step_ms"]["p50"].get<double>(), 0);
    EXPECT_GE(row["step_ms"]["p99"], row["step_ms"]["p50"]);
    EXPECT_GE(row["step_ms"]["max"], row["step_ms"]["p99"]);
    EXPECT_NEAR(row["us_per_world_step"].get<double>() * row["world_steps_per_s"].get<double>(), 1e6, 1);
    EXPECT_GT(row["touching_mean"], 0);
    EXPECT_LT(row["penetration_max_m"], 0.1);
    EXPECT_EQ(row["bad_worlds"], 0);
  }
  for (const int i : {0, 2}) {  // threads do not change a step
    for (const char* key : {"residual_max_m_per_s", "penetration_max_m", "energy_mean_j", "iterations_mean"})
      EXPECT_EQ(json["rows"][i][key], json["rows"][i + 1][key]) << key;
  }
  const Outcome pendulum = tarsus_command(few + "models/pendulum.xml --no-contacts");
  EXPECT_NE(pendulum.text.find("no contacts"), std::string::npos) << pendulum.text;
  expect_all({{"bench", 2, "tarsus bench --help"},
              {few + "--isa sse9", 2, "Run tarsus bench batch --help"},
              {few + "--targets nan", 2, "--targets"},
              {few + "--force-limit -1", 2, "--force-limit"},
              {few + "nosuch.xml", 1, "no such file"}});
}

TEST(Command, ABenchmarkOfFailedWorldsFails) {
  TARSUS_NEEDS_PROGRAM();
  const std::string bench = "bench batch --worlds 2 --threads 1 --precision double --settle 0 ";
  expect_all({
      {bench + "--steps 2 --gains 1e308,1e308", 3, "failed in every world"},
  });
  const Outcome other = tarsus_command(bench + "--isa baseline --gains 1,2,3");  // in a process of its own
  EXPECT_NE(other.code, 0);
  EXPECT_TRUE(other.text.starts_with("error: ")) << other.text;
  // Targets that are held for ever are set once: the mean energy of these steps is that of any longer time.
  const auto energy = [&](const std::string& hold) {
    const Outcome run = tarsus_command(bench + "--steps 20 --json --hold " + hold, "2>/dev/null");
    return nlohmann::json::parse(run.text)["rows"][0]["energy_mean_j"]["after"];
  };
  EXPECT_EQ(energy("1e308"), energy("1000"));
}

TEST(Command, ABenchmarkStartsWithAllOfAKeyframe) {
  TARSUS_NEEDS_PROGRAM();
  const tarsus::test::TemporaryFolder folder;
  const std::string file = (folder.path() / "plate.xml").string();
  // The falling bodies meet the plate at the keyframe's position; there is no other floor.
  std::ofstream(file)
      << R"(<mujoco><worldbody><body name="plate" mocap="true" pos="0 0 -50"><geom type="box" size="1 1 .1"/>
    </body><body pos="0 0 1"><freejoint/><geom size=".1"/><body><joint/><geom size=".1" pos=".3 0 0"/></body></body>
    </worldbody><keyframe><key name="up" mpos="0 0 .5"/><key name="down"/><key name="fast" qvel="0 0 -100 0 0 0 0"/>
    </keyframe></mujoco>)";
  const auto row = [&](const std::string& keyframe) {
    const Outcome run = tarsus_command("bench batch " + file + " --keyframe " + keyframe +
                                           " --precision double --worlds 2 --threads 1 --steps 10 --settle 50 --json",
                                       "2>/dev/null");
    EXPECT_EQ(run.code, 0) << run.text;
    return nlohmann::json::parse(run.text)["rows"][0];
  };
  EXPECT_GT(row("up")["touching_mean"], 0.9);
  EXPECT_EQ(row("down")["touching_mean"], 0);
  EXPECT_GT(row("fast")["touching_mean"], 0.5);
}

/// As in docs/models.md.
TEST(Command, ARobotOfAUrdfFileIsPutOnAFloor) {
  TARSUS_NEEDS_PROGRAM();
  const tarsus::test::TemporaryFolder folder;
  const std::string urdf = folder.path() / "robot.urdf", robot = folder.path() / "robot.xml",
                    scene = folder.path() / "scene.xml";
  std::ofstream(urdf) << R"(<robot name="r"><link name="base"><inertial><mass value="2"/>
    <inertia ixx=".02" iyy=".02" izz=".02" ixy="0" ixz="0" iyz="0"/></inertial><collision><geometry><box size=".2 .2 .1"/>
    </geometry></collision></link></robot>)";
  const Outcome falls = tarsus_command("run " + urdf + " --floating-base --duration 0.5 --no-record");
  EXPECT_EQ(falls.code, 0) << falls.text;
  EXPECT_NE(falls.text.find("note: there is no floor"), std::string::npos) << falls.text;
  ASSERT_EQ(tarsus_command("convert " + urdf + " " + robot + " --floating-base").code, 0);
  std::ofstream(scene)
      << R"(<mujoco><include file="robot.xml"/><worldbody><geom name="floor" type="plane" size="0 0 1"/>
    </worldbody><keyframe><key name="stand" qpos="0 0 .2 1 0 0 0"/></keyframe></mujoco>)";
  const Outcome stands = tarsus_command("run " + scene + " --keyframe stand --contacts on --duration 0.5 --no-record");
  EXPECT_EQ(stands.code, 0) << stands.text;
  EXPECT_EQ(stands.text.find("no floor"), std::string::npos) << stands.text;
  EXPECT_NE(stands.text.find("at most 4 at once"), std::string::npos) << stands.text;
  const Outcome drifts = tarsus_command("run models/dog.xml --contacts on --duration 0.1 --no-record");
  EXPECT_EQ(drifts.text.find("no floor"), std::string::npos) << drifts.text;
}

TEST(Command, TheBenchmarksModelIsFoundWhereItIsInstalled) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  TARSUS_NEEDS_PROGRAM();
  namespace fs = std::filesystem;
  const tarsus::test::TemporaryFolder folder;
  for (const char* part : {"bin", "models", "elsewhere"}) fs::create_directory(folder.path() / part);
  fs::copy_file(tarsus::test::kProgram, folder.path() / "bin/tarsus");
  fs::copy_file(TARSUS_SOURCE_DIR "/models/humanoid.xml", folder.path() / "models/humanoid.xml");
  const std::string bench = "../bin/tarsus bench batch --worlds 1 --threads 1 --steps 1 --settle 0 > /dev/null";
  EXPECT_EQ(std::system(("cd '" + (folder.path() / "elsewhere").string() + "' && " + bench).c_str()), 0);
}

TEST(Command, AReplayIsTheRunToTheBit) {
  TARSUS_NEEDS_PROGRAM();
  const tarsus::test::TemporaryFolder folder;
  const std::string file = (folder.path() / "run.npz").string(), other = (folder.path() / "other.npz").string();
  for (const char* run : {"models/double_pendulum.xml --dt 0.01 --duration 0.5 --integrator rk4",
                          "models/humanoid.xml --duration 0.3 --dt 0.0166667 --gains 300,30,0,0 --force-limit 100",
                          "models/humanoid.xml --clip models/clips/humanoid_walk.json --duration 0.3 --json",
                          "models/double_pendulum.xml --duration 1 --velocity-products off"}) {
    tarsus_command("run " + std::string(run) + " --out " + file);
    for (const std::string& from : {std::string(TARSUS_SOURCE_DIR), folder.path().string()}) {
      const Outcome replay = tarsus_command("replay --verify " + file, "2>&1", from);
      EXPECT_EQ(replay.code, 0) << run << replay.text;
      EXPECT_NE(replay.text.find("the same to the bit"), std::string::npos) << replay.text;
    }
  }
  {  // a folder that does not exist: the current one takes its place
    const std::filesystem::path first = folder.path() / "first", second = folder.path() / "second";
    std::filesystem::create_directories(first);
    std::filesystem::copy_file(TARSUS_SOURCE_DIR "/models/pendulum.xml", first / "my.xml");
    ASSERT_EQ(tarsus_command("run my.xml --duration 0.1 --out r.npz", "2>&1", first).code, 0);
    std::filesystem::rename(first, second);
    EXPECT_EQ(tarsus_command("replay --verify r.npz", "2>&1", second).code, 0);
  }
  {  // a name that is not UTF-8
    const std::filesystem::path odd = folder.path() / "k\xe9n.xml";
    std::filesystem::copy_file(TARSUS_SOURCE_DIR "/models/pendulum.xml", odd);
    ASSERT_EQ(tarsus_command("run k\xe9n.xml --duration 0.1 --out odd.npz", "2>&1", folder.path()).code, 0);
    const Outcome replay = tarsus_command("replay --verify odd.npz", "2>&1", folder.path());
    EXPECT_EQ(replay.code, 0) << replay.text;
  }
  ASSERT_EQ(tarsus_command("run models/double_pendulum.xml --dt 0.01 --duration 0.5 --out " + file).code, 0);
  const auto copy = [&](double moved, bool hashed_anew) {  // a copy with one number of frame 20 changed
    tarsus::NpzReader from{std::filesystem::path(file)};
    std::vector<double> time = from.read_real("time", {50}), qpos = from.read_real("qpos", {50, 2}),
                        qvel = from.read_real("qvel", {50, 2});
    EXPECT_FALSE(from.has("target"));  // nothing drives it
    std::vector<std::uint64_t> hash = from.read_words("hash", {50});
    qpos[41] += moved;
    if (hashed_anew) hash[20] = tarsus::frame_hash({&qpos[40], 2}, {&qvel[40], 2});
    tarsus::NpzWriter to(other);
    to.add<double>("time", time, {50}), to.add<double>("qpos", qpos, {50, 2});
    to.add<double>("qvel", qvel, {50, 2});
    to.add<std::uint64_t>("hash", hash, {50}), to.add_text("meta", from.read_text("meta"));
    to.finish();
  };
  copy(0, false);
  EXPECT_EQ(tarsus_command("replay --verify " + other).code, 0);
  copy(1e-15, false);
  const Outcome changed = tarsus_command("replay --verify --json " + other, "2>/dev/null");
  EXPECT_EQ(changed.code, 3);
  EXPECT_EQ(nlohmann::json::parse(changed.text)["first_changed_in_file"], 20);
  EXPECT_EQ(nlohmann::json::parse(changed.text)["first_different_replay"], -1);
  copy(1e-15, true);
  expect_all({{"replay --verify " + other, 3, "frame 20 is the first that differs"},
              {"replay " + other, 0, "frame 20 is the first that differs"},
              {"replay nosuch.npz", 1, "no such file"}});
}

TEST(Command, ControlsAreTheModelsOwn) {
  TARSUS_NEEDS_PROGRAM();
  tarsus::test::TemporaryFolder folder;
  const std::string arm = folder.path() / "arm.xml", odd = folder.path() / "odd.xml";
  const std::string body =
      "<mujoco><worldbody><body pos='0 0 1'><joint name='j' axis='0 1 0'/><geom size='.1' pos='.3 0 0'/></body>"
      "</worldbody><actuator><position name='servo' joint='j' kp='300' kv='20'/>";
  std::ofstream(arm) << body << "</actuator><keyframe><key name='up' qpos='.5' ctrl='.5'/>"
                     << "<key name='fast' qvel='2' ctrl='.5'/></keyframe></mujoco>";
  std::ofstream(odd) << body << "<general name='odd' joint='j' gaintype='user'/></actuator></mujoco>";
  expect_all({{"run " + arm + " --duration 0.1 --no-record --keyframe up --ctrl servo=0.2", 0, "ok"},
              // I ω²/2 of a sphere of 4.19 kg; the keyframe leaves its pose to the file.
              {"run " + arm + " --duration 1e-6 --dt 1e-6 --no-record --keyframe fast", 0, "kinetic 0.78"},
              {"run " + arm + " --ctrl motor=1", 2, "an actuator of the model: servo"},
              {"run " + arm + " --ctrl servo=x", 2, "a number, or NAME=NUMBER"},
              {"run " + arm + " --gains 10,1,0,0 --ctrl 1", 2, "no --gains"},
              {"run " + arm + " --gains 10,1,0,0 --actuation explicit", 2, "no --gains"},
              {"run " + arm + " --floating-base", 2, "--floating-base: is given, expected a URDF file"},
              {"run " + arm + " --package-path models", 2, "--package-path: is given, expected a URDF file"},
              {"run " + arm + " --page x.xyz", 2, "a file that ends in .html"},
              {"run " + arm + " --duration 0.1 --no-record --page nodir/x.html", 1, "No such file or directory"},
              {"run " + odd + " --duration 0.1 --no-record", 1, "actuator \"odd\" is not computed"},
              {"run " + odd + " --duration 0.1 --no-record --actuation off", 0, "ok"},
              {"check " + arm + " --strict", 0, "1 actuator"},
              {"check " + odd + " --strict", 2, "1 actuator that is not computed"},
              {"check " + odd, 0, "is not computed"},
              {"check models/humanoid.xml --strict", 0, "default softness are stiffer here"}});
}

/// A chain of `hinges` hinges, as MJCF.
std::string chain_of(int hinges) {
  std::string text = "<mujoco><worldbody>";
  for (int i = 0; i < hinges; ++i)
    text += "<body pos='0 0 -.1'><joint axis='0 1 0'/><geom type='sphere' size='.01' contype='0' conaffinity='0'/>";
  for (int i = 0; i < hinges; ++i) text += "</body>";
  return text + "</worldbody></mujoco>";
}

TEST(Command, LongChainsTakeMemoryOfTheirLength) {
  TARSUS_NEEDS_PROGRAM();
  const tarsus::test::TemporaryFolder folder;
  const std::string chain = folder.path() / "chain.xml", copy = folder.path() / "copy.xml";
  std::ofstream(chain) << chain_of(4000);
  for (const char* to : {"copy.xml", "copy.urdf"}) {
    const Outcome convert = tarsus_command("convert " + chain + " " + (folder.path() / to).string());
    EXPECT_EQ(convert.code, 0) << convert.text;
  }
  EXPECT_LT(std::filesystem::file_size(copy), 10 * std::filesystem::file_size(chain));  // without 2 blanks a level
#ifndef TARSUS_SANITIZED
  // The sanitizers reserve much more.
  const std::string gains = tarsus::test::kProgram + " gains " + chain + " --dt 0.01 --gains 10,1 > /dev/null";
  EXPECT_EQ(std::system(("ulimit -v 200000; " + gains).c_str()), 0) << "a matrix of its DoFs has 128 MB";
#endif
}

TEST(Command, AFullDiskIsAnErrorAndOddNamesAreNot) {
  TARSUS_NEEDS_PROGRAM();
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  for (const char* arguments : {"check models/humanoid.xml --json", "run --help", "--help", "--version"})
    EXPECT_EQ(tarsus_command(arguments, ">/dev/full 2>/dev/null").code, 1) << arguments;
  const tarsus::test::TemporaryFolder folder;
  const std::string loop = folder.path() / "loop.xml";
  std::filesystem::create_symlink(loop, loop);
  expect_all({{"info " + loop, 1, "error: " + loop + ": Too many levels of symbolic links"}});
  const Outcome run = tarsus_command("check \"$(printf 'no\\377name.xml')\" --json");
  EXPECT_EQ(run.code, 1);
  EXPECT_TRUE(nlohmann::json::parse(run.text, nullptr, false).is_object()) << run.text;
}

TEST(Command, StandardErrorThatNobodyReadsEndsNothing) {
  TARSUS_NEEDS_PROGRAM();
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const tarsus::test::TemporaryFolder folder;
  const std::string out = folder.path() / "run.npz";
  for (const std::string redirect : {"2>/dev/full", "2>&-"}) {
    EXPECT_EQ(tarsus_command("run nosuch.xml", redirect).code, 1);
    EXPECT_EQ(tarsus_command("-kkt nosuch.xml", redirect).code, 1);
    EXPECT_EQ(tarsus_command("run models/humanoid.xml --duration 0.2 --out " + out, ">/dev/null " + redirect).code, 0);
    // The messages must not end up in the file, which may have been given the number of the closed stream.
    std::ifstream file(out, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(bytes.find("100 %"), bytes.npos);
    EXPECT_EQ(tarsus_command("replay " + out).code, 0);
  }
}

TEST(Command, AClipThatFitsByAccidentIsWarnedOf) {
  TARSUS_NEEDS_PROGRAM();
  const Outcome run =
      tarsus_command("run models/humanoid.xml --clip models/clips/dog_canter.json --duration 0.1 --no-record");
  EXPECT_NE(run.text.find("warning: joints that are not driven and stay at rest: chest"), std::string::npos)
      << run.text;
}

TEST(Command, ARunSaysWhatItsStartAsksForAndWhyItStopped) {
  TARSUS_NEEDS_PROGRAM();
  tarsus::test::TemporaryFolder folder;
  const auto file = [&](const std::string& name, const std::string& world) {
    const std::string path = folder.path() / name;
    std::ofstream(path) << "<mujoco><compiler angle='radian'/><worldbody>" << world << "</worldbody></mujoco>";
    return path;
  };
  const std::string bar = "<geom type='capsule' fromto='0 0 0 0 0 -1' size='0.02'/>";
  const std::string bent =
      file("bent.xml", "<body><joint name='elbow' axis='0 1 0' limited='true' range='1 2'/>" + bar + "</body>");
  const std::string level =
      file("level.xml", "<body><joint axis='0 1 0'/><geom type='capsule' fromto='0 0 0 1 0 0' size='0.02'/></body>");
  expect_all(
      {{"run " + bent + " --duration 0.1 --no-record", 0, "1 joint outside its range, \"elbow\" by 1 rad"},
       {"run " + level + " --dt 0.1 --duration 100 --gains 1e6,0 --plain --no-record --quiet", 3, "omit --plain"},
       {"run models/humanoid.xml --clip models/clips/humanoid_walk.json --duration 0.1 --no-record", 0,
        "every 1.04 s"}});
  std::string many;
  for (int i = 0; i < 25; ++i) many += "<body pos='" + std::to_string(i) + " 0 0'><freejoint/>" + bar + "</body>";
  expect_all({{"run " + file("many.xml", many) + " --duration 0.01 --no-record", 0, "tarsus scene"},
              {"scene " + file("hinges.xml",
                               "<replicate count='500' offset='1 0 0'><body><joint/>" + bar + "</body></replicate>"),
               1, "a joint other than free"},
              {"scene models/scenes/rope_on_peg.xml", 1,
               "an equality constraint is not simulated in scenes of free bodies; tarsus run (Stepper) simulates"}});
}

std::string read(const std::string& path) {
  std::ifstream in(std::string(TARSUS_SOURCE_DIR) + "/" + path);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// The lines of a page that are tarsus commands: `tarsus …` or `build/bin/tarsus …` at the start of a line of code.
std::vector<std::string> commands_of(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  const std::regex command(
      R"(^(?:    |  )?(?:build/bin/)?tarsus((?:-kkt| run| scene| check| convert| info| gains| md| bench| replay) [^#]*))");
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (!std::regex_search(line, m, command)) continue;
    std::string arguments = std::regex_replace(m[1].str(), std::regex("   .*"), "");  // its explanation, beside it
    if (arguments.starts_with(' ')) arguments.erase(0, 1);
    if (arguments.find("robot.") == arguments.npos && arguments.find("system.sys") == arguments.npos &&
        arguments.find("water.data") == arguments.npos && arguments.find("water.json") == arguments.npos &&
        !std::regex_search(arguments, std::regex("^(view|demo)\\b")))  // tests/python/test_view_command.py tests these
      found.push_back(arguments);
  }
  return found;
}

/// The same command with a short duration. An option given twice, where the last one counts, would be an error.
std::string shortened(std::string arguments) {
  arguments = std::regex_replace(arguments, std::regex("balls:[0-9]+:[0-9]+"), "balls:3:3");
  arguments = std::regex_replace(arguments, std::regex("water:[0-9]+"), "water:27");
  arguments = std::regex_replace(arguments, std::regex("--(duration|steps) [0-9.]+"), "");
  if (arguments.starts_with("run") || arguments.starts_with("scene "))
    if (arguments.find("--list") == arguments.npos) arguments += " --duration 0.2";
  if (arguments.starts_with("bench batch")) {
    arguments = std::regex_replace(arguments, std::regex(" --(worlds|threads|precision|isa|settle) [a-z0-9,]+"), "");
    arguments += " --worlds 3 --threads 1 --precision double --steps 2 --settle 1";
  }
  if (arguments.starts_with("md ") && arguments.find("--list") == arguments.npos) arguments += " --steps 5";
  return arguments;
}

TEST(Command, EveryCommandThatThePagesShowRuns) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  TARSUS_NEEDS_PROGRAM();
  tarsus::test::TemporaryFolder folder;
  int count = 0;
  std::vector<std::string> sources = {read("README.md")};
  for (const auto& page : std::filesystem::directory_iterator(std::string(TARSUS_SOURCE_DIR) + "/docs")) {
    if (page.path().extension() == ".md") sources.push_back(read("docs/" + page.path().filename().string()));
  }
  for (const char* command :
       {"", "run", "scene", "check", "convert", "info", "gains", "-kkt", "md", "bench batch", "replay"})
    sources.push_back(tarsus_command(std::string(command) + " --help").text);
  for (const std::string& source : sources) {
    for (std::string arguments : commands_of(source)) {
      arguments = shortened(arguments);
      SCOPED_TRACE(arguments);
      if (arguments.starts_with("run")) arguments += " --out " + (folder.path() / "run.npz").string();
      if (arguments.starts_with("convert"))
        arguments = std::regex_replace(arguments, std::regex(" (\\w+\\.urdf)"), " " + folder.path().string() + "/$1");
      arguments = std::regex_replace(arguments, std::regex("--(page|energies|out) (\\w+\\.\\w+)"),
                                     "--$1 " + folder.path().string() + "/$2");
      if (arguments.find("out/") != arguments.npos)
        arguments = std::regex_replace(arguments, std::regex("out/\\w+\\.npz"), (folder.path() / "run.npz").string());
      const Outcome run = tarsus_command(arguments);
      EXPECT_EQ(run.code, 0) << run.text;
      ++count;
    }
  }
  EXPECT_GE(count, 30) << "commands found on the pages and in --help";
}

}  // namespace
