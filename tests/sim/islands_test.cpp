// Islands of characters (constraint/tree_islands.hpp): each is solved as if the others were not there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus {
namespace {

/// A creature of a trunk and two legs of three hinges with ranges, which fall and bend to their ends. 12 DoFs.
/// @param friction of the hips [N m]
std::string creature(int index, double x, double height, double friction = 0) {
  const std::string number = std::to_string(index);
  std::string legs;
  for (const bool left : {false, true}) {
    legs += std::string("<body pos='0 ") + (left ? ".12" : "-.12") +
            " -.05'><joint axis='0 1 0' range='-.6 .6' frictionloss='" + std::to_string(friction) +
            "'/><geom type='capsule' size='.03' fromto='0 0 0 0 0 -.2'/><body pos='0 0 -.2'><joint name='" +
            (left ? "l" : "r") + number +
            "' axis='0 1 0' range='0 1'/><geom type='capsule' size='.03' fromto='0 0 0 0 0 -.2'/><body pos='0 0 -.2'>"
            "<joint axis='1 0 0' range='-.3 .3'/><geom type='box' pos='.03 0 -.02' size='.08 .04 .02'/>"
            "</body></body></body>";
  }
  return "<body name='c" + number + "' pos='" + std::to_string(x) + " 0 " + std::to_string(height) + "' euler='" +
         std::to_string(17 * index) + " " + std::to_string(11 * index) +
         " 0'><freejoint/><geom type='box' size='.06 .15 .08'/>" + legs + "</body>";
}

/// Couples a creature's knees: a spring, and a range of their difference.
std::string tendon(int index) {
  const std::string number = std::to_string(index);
  return "<fixed stiffness='5' damping='.1' range='-.2 .2'><joint joint='l" + number + "' coef='1'/><joint joint='r" +
         number + "' coef='-1'/></fixed>";
}

std::string box(double x) {
  return "<body pos='" + std::to_string(x) + " 0 .1'><freejoint/><geom type='box' size='.1 .1 .1'/></body>";
}

Model world(const std::string& bodies, const std::string& tendons = "") {
  return compile(
      parse_mjcf("<mujoco><compiler autolimits='true'/><option timestep='.01'/><worldbody>"
                 "<geom type='plane' size='9 9 1'/>" +
                     bodies + "</worldbody><tendon>" + tendons + "</tendon></mujoco>",
                 "islands.xml", "."));
}

StepOptions options(VelocityProductMode products) {
  StepOptions out;
  out.dt = 0.01, out.rows.contacts = out.rows.joints = true, out.velocity_products = products;
  return out;
}

template <class R>
struct Run {
  Model model;
  BasicData<R> data;
  Stepper<R> stepper;
  Run(Model from, VelocityProductMode products)
      : model(std::move(from)), data(model), stepper(model, data, options(products)) {}
  const RowsReport& rows() { return *stepper.rows_report(0); }
};

constexpr int kCreatures = 7, kBoxes = 3;  // 84 DoFs and 18: more than are solved as a whole

double place(int creature) { return 1.5 * creature; }
double height(int creature) { return 0.7 + 0.05 * creature; }

template <class R>
class Islands : public ::testing::Test {};
#ifdef TARSUS_DOUBLE_ONLY
using Numbers = ::testing::Types<double>;
#else
using Numbers = ::testing::Types<double, float>;
#endif
TYPED_TEST_SUITE(Islands, Numbers);

/// Compares creatures and boxes in one world with as many worlds, to the bit. Velocity products are explicit: implicit
/// ones are used in all trees as soon as one needs them.
/// @param equipped with dry friction, tendons and drives with force limits
template <class R>
void fall_alone_and_together(bool equipped) {
  constexpr VelocityProductMode kExplicit = VelocityProductMode::off;
  std::string bodies, tendons, boxes;
  std::vector<std::unique_ptr<Run<R>>> alone;
  for (int i = 0; i < kCreatures; ++i) {
    const std::string one = creature(i, place(i), height(i), equipped ? 0.2 : 0), own = equipped ? tendon(i) : "";
    bodies += one, tendons += own;
    alone.push_back(std::make_unique<Run<R>>(world(one, own), kExplicit));
  }
  for (int i = 0; i < kBoxes; ++i) boxes += box(-1 - i);
  Run<R> all(world(bodies + boxes, tendons), kExplicit), rest(world(boxes), kExplicit);
  const auto step = [&](Run<R>& run) {
    if (!equipped || &run == &rest) return run.stepper.step(run.data);
    Drives drives = Drives::uniform(run.model, 200, 5, 0, 0);
    drives.force_limit.assign(std::size_t(run.model.nv), 4);
    return run.stepper.step(run.data, drives, BasicData<R>(run.model).qpos);
  };
  int touched = 0, limits = 0, most = 0, saturated = 0;
  for (int k = 0; k < 150; ++k) {
    ASSERT_EQ(step(all), 0);
    ASSERT_EQ(step(rest), 0);
    int iterations = rest.rows().iterations, contacts = 0;
    for (int i = 0; i < kCreatures; ++i) {
      Run<R>& one = *alone[std::size_t(i)];
      ASSERT_EQ(step(one), 0);
      iterations = std::max(iterations, one.rows().iterations);
      contacts += one.rows().touching, limits += one.rows().limits, saturated += one.rows().saturated;
      for (int q = 0; q < one.model.nq; ++q)
        ASSERT_EQ(all.data.qpos[std::size_t(i * one.model.nq + q)], one.data.qpos[std::size_t(q)])
            << "creature " << i << ", qpos " << q << ", step " << k;
    }
    ASSERT_EQ(all.rows().iterations, iterations) << k;
    touched = std::max(touched, contacts), most = std::max(most, iterations);
    ASSERT_EQ(all.rows().touching, contacts + 4 * kBoxes) << k;
  }
  EXPECT_GT(touched, 4 * kCreatures);
  EXPECT_GT(limits, 0);
  EXPECT_GT(most, 2);
  EXPECT_EQ(saturated > 0, equipped);
}

TYPED_TEST(Islands, CreaturesFallAsIfTheyWereAlone) { fall_alone_and_together<TypeParam>(false); }
TYPED_TEST(Islands, SoDoThoseWithDrivesTendonsAndFriction) { fall_alone_and_together<TypeParam>(true); }

/// Creatures that fall on one another are one island until they part. What all roots feel is what the ground gives.
TYPED_TEST(Islands, ForcesBetweenCreaturesCancel) {
  using R = TypeParam;
  std::string bodies;
  for (int i = 0; i < kCreatures; ++i) bodies += creature(i, place(i / 2), height(i) + (i % 2) * 0.8);
  Run<R> all(world(bodies), VelocityProductMode::off);
  BasicData<R> before(all.model);
  std::vector<R> force(3 * std::size_t(all.model.njoint())), felt(std::size_t(all.model.nv));
  int between = 0;
  for (int step = 0; step < 100; ++step) {
    before.qpos = all.data.qpos, before.qvel = all.data.qvel;
    ASSERT_EQ(all.stepper.step(all.data), 0);
    between += all.rows().between > 0;
    ASSERT_EQ(all.rows().status, StepStatus::converged) << step;
    rnea<R>(all.model, before, before.qpos, before.qvel, all.data.qacc, felt);
    all.stepper.ground_force(0, force);
    for (int k = 0; k < 3; ++k) {
      double roots = 0, ground = 0, size = 1;
      for (const Joint& joint : all.model.joints) {
        if (joint.parent < 0) roots += double(felt[std::size_t(joint.qvel + k)]);
      }
      for (std::size_t i = std::size_t(k); i < force.size(); i += 3)
        ground += double(force[i]), size += std::abs(double(force[i]));
      EXPECT_NEAR(roots, ground, size * (sizeof(R) == 8 ? 1e-9 : 1e-3)) << step;
    }
  }
  EXPECT_GT(between, 20);
}

/// Which operators an earlier step has made does not matter.
TYPED_TEST(Islands, ARestoredRunIsTheFirstToTheBit) {
  using R = TypeParam;
  std::string bodies;
  for (int i = 0; i < kCreatures; ++i) bodies += creature(i, place(i / 2), height(i) + (i % 2) * 0.8);
  Run<R> first(world(bodies), VelocityProductMode::automatic), other(first.model, VelocityProductMode::automatic);
  for (int step = 0; step < 60; ++step) ASSERT_EQ(first.stepper.step(first.data), 0);
  ASSERT_GT(first.rows().between, 0);
  StepMemory<R> memory, taken;
  first.stepper.exchange(first.data, memory);
  taken = memory;
  first.stepper.exchange(first.data, memory);
  other.data.qpos = first.data.qpos, other.data.qvel = first.data.qvel;
  other.stepper.exchange(other.data, taken);
  for (int step = 0; step < 60; ++step) {
    ASSERT_EQ(first.stepper.step(first.data), 0);
    ASSERT_EQ(other.stepper.step(other.data), 0);
    ASSERT_EQ(first.data.qpos, other.data.qpos) << step;
  }
}

}  // namespace
}  // namespace tarsus
