// Models of free bodies as scenes: conversion of states in both directions, every built-in scene, refused input.
#include "tarsus/sim/rigid_model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numbers>
#include <random>
#include <sstream>

#include "support/numbers.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus {
namespace {

namespace fs = std::filesystem;

RigidModel parse(const std::string& inside, const std::string& more = "") {
  return rigid_model(
      compile(parse_mjcf("<mujoco><worldbody>" + inside + "</worldbody>" + more + "</mujoco>", "test.xml", ".")));
}

std::vector<fs::path> scene_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(TARSUS_SOURCE_DIR "/models/scenes")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// With 100 m/s SPOOK would leave 6 m/s, a decimetre in a step.
TEST(RigidModel, WhatIsFastStopsWhereItTouches) {
  RigidModel model = parse(
      R"(<geom type="box" size="0.01 1 1" pos="0.01 0 0"/><body><freejoint/><geom type="box" size="0.05 0.05 0.05"/></body>)");
  model.scene.options.gravity = {0, 0, 0};
  const std::vector<double> q{-0.05, 0.1, 0.07, 1, 0, 0, 0}, v{100, 0, 0, 0, 0, 0};
  model.set_state(q, v);
  RigidWorld<double> world = make_world<double>(model.scene);
  std::vector<double> q2(7), v2(6);
  world.step();
  model.state(world, q2, v2);
  EXPECT_NEAR(q2[0], q[0] + kDeepestStep, 0.006);
}

/// Over seams, and past an edge that it does not touch.
TEST(RigidModel, WhatSlidesOverSeamsKeepsItsSpeed) {
  std::string floor;
  for (int i = -1; i < 5; ++i)
    floor += "<geom type='box' size='.25 1 .1' pos='" + std::to_string(0.5 * i) + " 0 -.1' friction='0'/>";
  for (const std::string shape : {"sphere' size='.1", "box' size='.1 .1 .1", "cylinder' size='.1 .1"}) {
    RigidModel model =
        parse(floor + "<body pos='0 .03 .1'><freejoint/><geom type='" + shape + "' friction='0' mass='1'/></body>");
    for (const double rate : {60.0, 500.0}) {
      model.scene.options.dt = 1 / rate;
      const std::vector<double> q{0, 0.03, 0.1, 1, 0, 0, 0}, v{2, 0, 0, 0, 0, 0};
      model.set_state(q, v);
      RigidWorld<double> world = make_world<double>(model.scene);
      std::vector<double> q2(7), v2(6);
      for (int i = 0; i < rate; ++i) ASSERT_EQ(world.step().status, WorldStatus::ok);
      model.state(world, q2, v2);
      EXPECT_NEAR(v2[0], 2, 0.005) << shape << ", " << rate << " Hz";
      EXPECT_LT(q2[2], 0.1001) << shape << ", " << rate << " Hz";
    }
  }
}

TEST(RigidModel, WhatIsFlatToAFewDigitsComesToRest) {
  for (const double bump : {0.0, 1e-7, 1e-6, 1e-5}) {
    std::mt19937_64 random(5);
    std::ostringstream points;
    points.precision(12);
    for (int k = 0; k < 24; ++k) {
      points << 0.1 * std::cos(k * std::numbers::pi / 6) << ' ' << 0.05 * std::sin(k * std::numbers::pi / 6) << ' '
             << (k < 12 ? -0.02 : 0.02) + bump * test::uniform(random, -1, 1) << ' ';
    }
    for (const std::string floor : {"plane' size='1 1 1'/>", "box' size='1 1 .5' pos='0 0 -.5'/>"}) {
      RigidModel model = rigid_model(compile(parse_mjcf(
          "<mujoco><asset><mesh name='m' vertex='" + points.str() + "'/></asset><worldbody><geom type='" + floor +
              "<body pos='0 0 .0201'><freejoint/><geom type='mesh' mesh='m'/></body></worldbody></mujoco>",
          "test.xml", ".")));
      model.scene.options.dt = 1 / 60.0;
      RigidWorld<double> world = make_world<double>(model.scene);
      std::vector<double> q(7), v(6);
      double fastest = 0;
      for (int i = 0; i < 300; ++i) {
        ASSERT_EQ(world.step().status, WorldStatus::ok);
        model.state(world, q, v);
        for (const double w : v) fastest = i < 270 ? 0 : std::max(fastest, std::abs(w));
      }
      EXPECT_LT(fastest, 1e-3) << floor << ", corners off by " << bump;
      EXPECT_GT(q[2], 0.019) << floor << ", corners off by " << bump;
    }
  }
}

TEST(RigidModel, StateGoesThereAndBack) {
  // A body whose centre of mass and principal axes differ from its frame, with another body welded to it.
  RigidModel model = parse(
      R"(<body pos="1 2 3" euler="10 20 30"><freejoint/><geom type="box" size="0.1 0.2 0.3" pos="0.2 0.1 0" mass="1"/>
    <body pos="0 0.5 0" euler="40 0 0"><geom type="capsule" size="0.1 0.4" mass="2"/></body></body>)");
  std::vector<double> q = {0.3, -1, 2, 0.5, 0.5, -0.5, 0.5}, v = {1, 2, 3, -0.4, 0.5, 0.6}, q2(7), v2(6);
  model.set_state(q, v);
  const RigidWorld<double> world = make_world<double>(model.scene);
  model.state(world, q2, v2);
  const double sign = q[3] * q2[3] + q[4] * q2[4] + q[5] * q2[5] + q[6] * q2[6] < 0 ? -1 : 1;
  for (std::size_t k = 0; k < 7; ++k) EXPECT_NEAR(q[k], (k < 3 ? 1 : sign) * q2[k], 1e-12);
  for (std::size_t k = 0; k < 6; ++k) EXPECT_NEAR(v[k], v2[k], 1e-12);
  EXPECT_THROW(model.set_state(std::vector<double>(6), v), ShapeError);
  q[1] = std::nan("");
  EXPECT_THROW(model.set_state(q, v), ValueError);
}

TEST(RigidModel, MassAndEnergyAreThoseOfTheTree) {
  const Model tree = compile(parse_mjcf(R"(<mujoco><worldbody><body pos="1 2 3" euler="10 20 30"><freejoint/>
    <geom type="box" size="0.1 0.2 0.3" pos="0.2 0.1 0" mass="1"/><body pos="0 0.5 0" euler="40 0 0"><geom type="capsule" size="0.1 0.4" mass="2"/>
    </body></body></worldbody></mujoco>)",
                                        "test.xml", "."));
  RigidModel model = rigid_model(tree);
  const std::vector<double> q = {0.3, -1, 2, 0.5, 0.5, -0.5, 0.5}, v = {1, 2, 3, -0.4, 0.5, 0.6};
  model.set_state(q, v);
  const RigidWorld<double> world = make_world<double>(model.scene);
  Data data(tree);
  std::copy(q.begin(), q.end(), data.qpos.begin());
  std::copy(v.begin(), v.end(), data.qvel.begin());
  kinematics<double>(tree, data, data.qpos, data.qvel);
  const Energy e = energy(tree, data, data.qpos, data.qvel);
  EXPECT_NEAR(world.kinetic_energy(), e.kinetic, 1e-12);
  EXPECT_NEAR(world.potential_energy(), e.potential, 1e-12);
}

TEST(RigidModel, EveryBuiltInSceneRunsOrIsAMatterOfTheStepper) {
  const auto files = scene_files();
  ASSERT_GE(files.size(), 9u);
  int joined = 0;
  for (const fs::path& file : files) {
    SCOPED_TRACE(file.filename().string());
    const Model read = compile(read_mjcf(file));
    if (!read.spec.equalities.empty()) {
      EXPECT_THROW(rigid_model(read), InputError);
      ++joined;
      continue;
    }
    const RigidModel model = rigid_model(read);
    RigidWorld<double> world = make_world<double>(model.scene);
    for (double t = 0; t < 1; t += world.options().dt) {
      const RigidStepReport r = world.step();
      ASSERT_EQ(r.status, WorldStatus::ok);
      EXPECT_LT(r.penetration_max, 0.06);
    }
  }
  EXPECT_EQ(joined, 2);  // tests/sim/ground_loops_test.cpp runs them
}

TEST(RigidModel, ExcludeLetsThrough) {
  const std::string floor = R"(<geom type="plane" size="5 5 1"/>)";
  const std::string ball = R"(<body name="ball" pos="0 0 0.5"><freejoint/><geom type="sphere" size="0.1"/></body>)";
  RigidModel stands = parse(floor + ball),
             falls = parse(floor + ball, R"(<contact><exclude body1="world" body2="ball"/></contact>)");
  for (RigidModel* model : {&stands, &falls}) {
    RigidWorld<double> w = make_world<double>(model->scene);
    for (int i = 0; i < 1000; ++i) w.step();
    EXPECT_EQ(w.bodies()[0].position.z > 0, model == &stands);
  }
}

TEST(RigidModel, EqualitiesThatAreDisabledDoNotHold) {
  const char* model = R"(<mujoco><option><flag equality="disable"/></option><worldbody>
    <body name="a" pos="0 0 1"><freejoint/><geom type="sphere" size="0.1"/></body></worldbody><equality>
    <connect body1="a" anchor="0 0 0.5"/><weld body1="a"/></equality></mujoco>)";
  const RigidModel falls = rigid_model(compile(parse_mjcf(model, "test.xml", ".")));
  RigidWorld<double> world = make_world<double>(falls.scene);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(world.step().status, WorldStatus::ok);
  EXPECT_NEAR(world.bodies()[0].velocity.z, -9.81 * 0.2, 1e-12);
}

/// A built-in scene as a model, and that model as a scene again.
TEST(RigidModel, BuiltInScenesAreModels) {
  for (const char* name :
       {"balls:3:2", "ball_pyramid:3", "box_pyramid:3", "box_stack:3", "dominoes:4", "slope:20", "cards:2"}) {
    SCOPED_TRACE(name);
    const RigidScene scene = *named_scene(name);
    const RigidModel made = rigid_model(compile(scene_spec(scene)));
    const RigidScene& again = made.scene;
    EXPECT_EQ(again.options.dt, scene.options.dt);
    EXPECT_EQ(again.options.iterations, scene.options.iterations);
    ASSERT_EQ(again.bodies.size(), scene.bodies.size());
    for (std::size_t i = 0; i < scene.bodies.size(); ++i) {
      const RigidBody &a = scene.bodies[i], &b = again.bodies[i];
      EXPECT_EQ(a.mass, b.mass);
      EXPECT_LT(norm(a.inertia - b.inertia), 1e-12);
      EXPECT_LT(norm(a.position - b.position), 1e-12);
      const Mat3d turn = transpose(rotation(a.orientation)) * rotation(b.orientation);
      EXPECT_NEAR(turn.xx + turn.yy + turn.zz, 3, 1e-12);
    }
    ASSERT_EQ(again.shapes.size(), scene.shapes.size());
    std::vector<bool> known(scene.shapes.size());
    for (const BodyShape& b : again.shapes) {  // the world's come first
      const auto same = [&](const BodyShape& a) {
        const Surface &s = scene.surfaces[std::size_t(a.surface)], &t = again.surfaces[std::size_t(b.surface)];
        const Mat3d turn = transpose(a.local.rotation) * b.local.rotation;
        return !known[std::size_t(&a - scene.shapes.data())] && a.body == b.body && a.shape.type == b.shape.type &&
               norm(a.shape.size - b.shape.size) < 1e-12 && norm(a.local.position - b.local.position) < 1e-12 &&
               std::abs(turn.xx + turn.yy + turn.zz - 3) < 1e-12 && s.friction == t.friction && s.rolling == t.rolling;
      };
      const auto found = std::find_if(scene.shapes.begin(), scene.shapes.end(), same);
      ASSERT_NE(found, scene.shapes.end());
      known[std::size_t(found - scene.shapes.begin())] = true;
    }
  }
  RigidScene bouncing = *named_scene("box_stack:2");
  bouncing.set_surfaces({}, 0.5, {});
  EXPECT_THROW(scene_spec(bouncing), ValueError);
}

TEST(RigidModel, AFluidIsRefused) {
  for (const char* fluid : {R"(density="1.2")", R"(viscosity="0.1")"}) {
    const std::string model = std::string("<mujoco><option ") + fluid + R"(/><worldbody><body><freejoint/>
      <geom size="0.1"/></body></worldbody></mujoco>)";
    try {
      rigid_model(compile(parse_mjcf(model, "test.xml", ".")));
      ADD_FAILURE() << fluid;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find("test.xml: error: a fluid (density, viscosity) is not simulated"),
                std::string::npos)
          << e.what();
    }
  }
}

TEST(RigidModel, CondimAndPriorityDecideFriction) {
  const auto speed_after = [](const std::string& ball) {
    RigidModel model =
        parse(R"(<geom type="plane" size="5 5 1" condim="1" friction="1 0 0"/><body pos="0 0 0.2"><freejoint/>)" +
              ball + "</body>");
    model.set_state(std::vector<double>{0, 0, 0.2, 1, 0, 0, 0}, std::vector<double>{1, 0, 0, 0, 0, 0});
    RigidWorld<double> world = make_world<double>(model.scene);
    for (int i = 0; i < 500; ++i) world.step();
    return world.bodies()[0].velocity.x;
  };
  EXPECT_NEAR(speed_after(R"(<geom type="sphere" size="0.2" condim="1"/>)"), 1, 1e-9);
  EXPECT_NEAR(speed_after(R"(<geom type="sphere" size="0.2" condim="3"/>)"), 5. / 7, 1e-2);
  EXPECT_NEAR(speed_after(R"(<geom type="sphere" size="0.2" condim="3" friction="0 0 0" priority="1"/>)"), 1, 1e-9);
}

TEST(RigidModel, WhatItCannotSimulateIsNamedWithItsPlace) {
  const std::string ball = R"(<body name="a"><freejoint/><geom type="sphere" size="0.1"/></body>)";
  const auto message = [&](const std::string& inside, const std::string& more = "") -> std::string {
    try {
      parse(inside, more);
    } catch (const InputError& e) {
      return e.what();
    }
    return "nothing was refused";
  };
  for (
      const auto& [text, word] : std::vector<std::pair<std::string, std::string>>{
          {message(R"(<body><joint type="hinge" axis="0 0 1"/><geom type="sphere" size="0.1"/></body>)"),
           "a joint other than free"},
          {message(ball + R"(<body name="b"><freejoint/><geom type="sphere" size="0.1"/></body>)",
                   R"(<equality><weld body1="a" body2="b"/></equality>)"),
           "an equality constraint"},
          {message(ball, R"(<equality><connect name="nail" body1="a" anchor="0 0 0.5"/></equality>)"),
           "error: an equality constraint is not simulated in scenes of free bodies; tarsus run (Stepper) simulates "
           "such "
           "models (mujoco/equality/connect"},
          {message(
               R"(<body><freejoint/><geom name="g" type="sphere" size="0.1"/></body><geom name="f" type="plane" size="1 1 1"/>)",
               R"(<contact><pair geom1="g" geom2="f" friction="1 0.5"/></contact>)"),
           "friction that depends on the direction"},
          {message(R"(<body><freejoint/><geom type="plane" size="1 1 1"/><geom size="0.1"/></body>)"),
           "a plane or height field on a moving body"},
          {message(R"(<body><freejoint/><geom type="sphere" size="0.1" margin="-0.1"/></body>)"), "margin"}}) {
    EXPECT_NE(text.find(word), std::string::npos) << text;
    EXPECT_NE(text.find("test.xml:1:"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tarsus
