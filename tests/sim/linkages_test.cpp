// Linkages keep their energy: mechanisms that turn freely, that springs drive and dampers brake, that hang as chains by
// both ends; one world and lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "support/random_model.hpp"
#include "tarsus/constraint/linkages.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/batch.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

Model model_of(const std::string& text) { return compile(parse_mjcf(text, "linkage.xml", ".")); }

/// A four-bar in the x-z plane: crank 0.1 m, coupler 0.3 m, rocker 0.25 m. @param joint attributes of every joint
std::string four_bar_text(const std::string& gravity, const std::string& joint = "") {
  return R"(<mujoco><compiler angle="radian"/><option gravity=")" + gravity +
         R"("/><default><geom contype="0" conaffinity="0"/><joint axis="0 -1 0" )" + joint +
         R"(/></default><worldbody><body name="crank"><joint/><geom type="capsule" fromto="0 0 0 0 0 0.1" size="0.01"
         mass="0.1"/><body name="coupler" pos="0 0 0.1"><joint/><geom type="capsule" size="0.01" mass="0.3"
         fromto="0 0 0 0.26150622748198193 0 0.14701868244594593"/></body></body><body name="rocker" pos="0.3 0 0">
         <joint/><geom type="capsule" fromto="0 0 0 -0.038493772518018055 0 0.24701868244594594" size="0.01"
         mass="0.25"/></body></worldbody><equality><connect body1="coupler" body2="rocker"
         anchor="0.26150622748198193 0 0.14701868244594593"/></equality></mujoco>)";
}

/// An engine: crank 0.05 m with a flywheel, rod 0.2 m, piston.
const char* const kEngine = R"(<mujoco><option gravity="0 0 0"/><default><geom contype="0" conaffinity="0"/></default>
  <worldbody><body name="crank"><joint axis="0 1 0"/><geom type="cylinder" fromto="0 -.02 0 0 .02 0" size=".08"
  mass="3"/><geom type="capsule" fromto="0 0 0 .05 0 0" size=".01" mass=".3"/><body name="rod" pos=".05 0 0"><joint
  axis="0 1 0"/><geom type="capsule" fromto="0 0 0 .2 0 0" size=".01" mass=".5"/></body></body><body name="piston"
  pos=".25 0 0"><joint type="slide" axis="1 0 0"/><geom type="cylinder" fromto="-.02 0 0 .02 0 0" size=".03"
  mass=".4"/></body></worldbody><equality><connect body1="rod" body2="piston" anchor=".2 0 0"/></equality></mujoco>)";

/// Velocities of the first joint at `rate` that the loops admit.
void turn_first(const Model& model, Data& data, double rate) {
  const EqualitySet set = EqualitySet::of(model);
  ConstrainedDynamics<double> loops(model, set, data);
  data.qvel[0] = rate;
  std::copy(model.armature.begin(), model.armature.end(), data.joint_inertia.begin());
  loops.settle(data, data.qpos, data.joint_inertia, data.qvel);
}

/// T(q, v⁺) and the potential of half way: v⁺ leads from q to the next q.
double energy_of_step(const Model& model, Data& work, const AlignedVector<double>& before, const Data& after) {
  const auto at = [&](const AlignedVector<double>& q) {
    kinematics<double>(model, work, q, after.qvel);
    return energy<double>(model, work, q, after.qvel);
  };
  const auto first = at(before);
  return first.kinetic + 0.5 * (first.potential + at(after.qpos).potential);
}

struct Range {
  double least = 1e300, most = -1e300, kinetic = 0;
  double spread() const { return (most - least) / kinetic; }
};
Range energies(const Model& model, double rate, double dt, int steps) {
  Data data(model), work(model);
  turn_first(model, data, rate);
  Stepper<double> stepper(model, data, {.dt = dt});
  Range range;
  for (int i = 0; i < steps; ++i) {
    const AlignedVector<double> before(data.qpos);
    if (stepper.step(data) > 0) return {};
    const double now = energy_of_step(model, work, before, data);
    range.least = std::min(range.least, now), range.most = std::max(range.most, now);
    kinematics<double>(model, work, before, data.qvel);
    range.kinetic = std::max(range.kinetic, energy<double>(model, work, before, data.qvel).kinetic);
  }
  return range;
}

/// With damped joints and rates of the step's start, the engine lost 53 % of its energy in 2 s at 30 rad/s and 1 ms.
TEST(Linkages, MechanismsThatTurnFreelyKeepTheirEnergy) {
  const Model bar = model_of(four_bar_text("0 0 0")), engine = model_of(kEngine),
              falls = model_of(four_bar_text("0 0 -9.81"));
  EXPECT_LT(energies(bar, 10, 1e-3, 5000).spread(), 0.01);
  EXPECT_LT(energies(bar, 30, 1e-3, 2000).spread(), 0.03);
  EXPECT_LT(energies(falls, 15, 1e-3, 2000).spread(), 0.01);
  EXPECT_LT(energies(engine, 30, 1e-3, 5000).spread(), 1e-3);
  EXPECT_LT(energies(engine, 10, 1.0 / 240, 2000).spread(), 1e-3);
  EXPECT_LT(energies(engine, 100, 1e-3, 2000).spread(), 1e-3);
}

/// The crank's angle against that of steps sixty-four times as short, which SHAKE projects.
TEST(Linkages, AMechanismIsWhereShortStepsTakeIt) {
  for (const char* joint : {R"(damping="0")", R"(damping="0.0002")", R"(stiffness="0.3")"}) {
    const Model model = model_of(four_bar_text("0 0 -9.81", joint));
    const auto crank = [&](double dt, LoopMode loops, Integrator integrator) {
      Data data(model);
      turn_first(model, data, 12);
      Stepper<double> stepper(model, data, {.dt = dt, .integrator = integrator, .loops = loops});
      for (int i = 0; i < std::lround(1 / dt); ++i) EXPECT_EQ(stepper.step(data), 0);
      return data.qpos[0];
    };
    const double right = crank(1e-3 / 64, LoopMode::shake, Integrator::rk4);
    EXPECT_NEAR(crank(1e-3, LoopMode::spook, Integrator::semi_implicit_euler), right, 0.1) << joint;
    EXPECT_NEAR(crank(1e-3 / 4, LoopMode::spook, Integrator::semi_implicit_euler), right, 0.025) << joint;
  }
}

/// A chain of 3 to 7 hinges and balls with links of 30 g to 3 kg, both ends on the world.
Model chain(Random& random, int n) {
  const auto number = [](double x) { return std::to_string(x); };
  double x = 0, z = 0;
  std::string bodies, ends;
  for (int i = 0; i < n; ++i) {
    const double angle = n > 1 ? 1 - 2.0 * i / (n - 1) : 0, length = random.uniform(0.1, 0.3);
    const double dx = length * std::cos(angle), dz = length * std::sin(angle);
    bodies += "<body name=\"b" + std::to_string(i) + "\" pos=\"" + number(x) + " 0 " + number(z) + "\">";
    const Vec3d axis = random.direction();
    bodies += i % 2 == 0 ? std::string("<joint type=\"ball\"/>")
                         : "<joint axis=\"" + number(axis.x) + " " + number(axis.y + 2) + " " + number(axis.z) + "\"/>";
    bodies += "<geom type=\"capsule\" fromto=\"0 0 0 " + number(dx) + " 0 " + number(dz) + "\" size=\"" +
              number(random.uniform(0.005, 0.03)) + "\" mass=\"" + number(std::pow(10, random.uniform(-1.5, 0.5))) +
              "\"/>";
    ends += "</body>";
    x = dx, z = dz;
  }
  return model_of("<mujoco><default><geom contype=\"0\" conaffinity=\"0\"/></default><worldbody>" + bodies + ends +
                  "</worldbody><equality><connect body1=\"b" + std::to_string(n - 1) + "\" anchor=\"" + number(x) +
                  " 0 " + number(z) + "\"/></equality></mujoco>");
}

/// Light links between heavy ones whip. With the bound before the loops are solved alone, 5 of these 120 runs gained
/// more than 5 % of their largest kinetic energy, by up to 0.99 of it.
TEST(Linkages, ChainsThatHangByBothEndsGainNoEnergy) {
  int gained = 0;
  double largest = 0;
  for (const double rate : {3.0, 20.0}) {
    for (const int hz : {60, 240, 500}) {
      for (int seed = 0; seed < 20; ++seed) {
        Random random(seed);
        const Model model = chain(random, 3 + seed % 5);
        Data data(model), work(model);
        for (double& v : data.qvel) v = random.uniform(-rate, rate);
        Stepper<double> stepper(model, data, {.dt = 1.0 / hz});
        double start = 0, most = 0, kinetic = 0.05;
        for (int i = 0; i < hz; ++i) {
          const AlignedVector<double> before(data.qpos);
          ASSERT_EQ(stepper.step(data), 0) << rate << " rad/s, " << hz << " Hz, seed " << seed;
          const double now = energy_of_step(model, work, before, data);
          if (i == 0) start = now;
          most = std::max(most, now - start);
          kinematics<double>(model, work, before, data.qvel);
          kinetic = std::max(kinetic, energy<double>(model, work, before, data.qvel).kinetic);
        }
        gained += most > 0.05 * kinetic, largest = std::max(largest, most / kinetic);
      }
    }
  }
  std::printf("%d of 120 chains gain more than 5 %%, by %.2f at most\n", gained, largest);
  EXPECT_LE(gained, 2);
}

/// Where a linkage is braked, its force is in the balance: a stop, dry friction and a drive with a force limit.
TEST(Linkages, WhatBrakesALinkageIsNotGivenBack) {
  for (const char* joint : {R"(frictionloss="0.002")", R"(range="-0.7 0.7" limited="true")", R"(damping="0.001")"}) {
    const Model model = model_of(four_bar_text("0 0 0", joint));
    Data data(model), work(model);
    turn_first(model, data, 5);
    StepOptions options{.dt = 1e-3};
    options.rows.joints = true;
    Stepper<double> stepper(model, data, options);
    double last = 1e300, first = 0;
    for (int i = 0; i < 2000; ++i) {
      const AlignedVector<double> before(data.qpos);
      ASSERT_EQ(stepper.step(data), 0);
      const double now = energy_of_step(model, work, before, data);
      if (i == 0) first = now;
      EXPECT_LT(now, last + 1e-4 * first) << joint << ", step " << i;
      last = now;
    }
    EXPECT_LT(last, 0.5 * first) << joint;
  }
}

template <class R>
void lanes_keep_energy(double share) {
  const Model model = model_of(kEngine);
  const int worlds = 19;
  BasicData<R> data(model, worlds);
  ASSERT_GT(data.width(), 1);
  Stepper<R> stepper(model, data, {.dt = 1e-3});
  Data start(model), work(model);
  std::vector<double> first(worlds);
  for (int w = 0; w < worlds; ++w) {
    turn_first(model, start, 5 + 2 * w);
    data.set(data.qvel, model.nv, w, AlignedVector<R>(start.qvel.begin(), start.qvel.end()));
  }
  const auto state = [&](const AlignedVector<R>& values, int n, int w) {
    AlignedVector<R> one(n);
    data.get(values, n, w, one);
    return AlignedVector<double>(one.begin(), one.end());
  };
  for (int i = 0; i < 1000; ++i) {
    std::vector<AlignedVector<double>> before;
    for (int w = 0; w < worlds; ++w) before.push_back(state(data.qpos, model.nq, w));
    ASSERT_EQ(stepper.step(data), 0);
    for (int w = 0; w < worlds; ++w) {
      const AlignedVector<double> v = state(data.qvel, model.nv, w);
      kinematics<double>(model, work, before[w], v);
      const double now = energy<double>(model, work, before[w], v).kinetic;
      if (i == 0) first[w] = now;
      ASSERT_NEAR(now, first[w], share * first[w]) << "world " << w << ", step " << i;
    }
  }
}
TEST(Linkages, TheyKeepTheirEnergyInLanes) {
  lanes_keep_energy<double>(2e-3);
#ifndef TARSUS_DOUBLE_ONLY
  lanes_keep_energy<float>(1e-2);
#endif
}

/// A step with explicit actuation does not balance, whatever the step before it did.
TEST(Linkages, AStepWithoutTheBalanceForgetsTheLast) {
  const Model model = model_of(four_bar_text("0 0 0"));
  Data start(model);
  turn_first(model, start, 10);
  const auto after_explicit_step = [&](bool balanced_before) {
    StepOptions options{.dt = 1e-3};
    options.actuation = ActuationMode::explicit_forces;
    Data data(model);
    Stepper<double> stepper(model, data, options);
    data.qvel = start.qvel;
    if (balanced_before) {
      EXPECT_EQ(stepper.step(data, Drives::none(model), data.qpos), 0);
    }
    data.qpos = start.qpos, data.qvel = start.qvel;
    EXPECT_EQ(stepper.step(data), 0);
    return data.qvel;
  };
  EXPECT_EQ(after_explicit_step(true), after_explicit_step(false));
}

/// What is not a linkage is unchanged: a loop that springs softly, one on a free body, couplings of joints only.
TEST(Linkages, OnlyLoopsOnTheWorldThatStoreNoEnergyAre) {
  const Model model = model_of(four_bar_text("0 0 0"));
  const Data data(model);
  EqualitySet set = EqualitySet::of(model);
  EXPECT_TRUE(Linkages<double>(set, data).any());
  set.set_softness(0, {.compliance = 1e-6});
  EXPECT_FALSE(Linkages<double>(set, data).any());
  const Model coupled = model_of(
      R"(<mujoco><worldbody><body><joint name="a"/><geom size=".1"/></body><body pos="1 0 0"><joint name="b"/><geom
      size=".1"/></body></worldbody><equality><joint joint1="a" joint2="b"/></equality></mujoco>)");
  EXPECT_FALSE(Linkages<double>(EqualitySet::of(coupled), Data(coupled)).any());
  const Model flies = model_of(
      R"(<mujoco><worldbody><body name="a"><freejoint/><geom size=".1"/></body></worldbody><equality><connect body1="a"
      anchor="0 0 .1"/></equality></mujoco>)");
  EXPECT_FALSE(Linkages<double>(EqualitySet::of(flies), Data(flies)).any());
}

}  // namespace
}  // namespace tarsus::test
