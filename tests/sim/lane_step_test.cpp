// Contacts, ranges, dry friction and drives with force limits in lanes: each world's step is that of a world alone.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/batch.hpp"

namespace tarsus {
namespace {

StepOptions options_of(double dt = 1.0 / 60) {
  StepOptions options;
  options.dt = dt, options.rows.contacts = options.rows.joints = true;
  return options;
}

Drives limited(const Model& model, double kp, double limit) {
  Drives drives = Drives::uniform(model, kp, kp / 10, 0, 0);
  if (!(limit < kInfinity)) return drives;
  drives.force_limit.assign(model.nv, limit);
  std::fill_n(drives.force_limit.begin(), 6, kInfinity);
  return drives;
}

/// The start pose, turned, lowered to where something meets the ground, moving.
void random_state(const Model& model, std::mt19937& random, double size, std::span<double> qpos,
                  std::span<double> qvel) {
  std::normal_distribution<double> normal;
  std::copy(model.qpos0.begin(), model.qpos0.end(), qpos.begin());
  std::vector<double> turn(model.nv);
  for (double& x : turn) x = size * normal(random);
  turn[0] = turn[1] = 0, turn[2] = 0.05 * normal(random);
  Data data(model);
  AlignedVector<double> out(model.nq);
  integrate<double>(model, data, qpos, turn, 1.0, out);
  std::copy(out.begin(), out.end(), qpos.begin());
  for (double& x : qvel) x = size / 0.3 * normal(random);
}

struct Case {
  const char* path;
  double kp, limit, turn;  ///< turn: of joints about the file's pose [rad]
};
class LaneStep : public testing::TestWithParam<Case> {};

/// Both solve one problem, to 1e-6 m/s: they differ by what that leaves open. Redundant contacts leave forces open, not
/// velocities.
TEST_P(LaneStep, IsThatOfAWorldAlone) {
  const Model model = compile(read_mjcf(std::string(TARSUS_SOURCE_DIR "/") + GetParam().path, {}));
  const Drives drives = limited(model, GetParam().kp, GetParam().limit);
  const bool hulls = !model.spec.meshes.empty();  // a face's points come and go with the last bit of a pose
  const int worlds = hulls ? 8 : 24;
  Batch<double> batch(model, worlds, {.step = options_of(), .drives = drives});
  ASSERT_GT(batch.pack_width(), 1);
  std::mt19937 random(5);
  std::vector<Data> alone;
  for (int world = 0; world < worlds; ++world) {
    alone.emplace_back(model);
    random_state(model, random, GetParam().turn, alone.back().qpos, alone.back().qvel);
    std::copy(alone.back().qpos.begin(), alone.back().qpos.end(), batch.qpos().begin() + world * model.nq);
    std::copy(alone.back().qvel.begin(), alone.back().qvel.end(), batch.qvel().begin() + world * model.nv);
    std::copy(model.qpos0.begin(), model.qpos0.end(), batch.qpos_target().begin() + world * model.nq);
  }
  ASSERT_EQ(batch.step(), 0);
  const AlignedVector<double> target(model.qpos0.begin(), model.qpos0.end());
  int touching = 0, saturated = 0, compared = 0, missed = 0, missed_alone = 0;
  for (int world = 0; world < worlds; ++world) {
    Stepper<double> stepper(model, alone[world], options_of());
    ASSERT_EQ(stepper.step(alone[world], drives, target), 0);
    const RowsReport& one = stepper.rows()->report();
    const WorldReport& lane = batch.reports()[world];
    EXPECT_NEAR(lane.contacts, one.contacts, hulls ? 5 : 0) << world;
    if (lane.contacts != one.contacts) continue;
    EXPECT_EQ(lane.limits, one.limits) << world;
    EXPECT_NEAR(lane.penetration, one.penetration, 1e-12) << world;
    touching += lane.touching, saturated += lane.saturated;
    missed += lane.unsolved, missed_alone += one.status != StepStatus::converged;
    EXPECT_TRUE(lane.unsolved || lane.residual <= 1e-6) << world;
    if (lane.unsolved || one.status != StepStatus::converged) continue;
    double largest = 0;
    for (int k = 0; k < model.nv; ++k)
      largest = std::max(largest, std::abs(batch.qvel()[world * model.nv + k] - alone[world].qvel[k]));
    EXPECT_LE(largest, 2e-4) << world;  // of speeds of 1 to 50 rad/s
    ++compared;
  }
  EXPECT_GE(compared, worlds * (hulls ? 3 : 9) / 10);
  EXPECT_LE(missed, missed_alone + 2);
  EXPECT_GT(touching, worlds / 2);
  EXPECT_EQ(saturated > 0, GetParam().limit < kInfinity);
}

INSTANTIATE_TEST_SUITE_P(Models, LaneStep,
                         testing::Values(Case{"models/humanoid.xml", 300, kInfinity, 0.3},
                                         Case{"models/humanoid.xml", 300, 60, 0.3},
                                         Case{"models/humanoid.xml", 1e4, 100, 0.3},
                                         Case{"models/dog.xml", 300, kInfinity, 0.3},
                                         Case{"models/dog.xml", 1e3, 50, 0.3},
                                         Case{"../shared/data/menagerie/google_barkour_vb/scene.xml", 100, 0.5, 0.03},
                                         Case{"../shared/data/menagerie/unitree_g1/scene.xml", 300, 2, 0.03}));

/// To the bit, with neighbours that fall otherwise, or are not there, or have gone bad.
TEST(LaneSteps, AWorldsBitsDependOnItAlone) {
  const Model model = compile(read_mjcf(TARSUS_SOURCE_DIR "/models/humanoid.xml", {}));
  const Drives drives = limited(model, 300, 100);
  const BatchOptions options{.step = options_of(), .drives = drives};
  const int worlds = 19, steps = 40;
  const auto set = [&](Batch<double>& batch, int world, int seed) {
    std::mt19937 random(seed);
    random_state(model, random, 0.3, batch.qpos().subspan(world * model.nq, model.nq),
                 batch.qvel().subspan(world * model.nv, model.nv));
  };
  Batch<double> many(model, worlds, options), one(model, 1, options);
  for (int world = 0; world < worlds; ++world) set(many, world, world);
  many.qpos_target()[3 * model.nq + 9] = std::nan("");
  for (int k = 0; k < steps; ++k) many.step();
  EXPECT_EQ(many.bad_worlds(), 1);
  for (const int world : {0, 2, 7, 18}) {
    one.reset();
    set(one, 0, world);
    for (int k = 0; k < steps; ++k) one.step();
    EXPECT_EQ(one.state_hash(0), many.state_hash(world)) << world;
  }
}

/// What lanes cannot step is said, and stepped one world at a time.
TEST(LaneSteps, WhatTheyCannotStepIsNamed) {
  const auto model = [](const char* geom, const char* joint) {
    return compile(parse_mjcf(std::string("<mujoco><worldbody><geom type='plane' size='1 1 1'/><body pos='0 0 1'>") +
                                  joint + geom + "</body></worldbody></mujoco>",
                              "test", "."));
  };
  const char* ball = "<geom type='sphere' size='.1' mass='1'/>";
  const Model plain = model(ball, "<freejoint/>");
  const Model torsion = model("<geom type='sphere' size='.1' mass='1' condim='4'/>", "<freejoint/>");
  const Drives none = Drives::none(plain);
  EXPECT_EQ(lanes_refusal<double>(plain, options_of(), &none), "");
  EXPECT_NE(lanes_refusal<double>(torsion, options_of(), &none).find("condim"), std::string::npos);
  EXPECT_EQ(pack_width<double>(torsion, options_of(), &none), 1);
  Drives root = Drives::uniform(plain, 100, 10, 100, 10);
  root.force_limit.assign(plain.nv, 5.0);
  EXPECT_NE(lanes_refusal<double>(plain, options_of(), &root).find("free joint"), std::string::npos);
  Data lanes(torsion, 2);
  EXPECT_THROW(Stepper<double>(torsion, lanes, options_of()), ValueError);
}

}  // namespace
}  // namespace tarsus
