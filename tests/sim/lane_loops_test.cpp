// Equality constraints and forces along tendons and other directions in SIMD lanes, together with contacts, ranges and
// drives with force limits.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "support/chain_model.hpp"
#include "support/random_model.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/sim/batch.hpp"

namespace tarsus::test {
namespace {

Model file(const std::string& name) {
  ReadOptions lenient;
  lenient.lenient = true;  // some robots' meshes are missing here; only pictures need them
  return compile(read_mjcf(std::string(TARSUS_SOURCE_DIR "/") + name, lenient));
}

/// A trunk on the floor whose two arms form a closed loop, beside a slide that a hinge drives and a ball on a rod.
Model arms() {
  return compile(parse_mjcf(R"(<mujoco><worldbody><geom type="plane" size="0 0 1"/>
    <body name="trunk" pos="0 0 .1"><freejoint/><geom type="box" size=".2 .1 .05" mass="3"/>
      <body pos=".2 0 .1"><joint name="a" axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 .2" size=".03" mass="1"/>
        <body name="a" pos=".2 0 .2"><joint axis="0 1 0" range="-80 80" limited="true"/>
          <geom type="capsule" fromto="0 0 0 -.3 0 .1" size=".03" mass="1"/></body></body>
      <body pos="-.2 0 .1"><joint name="b" type="ball"/><geom type="capsule" fromto="0 0 0 -.1 0 .3" size=".03" mass="1"/>
        <body name="b" pos="-.1 0 .3"><joint axis="0 1 0"/>
          <geom type="capsule" fromto="0 0 0 .2 0 0" size=".03" mass="1"/></body></body>
      <body pos="0 .2 0"><joint name="slide" type="slide" axis="0 1 0"/><geom size=".05" mass=".3"/></body></body>
    <body name="ball" pos="1 0 .3"><freejoint/><geom size=".05" mass="1"/></body></worldbody>
    <equality><connect body1="a" body2="b" anchor="-.3 0 .1"/><joint joint1="slide" joint2="a" polycoef="0 .2 0 0 0"/>
      <connect body1="ball" anchor="0 0 .6"/></equality></mujoco>)",
                            "arms", "."));
}

Drives limited(const Model& model, double kp, double limit) {
  Drives drives = Drives::uniform(model, kp, kp / 10, 0, 0);
  drives.force_limit.assign(model.nv, limit);
  for (const Joint& joint : model.joints) {
    if (moves_freely(joint.type)) std::fill_n(drives.force_limit.begin() + joint.qvel, 6, kInfinity);
  }
  return drives;
}

template <class R>
void start(Batch<R>& batch, int world, unsigned seed, double size) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const int n = batch.model().nv;
  for (int k = 0; k < n; ++k) batch.qvel()[world * n + k] = R(size * normal(random));
  for (int k = 0; k < batch.model().nu; ++k) batch.ctrl()[world * batch.model().nu + k] = R(0.3 * normal(random));
}

struct Case {
  const char* name;
  Model model;
  double dt, kp, limit, speed;  ///< kp 0: the model's own actuators
  LoopMode mode = LoopMode::spook;
};
StepOptions options_of(const Case& c) {
  StepOptions options;
  options.dt = c.dt, options.rows.contacts = options.rows.joints = true, options.loops = c.mode;
  return options;
}
BatchOptions batch_options(const Case& c) {
  BatchOptions options{.step = options_of(c)};
  if (c.kp > 0) options.drives = limited(c.model, c.kp, c.limit);
  return options;
}

/// Both solve the same problem to 1e-6 m/s, in different orders, from the same state in each step.
void expect_steps_alone(const Case& c) {
  SCOPED_TRACE(c.name);
  const Model& model = c.model;
  const int worlds = 11, steps = 60;
  Batch<double> batch(model, worlds, batch_options(c));
  ASSERT_GT(batch.pack_width(), 1);
  for (int world = 0; world < worlds; ++world) start(batch, world, unsigned(world), c.speed);
  std::vector<Data> data(worlds, Data(model));
  std::vector<std::unique_ptr<Stepper<double>>> alone;
  for (Data& d : data) alone.push_back(std::make_unique<Stepper<double>>(model, d, options_of(c)));
  const AlignedVector<double> target(model.qpos0.begin(), model.qpos0.end());
  const Drives drives = c.kp > 0 ? limited(model, c.kp, c.limit) : Drives::none(model);
  int compared = 0, touching = 0, saturated = 0, parted = 0;
  double worst = 0, open = 0;
  for (int k = 0; k < steps; ++k) {
    for (int world = 0; world < worlds; ++world) {
      std::copy_n(&batch.qpos()[world * model.nq], model.nq, data[world].qpos.begin());
      std::copy_n(&batch.qvel()[world * model.nv], model.nv, data[world].qvel.begin());
      std::copy_n(batch.ctrl().begin() + world * model.nu, model.nu, data[world].ctrl.begin());
      std::copy_n(batch.act().begin() + world * model.na, model.na, data[world].act.begin());
      Stepper<double>& one = *alone[world];
      ASSERT_EQ(c.kp > 0 ? one.step(data[world], drives, target) : one.step(data[world]), 0);
      if (one.loops()) open = std::max(open, one.loops()->error(0).position);
    }
    ASSERT_EQ(batch.step(), 0);
    for (int world = 0; world < worlds; ++world) {
      const WorldReport& lane = batch.reports()[world];
      ASSERT_FALSE(lane.unsolved);
      EXPECT_LE(lane.residual, 1e-6);
      touching += lane.touching > 0, saturated += lane.saturated > 0;
      if (alone[world]->rows_report(0)->status != StepStatus::converged) continue;
      ++compared;
      double miss = 0;
      for (int v = 0; v < model.nv; ++v)
        miss = std::max(miss, std::abs(batch.qvel()[world * model.nv + v] - data[world].qvel[v]));
      worst = std::max(worst, miss), parted += miss > 2e-4;
    }
  }
  std::printf(
      "%s: off by %.2g in %d steps, %d by more than 2e-4, %d with contacts, %d at their limits, loops open by %.2g\n",
      c.name, worst, compared, parted, touching, saturated, open);
  // For speeds of metres and tens of radians a second. Where a body is wedged friction has more than one solution.
  EXPECT_LE(parted, compared / 50);
  EXPECT_GE(compared, steps * worlds * 98 / 100);
  EXPECT_LT(open, c.mode == LoopMode::shake ? 1e-10 : 1);
}

TEST(LaneLoops, AStepIsThatOfAWorldAlone) {
  const Case cases[] = {
      {"arms", arms(), 1.0 / 60, 40, 3, 1},
      {"arms, short steps", arms(), 0.002, 40, 3, 1},
      {"arms, closed", arms(), 1.0 / 60, 40, 3, 0.2, LoopMode::shake},
      {"arms, limp", arms(), 1.0 / 60, 0, 0, 1},
      {"pair", file("models/loops/holding_hands.xml"), 1.0 / 60, 300, 60, 0.5},
      {"gripper", file("../shared/data/menagerie/franka_emika_panda/mjx_single_cube.xml"), 0.005, 0, 0, 0.3},
  };
  for (const Case& c : cases) expect_steps_alone(c);
}

/// The bits of a world with loops beside other worlds, in groups whose last unfinished lanes are solved together, and
/// individually.
template <class R>
void expect_bits(const Case& c, int worlds, int steps) {
  Batch<R> many(c.model, worlds, batch_options(c)), one(c.model, 1, batch_options(c));
  ASSERT_GT(many.pack_width(), 1);
  for (int world = 0; world < worlds; ++world) start(many, world, unsigned(world), c.speed);
  many.tau()[3 * c.model.nv] = R(NAN);
  int longest = 0;
  for (int k = 0; k < steps; ++k) {
    ASSERT_LE(many.step(), 1);
    for (const WorldReport& report : many.reports()) longest = std::max(longest, report.iterations);
  }
  EXPECT_GE(longest, 5) << "no lane was left behind";
  for (int world = 0; world < worlds; world += 3) {
    if (world == 3) continue;
    one.reset();
    start(one, 0, unsigned(world), c.speed);
    for (int k = 0; k < steps; ++k) ASSERT_EQ(one.step(), 0);
    EXPECT_EQ(one.state_hash(0), many.state_hash(world)) << c.name << " " << world;
  }
}
TEST(LaneLoops, AWorldsBitsDependOnItAlone) {
  for (const LoopMode mode : {LoopMode::spook, LoopMode::shake}) {
    const Case some[] = {{"arms", arms(), 1.0 / 60, 40, 3, 2, mode},
                         {"pair", file("models/loops/holding_hands.xml"), 1.0 / 60, 300, 60, 1, mode}};
    for (const Case& c : some) {
      expect_bits<double>(c, 70, 30);
#ifndef TARSUS_DOUBLE_ONLY
      if (mode == LoopMode::spook) expect_bits<float>(c, 70, 30);
#endif
    }
  }
}

/// The built-in limp humanoid hangs by a hand at 30 Hz. Where its links turn far, the loop's force gets a geometric
/// stiffness and the step is solved again from its start (decision 412). Neighbours that do not need this keep their
/// first solution.
TEST(LaneLoops, AStepThatIsSolvedAnewIsSoForItsOwnWorld) {
  ModelSpec spec = read_model(std::string(TARSUS_SOURCE_DIR) + "/models/humanoid.xml");
  EqualitySpec connect;
  connect.first = "right_forearm", connect.anchor = {0, 0, -0.26};
  spec.equalities.push_back(connect);
  Case c{"hand", compile(std::move(spec)), 1.0 / 30, 0, 0, 3};
  const Model& model = c.model;
  const int worlds = 24, steps = 60;
  Batch<double> many(model, worlds, batch_options(c)), one(model, 1, batch_options(c));
  for (int world = 0; world < worlds; ++world) start(many, world, unsigned(world), world % 2 ? c.speed : 0.01);
  for (int k = 0; k < steps; ++k) ASSERT_EQ(many.step(), 0);
  for (int world = 0; world < worlds; ++world) {
    one.reset();
    start(one, 0, unsigned(world), world % 2 ? c.speed : 0.01);
    for (int k = 0; k < steps; ++k) ASSERT_EQ(one.step(), 0);
    EXPECT_EQ(one.state_hash(0), many.state_hash(world)) << world;
    for (int v = 0; v < model.nv; ++v) EXPECT_LT(std::abs(many.qvel()[world * model.nv + v]), 200) << world;
  }
}

Model chain(const std::string& joint, const std::string& more, const std::string& option = "") {
  return based_chain(joint, more, ".12", option);
}
std::vector<Case> paths() {
  const std::string tendon = R"(<tendon><spatial name="t" stiffness="60" damping="2" range=".1 .35" limited="true"
    frictionloss=".5" armature=".05"><site site="s"/><site site="e"/></spatial>
    <fixed name="f" stiffness="8" damping=".2"><joint joint="a" coef="1"/><joint joint="b" coef="-.7"/></fixed></tendon>)";
  const auto actuator = [&](const char* text) { return tendon + "<actuator>" + text + "</actuator>"; };
  std::vector<Case> out;
  const auto add = [&](const char* name, Model model, double dt = 1.0 / 60) {
    out.push_back({name, std::move(model), dt, 0, 0, 1});
  };
  add("tendons", chain("", tendon));
  add("tendons, short steps", chain("", tendon), 0.002);
  add("servo on a tendon", chain("", actuator("<position tendon='t' kp='80' kv='2' forcerange='-3 5'/>")));
  add("two on one tendon", chain("", actuator("<position tendon='f' kp='9'/><motor tendon='f' ctrlrange='-1 1'/>")));
  add("muscle", chain("range='-60 60' limited='true'", "<actuator><muscle joint='a' lengthrange='-1 1'/></actuator>"));
  add("servos within ranges", chain("",
                                    "<actuator><position joint='a' kp='30' kv='1' forcerange='-2 2'/>"
                                    "<velocity joint='a' kv='1' forcerange='-1 1'/></actuator>"));
  add("thrust", chain("", "<actuator><motor site='e' gear='0 0 3 0 .1 0'/></actuator>"));
  add("springs of third order", chain("stiffness='1 .5 .2' damping='.1 .05 0'", ""));
  add("drag", chain("", "", "<option density='900' viscosity='.5'/>"));
  add("tendons and a loop",
      chain("", tendon + "<equality><joint joint1='a' joint2='b' polycoef='0 .5 0 0 0'/></equality>"));
  return out;
}
TEST(LanePaths, AStepIsThatOfAWorldAlone) {
  for (const Case& c : paths()) expect_steps_alone(c);
  for (const char* robot : {"franka_emika_panda/hand.xml", "robotiq_2f85/scene.xml", "shadow_hand/scene_right.xml"})
    expect_steps_alone({robot, file(std::string("../shared/data/menagerie/") + robot), 0.005, 0, 0, 0.3});
}
TEST(LanePaths, AWorldsBitsDependOnItAlone) {
  for (Case& c : paths()) {
    c.speed = 3;
    expect_bits<double>(c, 70, 20);
#ifndef TARSUS_DOUBLE_ONLY
    expect_bits<float>(c, 70, 20);
#endif
  }
}

}  // namespace
}  // namespace tarsus::test
