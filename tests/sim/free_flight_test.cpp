// Motion does not depend on where the frames of free bodies are (src/dynamics/free_flight.inl).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "support/random_model.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/batch.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

/// A body of geoms along its own x axis, with its frame `beside` metres before its centre of mass.
struct Framed {
  std::string before, geoms, after;  ///< geoms: with %g for the x of the centre of mass
  Vec3d centre;                      ///< of mass, in the world

  Model model(double beside) const {
    std::string own = geoms;
    for (std::size_t at; (at = own.find("%g")) != std::string::npos;) own.replace(at, 2, std::to_string(beside));
    char body[128];
    std::snprintf(body, sizeof body, "<body name='b' pos='%.17g %.17g %.17g'><freejoint/>", centre.x - beside, centre.y,
                  centre.z);
    return compile(parse_mjcf("<mujoco>" + before + "<worldbody>" + body + own + "</body>" + after + "</mujoco>",
                              "framed.xml", "."));
  }
};

/// Centre of mass, its velocity, the angular velocity and the energy after a run.
struct End {
  Vec3d at, velocity, spin;
  double energy, most;
};
/// @param velocity of the centre of mass at first  @param spin angular velocity at first
End run(const Framed& scene, double beside, Vec3d velocity, Vec3d spin, double rate, double seconds,
        bool contacts = false) {
  const Model model = scene.model(beside);
  Data data(model), workspace(model);
  const Vec3d c{beside, 0, 0}, own = velocity - cross(spin, c);
  for (int k = 0; k < 3; ++k) data.qvel[k] = own[k], data.qvel[3 + k] = spin[k];
  StepOptions options{.dt = 1 / rate};
  options.rows.contacts = contacts;
  Stepper<double> stepper(model, data, options);
  const auto energy_now = [&] {
    kinematics<double>(model, workspace, data.qpos, data.qvel);
    return energy<double>(model, workspace, data.qpos, data.qvel).total();
  };
  double most = energy_now();
  for (int i = 0; i < std::lround(seconds * rate); ++i) {
    EXPECT_EQ(stepper.step(data), 0);
    most = std::max(most, energy_now());
  }
  const LinkState<double>& link = workspace.links()[0];
  const Vec3d arm = link.R * c, w = link.v.w;
  return {link.o + arm, link.v.v + cross(w, arm), w, energy_now(), most};
}

const Framed kHammer{"<option gravity='0 0 -9.81'/>",
                     "<inertial pos='%g 0 0' mass='1.1' diaginertia='.002 .01 .011'/>",
                     "</worldbody>",
                     {0, 0, 1}};

/// A hammer thrown up while it turns, with its frame at the end of its handle: its centre of mass flew 3.4 m sideways
/// at 30 Hz and 1.7 m at 60 Hz. It falls as a point does.
TEST(FreeFlight, AHammerLandsWhereItsCentreOfMassDoes) {
  for (const double rate : {30.0, 60.0, 240.0}) {
    for (const Vec3d& spin : {Vec3d{0, 15, 0}, Vec3d{3, 12, -4}}) {
      const End beside = run(kHammer, 0.27, {0.5, 0, 8}, spin, rate, 1.6),
                centred = run(kHammer, 0, {0.5, 0, 8}, spin, rate, 1.6);
      EXPECT_LT(norm(beside.at - centred.at), 1e-10) << rate;
      EXPECT_LT(norm(beside.velocity - centred.velocity), 1e-10) << rate;
      EXPECT_LT(norm(beside.spin - centred.spin), 1e-9) << rate;
      const double t = std::lround(1.6 * rate) / rate;
      EXPECT_LT(norm(beside.at - Vec3d{0.5 * t, 0, 1 + 8 * t - 4.905 * t * (t + 1 / rate)}), 1e-10) << rate;
    }
  }
}

/// A rod on a spring: the springs' work went astray, 6 J became 753 J.
TEST(FreeFlight, ASpringPullsTheSameWhereverTheFrameIs) {
  const Framed rod{"<option gravity='0 0 -9.81'/>",
                   "<inertial pos='%g 0 0' mass='.3' diaginertia='.006 .006 1e-5'/><site name='s' pos='%g 0 .25'/>",
                   "<site name='w' pos='0 0 1.5'/></worldbody><tendon><spatial stiffness='100' springlength='0'>"
                   "<site site='w'/><site site='s'/></spatial></tendon>",
                   {0, 0, 1}};
  for (const double rate : {60.0, 240.0}) {
    for (const double spin : {5.0, 30.0}) {
      const End beside = run(rod, 0.2, {}, {0, 0, spin}, rate, 10), centred = run(rod, 0, {}, {0, 0, spin}, rate, 10);
      EXPECT_LT(beside.most, 1.01 * centred.most) << rate << " Hz, " << spin << " rad/s";
      EXPECT_LT(beside.most, 1.07 * 6.08) << rate << " Hz, " << spin << " rad/s";
    }
  }
}

/// A wheel that rolls at 3 m/s went 35.3 m in ten seconds at 30 Hz, and turned at 11.9 rad/s instead of 10.
TEST(FreeFlight, AWheelWithItsFrameBesideTheAxleRollsOn) {
  const Framed wheel{"",
                     "<geom type='cylinder' size='.3 .1' euler='90 0 0' pos='%g 0 0' mass='5'/>",
                     "<geom type='plane' size='0 0 1'/></worldbody>",
                     {0, 0, 0.3}};
  for (const auto& [rate, far, fast] : {std::tuple{30.0, 0.1, 0.1}, {60.0, 0.02, 0.03}, {240.0, 0.005, 0.005}}) {
    const End end = run(wheel, 0.3, {3, 0, 0}, {0, 10, 0}, rate, 10, true);
    EXPECT_NEAR(end.at.x, 30, far) << rate;
    EXPECT_NEAR(norm(end.spin), 10, fast) << rate;
    EXPECT_LT(end.most, 1.005 * 48.47) << rate;
  }
}

/// The velocity between steps is that of the pose with it: the centre of mass has the same at both ends of a step.
TEST(FreeFlight, TheVelocityBelongsToThePoseWithIt) {
  const Model model = kHammer.model(0.27);
  for (unsigned seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Data data(model), workspace(model);
    for (double& v : data.qvel) v = random.uniform(-10, 10);
    Stepper<double> stepper(model, data, {.dt = 1.0 / 60});
    const auto velocity = [&](In<double> qpos, In<double> qvel) {
      kinematics<double>(model, workspace, qpos, qvel);
      return momentum<double>(model, workspace).linear;
    };
    for (int step = 0; step < 5; ++step) {
      const Vec3d start = velocity(data.qpos, data.qvel);
      ASSERT_EQ(stepper.step(data), 0);
      const Vec3d solved = velocity(stepper.start_qpos(), stepper.solved_qvel(data)),
                  now = velocity(data.qpos, data.qvel);
      EXPECT_LT(norm(now - solved), 1e-12 * (1 + norm(now))) << seed;
      EXPECT_LT(norm(now - start - Vec3d{0, 0, -1.1 * 9.81 / 60}), 1e-11 * (1 + norm(now))) << seed;
    }
  }
}

/// Worlds in lanes, some of which turn too little for a change, are as alone to the bit.
TEST(FreeFlight, WorldsInLanesAreAsAlone) {
  const Model model = kHammer.model(0.27);
  BatchOptions options;
  options.step.dt = 1.0 / 60;
  const auto start = [&](Batch<double>& batch, int world, int as) {
    Random random{unsigned(as)};
    for (int v = 0; v < 6; ++v) batch.qvel()[std::size_t(6 * world + v)] = (as % 3 ? 9 : 1e-3) * random.uniform(-1, 1);
  };
  Batch<double> together(model, 11, options);
  for (int world = 0; world < 11; ++world) start(together, world, world);
  ASSERT_EQ(together.rollout({.steps = 60}), 0);
  for (int world = 0; world < 11; ++world) {
    Batch<double> alone(model, 1, options);
    start(alone, 0, world);
    ASSERT_EQ(alone.rollout({.steps = 60}), 0);
    EXPECT_TRUE(std::equal(alone.qvel().begin(), alone.qvel().end(), together.qvel().begin() + 6 * world)) << world;
    EXPECT_TRUE(std::equal(alone.qpos().begin(), alone.qpos().end(), together.qpos().begin() + 7 * world)) << world;
  }
}

}  // namespace
}  // namespace tarsus::test
