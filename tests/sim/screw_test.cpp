// A screw coupling (constraint/screw.cpp) against closed forms: a nut that falls down a screw, turns under a torque at
// its limit, and presses on the floor.
#include <gtest/gtest.h>

#include <cmath>

#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/urdf.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

constexpr double kMass = 0.4, kInertia = 0.002, kPitch = 0.02, kLead = kPitch / (2 * kPi);

Model nut(const std::string& world = "", const std::string& shape = "") {
  return compile(parse_mjcf(
      R"(<mujoco><option gravity="0 0 -9.81"/><worldbody>)" + world +
          R"(<body pos="0 0 1"><joint name="slide" type="slide" axis="0 0 1"/><joint name="turn" axis="0 0 1"/>
      <inertial pos="0 0 0" mass=".4" diaginertia=".001 .001 .002"/>)" +
          shape + R"(</body></worldbody></mujoco>)",
      "nut", "."));
}

/// m x'' = -m g + λ, I θ'' = -λ p/2π, x = θ p/2π: the coupling's mass is I (2π/p)².
double falling() { return -kMass * 9.81 / (kMass + kInertia / (kLead * kLead)); }

TEST(Screw, ANutFallsDownIt) {
  const Model model = nut();
  for (const LoopMode mode : {LoopMode::spook, LoopMode::shake}) {
    Data data(model);
    EqualitySet set(model);
    set.add_screw("thread", 0, 1, kPitch);
    EXPECT_EQ(set.row_name(0), "thread (screw)");
    StepOptions options;
    options.dt = 0.002, options.loops = mode, options.equalities = &set;
    Stepper<double> stepper(model, data, options);
    for (int i = 1; i <= 1000; ++i) {
      ASSERT_EQ(stepper.step(data), 0);
      ASSERT_NEAR(data.qvel[0], falling() * i * options.dt, 1e-9);
      ASSERT_NEAR(data.qvel[0], kLead * data.qvel[1], 1e-12);
      ASSERT_NEAR(data.qpos[0], kLead * data.qpos[1], 1e-12);
    }
    EXPECT_NEAR(-stepper.loops()->multiplier()[0], kMass * (9.81 + falling()), 1e-8);  // it holds most of the weight
  }
}

/// A drive with this force limit turns the screw towards a distant target.
Drives turning(const Model& model, double torque) {
  Drives drives = Drives::uniform(model, 0, 0, 0, 0);
  drives.kp[1] = 1e4, drives.kd[1] = 100;
  drives.force_limit = {kInfinity, torque};
  return drives;
}

TEST(Screw, ATorqueAtItsLimitLiftsTheNut) {
  const Model model = nut();
  Data data(model);
  EqualitySet set(model);
  set.add_screw("thread", 0, 1, kPitch);
  const Drives drives = turning(model, 0.05);
  StepOptions options;
  options.dt = 0.002, options.equalities = &set;
  Stepper<double> stepper(model, data, options);
  const AlignedVector<double> target{0, 1e4};
  const double expected = (0.05 / kLead - kMass * 9.81) / (kMass + kInertia / (kLead * kLead));
  for (int i = 1; i <= 500; ++i) {
    ASSERT_EQ(stepper.step(data, drives, target), 0);
    ASSERT_NEAR(stepper.drive_force()[1], 0.05, 1e-9 * 0.05);
    ASSERT_NEAR(data.qvel[0], expected * i * options.dt, 1e-9);
  }
}

/// At rest on the floor under a torque τ the thread pushes with 2πτ/p. The floor bears this force and the weight.
TEST(Screw, APressBearsTheTorqueTimesTheLead) {
  const Model model = nut(R"(<geom type="plane" size="1 1 .1"/>)", R"(<geom type="sphere" size=".1" mass="0"/>)");
  Data data(model);
  EqualitySet set(model);
  set.add_screw("thread", 0, 1, kPitch);
  const Drives drives = turning(model, 0.5);
  StepOptions options;
  options.dt = 0.002, options.equalities = &set, options.rows.contacts = true, options.rows.solve.tolerance = 1e-11;
  data.qpos[0] = -0.899, data.qpos[1] = data.qpos[0] / kLead;
  Stepper<double> stepper(model, data, options);
  const AlignedVector<double> target{0, -1e4};
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(stepper.step(data, drives, target), 0);
    ASSERT_NEAR(data.qvel[0], kLead * data.qvel[1], 1e-9) << i;  // the row at the end velocity, whatever else binds
    ASSERT_LE(stepper.rows()->report().residual, 1e-9) << i;
  }
  ASSERT_EQ(stepper.rows()->contacts().size(), 1u);
  const double expected = kMass * 9.81 + 0.5 / kLead;
  EXPECT_NEAR(stepper.rows()->terms().force(0).z, expected, 1e-6 * expected);
  EXPECT_NEAR(-stepper.loops()->multiplier()[0], -0.5 / kLead, 1e-6 * expected);
}

TEST(Screw, WhatItCannotBeIsSaidByName) {
  const Model model = nut();
  EqualitySet set(model);
  EXPECT_THROW(set.add_screw("thread", 1, 0, kPitch), ValueError);
  EXPECT_THROW(set.add_screw("thread", 0, 0, kPitch), ValueError);
  EXPECT_THROW(set.add_screw("thread", 0, 1, 0), ValueError);
  EXPECT_THROW(set.add_screw("thread", 0, 7, kPitch), ValueError);
  EXPECT_EQ(set.rows(), 0);
}

/// Drake's URDF has screw joints; they become a slide, a hinge and their coupling.
TEST(Screw, UrdfHasIt) {
  const std::string text = R"(<robot name="r"><link name="world"/><link name="nut"><inertial><mass value=".4"/>
    <inertia ixx=".001" iyy=".001" izz=".002"/></inertial></link>
    <drake:joint name="thread" type="screw"><parent link="world"/><child link="nut"/><axis xyz="0 0 1"/>
    <drake:screw_thread_pitch value=".02"/></drake:joint></robot>)";
  const Model model = compile(parse_urdf(text, "r", "."));
  ASSERT_EQ(model.nv, 2);
  EXPECT_EQ(model.joints[0].name, "thread_along");
  EXPECT_EQ(model.joints[1].name, "thread_about");
  Data data(model);
  StepOptions options;
  options.dt = 0.002;
  Stepper<double> stepper(model, data, options);
  for (int i = 1; i <= 200; ++i) {
    ASSERT_EQ(stepper.step(data), 0);
    ASSERT_NEAR(data.qvel[0], falling() * i * options.dt, 1e-9);
  }
  const auto says = [&](const std::string& from, const std::string& to, const std::string& word) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    try {
      parse_urdf(other, "r", ".");
      ADD_FAILURE() << "no error about " << word;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << e.what();
    }
  };
  says(R"(<drake:screw_thread_pitch value=".02"/>)", "", "drake:screw_thread_pitch");
  says(R"(value=".02")", R"(value="0")", "pitch");
  says("screw\"", "curvilinear\"", "curvilinear");
}

}  // namespace
}  // namespace tarsus
