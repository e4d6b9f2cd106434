// Free bodies with contact against MuJoCo's wheel on the same MJCF; skipped, with a message, if there is no wheel.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "support/temporary_folder.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/rigid_model.hpp"

namespace tarsus {
namespace {

namespace fs = std::filesystem;

std::string python() {
  if (const char* named = std::getenv("TARSUS_PYTHON")) return named;
  const fs::path local = TARSUS_SOURCE_DIR "/.venv/bin/python";
  return fs::exists(local) ? local.string() : "python3";
}

std::string output_of(const std::string& command, int& status) {
  std::FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  status = WEXITSTATUS(pclose(pipe));
  return text;
}

class AgainstMujoco : public ::testing::Test {
 protected:
  void SetUp() override {
    int status = 0;
    output_of("'" + python() + "' -c 'import mujoco' 2>/dev/null", status);
    if (status != 0) GTEST_SKIP() << "no MuJoCo in " << python() << " (TARSUS_PYTHON names another)";
  }
  nlohmann::json mujoco(const std::string& arguments) {
    int status = 0;
    const std::string text =
        output_of("'" + python() + "' '" TARSUS_SOURCE_DIR "/tests/sim/rigid_against_mujoco.py' " + arguments, status);
    EXPECT_EQ(status, 0);
    return nlohmann::json::parse(text);
  }
};

/// Normal and tangential force of each pair of bodies, under MuJoCo's names.
std::map<std::string, std::pair<double, double>> forces(const RigidModel& model, const RigidWorld<double>& world) {
  std::map<std::string, std::pair<double, Vec3d>> sums;
  for (std::size_t i = 0; i < world.contacts().size(); ++i) {
    const auto& c = world.contacts()[i];
    const auto& impulse = world.impulses()[i];
    const int low = std::min(c.body_a, c.body_b), high = std::max(c.body_a, c.body_b);
    auto& sum =
        sums[(low < 0 ? "world" : model.scene.names[std::size_t(low)]) + " " + model.scene.names[std::size_t(high)]];
    const double sign = c.body_a == low ? 1 : -1;
    sum.first += impulse.normal / world.options().dt;
    sum.second += Vec3d{impulse.tangent[0], impulse.tangent[1], impulse.tangent[2]} * (sign / world.options().dt);
  }
  std::map<std::string, std::pair<double, double>> out;
  for (const auto& [key, sum] : sums) out[key] = {sum.first, norm(sum.second)};
  return out;
}

TEST_F(AgainstMujoco, RestingForcesWithinOnePerCent) {
  const test::TemporaryFolder folder;
  // The groove has no friction: with friction the ball can be wedged, and its forces are not unique.
  const fs::path groove = folder.path() / "groove.xml", slope = folder.path() / "slope.xml";
  std::ofstream(groove) << R"(<mujoco><option timestep="0.002" cone="elliptic" iterations="200"/><worldbody>
    <geom type="plane" size="5 5 1" euler="0 60 0" condim="1"/><geom type="plane" size="5 5 1" euler="0 -40 0" condim="1"/>
    <body name="ball" pos="0.1 0 1"><freejoint/><geom type="sphere" size="0.4" mass="2" condim="1"/></body>
    </worldbody></mujoco>)";
  std::ofstream(slope) << R"(<mujoco><option timestep="0.002" cone="elliptic" iterations="200"/><worldbody>
    <geom type="plane" size="5 5 1" euler="15 0 0" friction="0.9 0 0"/>
    <body name="brick" pos="0 0 0.35" euler="15 0 0"><freejoint/><geom type="box" size="0.5 0.4 0.3" mass="3"/></body>
    <body name="on_top" pos="0 -0.2 0.9" euler="15 0 0"><freejoint/><geom type="box" size="0.2 0.2 0.2" mass="1"/></body>
    </worldbody></mujoco>)";
  for (const fs::path& file : {fs::path(TARSUS_SOURCE_DIR "/models/scenes/box_stack.xml"), groove, slope}) {
    SCOPED_TRACE(file.string());
    const nlohmann::json theirs = mujoco("rest '" + file.string() + "' 4");
    ASSERT_LT(theirs["speed"].get<double>(), 0.02);
    RigidModel model = rigid_model(compile(read_mjcf(file)));
    model.scene.options.dt = 1.0 / 240, model.scene.options.iterations = 100;
    RigidWorld<double> world = make_world<double>(model.scene);
    for (int i = 0; i < 8 * 240; ++i) ASSERT_EQ(world.step().status, WorldStatus::ok);
    const auto ours = forces(model, world);
    ASSERT_EQ(ours.size(), theirs["forces"].size());
    for (const auto& [pair, force] : theirs["forces"].items()) {
      ASSERT_TRUE(ours.count(pair)) << pair;
      const double normal = force["normal"].get<double>(), tangent = force["tangent"].get<double>();
      EXPECT_NEAR(ours.at(pair).first, normal, 0.01 * normal) << pair;
      EXPECT_NEAR(ours.at(pair).second, tangent, 0.01 * normal) << pair;
    }
  }
}

TEST_F(AgainstMujoco, SlidingAndRollingConvergeAsStepsShrink) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "slope.xml";
  // A slope of 25 degrees: a brick that slides, a ball that rolls, a ball that slips and rolls. The contacts are hard:
  // MuJoCo's friction creeps with its softness, and the creep would not vanish with the step.
  std::ofstream(file) << R"(<mujoco><option timestep="0.002" cone="elliptic" iterations="200"/>
    <default><geom priority="1" condim="3" solref="-20000 -400" solimp="0.99 0.99 0.001"/></default><worldbody>
    <geom name="slope" type="plane" size="50 50 1" euler="0 25 0" priority="0"/>
    <body name="slides" pos="0.0845237 -2 0.1812616" euler="0 25 0"><freejoint/><geom type="box" size="0.3 0.3 0.2" mass="1" friction="0.2 0 0"/></body>
    <body name="rolls" pos="0.1267855 0 0.2718923"><freejoint/><geom type="sphere" size="0.3" mass="1" friction="0.8 0 0"/></body>
    <body name="slips" pos="0.1267855 2 0.2718923"><freejoint/><geom type="sphere" size="0.3" mass="1" friction="0.05 0 0"/></body>
    </worldbody></mujoco>)";
  RigidModel model = rigid_model(compile(read_mjcf(file)));
  std::vector<double> last(3, 1e9);
  for (double h : {1.0 / 250, 1.0 / 500, 1.0 / 1000}) {
    const nlohmann::json theirs = mujoco("path '" + file.string() + "' 1 " + std::to_string(h));
    model.scene.options.dt = h, model.scene.options.iterations = 100;
    RigidWorld<double> world = make_world<double>(model.scene);
    for (int i = 0; i < int(std::lround(1 / h)); ++i) ASSERT_EQ(world.step().status, WorldStatus::ok);
    std::vector<double> qpos(std::size_t(model.nq)), qvel(std::size_t(model.nv));
    model.state(world, qpos, qvel);
    for (std::size_t body = 0; body < 3; ++body) {
      double distance = 0;
      for (std::size_t k = 0; k < 3; ++k)
        distance = std::max(distance, std::abs(qpos[7 * body + k] - theirs["qpos"][7 * body + k].get<double>()));
      EXPECT_LT(distance, std::max(0.75 * last[body], 2e-3)) << body << " h = " << h;
      RecordProperty("difference_" + std::to_string(body) + "_" + std::to_string(int(1 / h)), std::to_string(distance));
      last[body] = distance;
    }
  }
  for (double difference : last) EXPECT_LT(difference, 4e-3);  // of a path of 2 m
}

TEST_F(AgainstMujoco, SpinsAndRollsAsFar) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "turning.xml";
  // condim 4: a ball that spins; condim 6: one that rolls. MuJoCo has one cone over all five directions, which equals
  // our three cones where only one of them is at its limit. The contacts are soft because hard ones bounce there.
  // MuJoCo's rolling ball ends 1.7 mm beyond the closed form, however small the step; ours ends within 0.3 mm of it.
  std::ofstream(file) << R"(<mujoco><option timestep="0.002" cone="elliptic" iterations="200"/>
    <default><geom priority="1" solref="0.01 1" friction="0.8 0.03 0.02"/></default><worldbody>
    <geom name="floor" type="plane" size="50 50 1" priority="0"/>
    <body name="spins" pos="0 -2 0.3"><freejoint/><geom type="sphere" size="0.3" mass="1" condim="4"/></body>
    <body name="rolls" pos="0 0 0.3"><freejoint/><geom type="sphere" size="0.3" mass="2" condim="6"/></body>
    </worldbody></mujoco>)";
  RigidModel model = rigid_model(compile(read_mjcf(file)));
  std::vector<double> last(2, 1e9), start(12, 0.0);
  double rolled = 0;
  start[5] = 4;                   // ω_z
  start[6] = 1.5, start[10] = 5;  // v, v/r
  for (double h : {1.0 / 250, 1.0 / 500, 1.0 / 1000}) {
    std::string velocity;
    for (double v : start) velocity += " " + std::to_string(v);
    const nlohmann::json theirs = mujoco("path '" + file.string() + "' 0.8 " + std::to_string(h) + velocity);
    model.set_state(compile(read_mjcf(file)).qpos0, start);
    model.scene.options.dt = h, model.scene.options.iterations = 200;
    RigidWorld<double> world = make_world<double>(model.scene);
    for (int i = 0; i < int(std::lround(0.8 / h)); ++i) ASSERT_EQ(world.step().status, WorldStatus::ok);
    std::vector<double> qpos(std::size_t(model.nq)), qvel(std::size_t(model.nv));
    model.state(world, qpos, qvel);
    rolled = qpos[7];
    for (std::size_t body = 0; body < 2; ++body) {
      double error = 0;  // of the path and of the spin about the normal; MuJoCo's velocities oscillate there
      for (std::size_t k : {0, 1})
        error = std::max(error, std::abs(qpos[7 * body + k] - theirs["qpos"][7 * body + k].get<double>()));
      error = std::max(error, std::abs(qvel[6 * body + 5] - theirs["qvel"][6 * body + 5].get<double>()));
      EXPECT_LT(error, std::max(0.75 * last[body], 2e-3)) << model.scene.names[body] << " h = " << h;
      RecordProperty("difference_" + model.scene.names[body] + std::to_string(int(1 / h)), std::to_string(error));
      last[body] = error;
    }
  }
  for (double error : last) EXPECT_LT(error, 2e-3);  // of a path of 1 m
  const double slowing = 0.02 * 9.81 * 0.3 / (1.4 * 0.3 * 0.3);
  EXPECT_NEAR(rolled, 1.5 * 0.8 - 0.5 * slowing * 0.8 * 0.8, 3e-4);
}

TEST_F(AgainstMujoco, MarginsAndExplicitPairsKeepTheSameDistance) {
  const test::TemporaryFolder folder;
  const fs::path file = folder.path() / "pairs.xml";
  // Margins that add up; a pair with its own margin and friction, despite masks and an exclude; a gap.
  std::ofstream(file) << R"(<mujoco><option timestep="0.002" cone="elliptic" iterations="200" gravity="1.5 0 -9.81"/>
    <default><geom solimp="0.9 0.95 0.00101"/><pair solimp="0.9 0.95 0.00101"/></default><worldbody>
    <geom name="floor" type="plane" size="5 5 1" margin="0.02" gap="0.01"/>
    <body name="ball" pos="0 0 0.4"><freejoint/><geom type="sphere" size="0.1" mass="1" margin="0.05" gap="0.03" condim="3"/></body>
    <body name="box" pos="0 2 0.3"><freejoint/><geom name="box" type="box" size="0.2 0.2 0.1" mass="2" contype="0" conaffinity="0"/></body>
    <body name="lid" pos="0 2 0.5"><freejoint/><geom name="lid" type="box" size="0.1 0.1 0.05" mass="1"/></body>
    <body name="slides" pos="0 -2 0.2"><freejoint/><geom name="slides" type="box" size="0.2 0.2 0.1" mass="1"/></body></worldbody>
    <contact><pair geom1="floor" geom2="box" margin="0.06" gap="0.02"/><pair geom1="lid" geom2="box"/>
    <pair geom1="slides" geom2="floor" friction="0.1 0.1"/><exclude body1="box" body2="lid"/></contact></mujoco>)";
  const nlohmann::json theirs = mujoco("path '" + file.string() + "' 1 0.002");
  RigidModel model = rigid_model(compile(read_mjcf(file)));
  model.scene.options.iterations = 200;
  RigidWorld<double> world = make_world<double>(model.scene);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(world.step().status, WorldStatus::ok);
  std::vector<double> qpos(std::size_t(model.nq)), qvel(std::size_t(model.nv));
  model.state(world, qpos, qvel);
  EXPECT_NEAR(qpos[2], 0.17, 1e-3);  // kept apart by 0.02 + 0.05
  EXPECT_NEAR(qpos[9], 0.16, 1e-3);  // 0.06
  for (std::size_t body = 0; body < 4; ++body) {
    EXPECT_NEAR(qpos[7 * body + 2], theirs["qpos"][7 * body + 2].get<double>(), 2e-4) << body;  // sliding lifts theirs
    EXPECT_NEAR(qpos[7 * body], theirs["qpos"][7 * body].get<double>(), 5e-3) << body;
  }
}

}  // namespace
}  // namespace tarsus
