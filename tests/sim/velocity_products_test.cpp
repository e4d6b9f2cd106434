// Energy over a step: linearly implicit velocity products, and the model's springs by the midpoint rule.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "support/random_model.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

double total_energy(const Model& model, Data& workspace, const Data& data) {
  kinematics<double>(model, workspace, data.qpos, data.qvel);
  return energy<double>(model, workspace, data.qpos, data.qvel).total();
}

Model free_disk() {
  ModelSpec spec;
  spec.option.gravity = {0, 0, 0};
  BodySpec body("disk");
  body.parent = 0;
  JointSpec joint;
  joint.type = JointType::free;
  body.joints.push_back(joint);
  body.inertial = InertialSpec{1, {0, 0, 0}, diagonal3(1.0, 1.0, 2.0), {}};
  spec.bodies.push_back(body);
  return compile(std::move(spec));
}

TEST(VelocityProductsInSteps, FreeDiskKeepsItsEnergyForAMinute) {
  const Model model = free_disk();
  for (const double spin : {10.0, 100.0}) {
    Data data(model), workspace(model);
    data.qvel[3] = 1, data.qvel[5] = spin;
    Stepper<double> stepper(model, data, {.dt = 1.0 / 60, .velocity_products = VelocityProductMode::automatic});
    const double start = total_energy(model, workspace, data);
    for (int i = 0; i < 60 * 60; ++i) {
      ASSERT_EQ(stepper.step(data), 0) << i;
      ASSERT_NEAR(total_energy(model, workspace, data) / start, 1, 0.01) << spin << " rad/s, step " << i;
    }
  }
}

/// In free flight gravity acts on the total momentum only. The rotations equal those without gravity, however far the
/// links turn in a step.
TEST(VelocityProductsInSteps, WhatFallsTurnsAsWithoutGravity) {
  for (const char* name : {"humanoid", "dog"}) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      std::vector<std::vector<double>> rates;
      for (const double gravity : {0.0, -9.81}) {
        ModelSpec spec = read_model(std::string(TARSUS_SOURCE_DIR) + "/models/" + name + ".xml");
        spec.option.gravity = {0, 0, gravity};
        const Model model = compile(std::move(spec));
        Random random(seed);
        Data data(model);
        for (int v = 3; v < model.nv; ++v) data.qvel[v] = random.uniform(-20, 20);
        StepOptions options{.dt = 1.0 / 60};
        options.actuation = ActuationMode::off;
        Stepper<double> stepper(model, data, options);
        for (int step = 0; step < 10; ++step) ASSERT_EQ(stepper.step(data), 0) << name << ", seed " << seed;
        rates.push_back({data.qvel.begin() + 3, data.qvel.end()});
      }
      for (std::size_t v = 0; v < rates[0].size(); ++v)
        ASSERT_NEAR(rates[0][v], rates[1][v], 1e-7) << name << ", seed " << seed;
    }
  }
}

/// Boxes of any shape that turn about any axis. At 60 Hz ten radians a second are ten degrees a step.
TEST(VelocityProductsInSteps, TumblingBodiesKeepTheirEnergyForAMinute) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Random random(seed);
    ModelSpec spec;
    spec.option.gravity = {0, 0, 0};
    BodySpec body("box");
    body.parent = 0;
    body.joints.emplace_back().type = JointType::free;
    const double x = random.uniform(0.02, 0.3), y = random.uniform(0.02, 0.3), z = random.uniform(0.02, 0.3);
    body.inertial = InertialSpec{1, {0, 0, 0}, diagonal3(y * y + z * z, z * z + x * x, x * x + y * y), {}};
    spec.bodies.push_back(body);
    const Model model = compile(std::move(spec));
    for (const auto& [rate, loss, gain] : {std::tuple{3.0, 0.001, 0.001}, {10.0, 0.01, 0.01}, {200.0, 1.0, 0.1}}) {
      Data data(model), workspace(model);
      const Vec3d axis = random.direction();
      for (int k = 0; k < 3; ++k) data.qvel[3 + k] = rate * axis[k];
      const double start = total_energy(model, workspace, data);
      Stepper<double> stepper(model, data, {.dt = 1.0 / 60});
      for (int i = 0; i < 60 * 60; ++i) {
        ASSERT_EQ(stepper.step(data), 0);
        const double now = total_energy(model, workspace, data) / start;
        ASSERT_GT(now, 1 - loss) << rate << " rad/s, step " << i;
        ASSERT_LT(now, 1 + gain) << rate << " rad/s, step " << i;
      }
    }
  }
}

TEST(VelocityProductsInSteps, ExplicitOnesLoseTheDisk) {
  const Model model = free_disk();
  Data data(model);
  data.qvel[3] = 1, data.qvel[5] = 100;
  Stepper<double> stepper(model, data, {.dt = 1.0 / 60, .velocity_products = VelocityProductMode::off});
  int lost = 0;
  for (int i = 0; i < 60 && !lost; ++i) lost = stepper.step(data);
  EXPECT_EQ(stepper.status(0), WorldStatus::too_fast);
}

/// A character without damping, springs and gravity.
Model limp(const std::string& name) {
  ModelSpec spec = read_model(std::filesystem::path(TARSUS_SOURCE_DIR) / "models" / (name + ".xml"));
  for (BodySpec& body : spec.bodies) {
    for (JointSpec& joint : body.joints) joint.damping = joint.stiffness = joint.friction_loss = 0;
  }
  spec.option.gravity = {0, 0, 0};
  return compile(std::move(spec));
}

/// A hundred flights of four seconds at 60 Hz with initial rates up to `rate` [rad/s] in every joint. At the end the
/// energy is at most the fraction `at_end` of the initial energy.
void expect_no_gain(const std::string& name, double rate, double at_end) {
  const Model model = limp(name);
  const int worlds = 100;
  Data data(model, worlds), one(model), workspace(model);
  Random random(1);
  std::vector<double> start, q(model.nq), v(model.nv);
  const auto energy_of = [&](int world) {
    data.get(data.qpos, model.nq, world, q), data.get(data.qvel, model.nv, world, v);
    std::copy(q.begin(), q.end(), one.qpos.begin()), std::copy(v.begin(), v.end(), one.qvel.begin());
    return total_energy(model, workspace, one);
  };
  for (int world = 0; world < worlds; ++world) {
    data.set(data.qvel, model.nv, world, random_vector(random, model.nv, rate));
    start.push_back(energy_of(world));
  }
  Stepper<double> stepper(model, data, {.dt = 1.0 / 60, .velocity_products = VelocityProductMode::automatic});
  double most = 0, end = 0, mean = 0;
  for (int i = 0; i < 4 * 60; ++i) {
    ASSERT_EQ(stepper.step(data), 0) << "step " << i;
    end = mean = 0;
    for (int world = 0; world < worlds; ++world) {
      const double share = energy_of(world) / start[world];
      most = std::max(most, share), end = std::max(end, share), mean += share / worlds;
    }
  }
  std::printf("%s, rates up to %g rad/s: energy at most %.3f of its start, at the end %.3f at most, %.3f in the mean\n",
              name.c_str(), rate, most, end, mean);
  EXPECT_LT(most, 1.05);
  EXPECT_LE(end, at_end);
}

TEST(VelocityProductsInSteps, AHundredFlightsOfAHumanoidGainNothing) {
  expect_no_gain("humanoid", 2, 1);
  expect_no_gain("humanoid", 5, 1);
}
/// The tail acts as a whip: one of the flights ends 1.7 % above its initial energy.
TEST(VelocityProductsInSteps, AHundredFlightsOfADogGainLittle) { expect_no_gain("dog", 2, 1.02); }

/// At q ⊟ h v a body has the energy that it had before the previous step moved it. The bound holds for each tree
/// separately.
TEST(VelocityProductsInSteps, WhatTurnsFarGainsNoEnergy) {
  int trees = 0, stopped = 0;
  for (unsigned seed = 0; seed < 1000; ++seed) {
    ModelSpec spec = random_tree(seed, {.bodies = 8}).spec;
    spec.option.gravity = {0, 0, 0};
    for (BodySpec& body : spec.bodies) {
      for (JointSpec& joint : body.joints)
        joint.damping = joint.stiffness = joint.friction_loss = joint.armature = 0, joint.limited = false;
    }
    const Model model = compile(std::move(spec));
    Random random(seed);
    const State s = random_state(random, model);
    Data data(model), workspace(model);
    for (int i = 0; i < model.nv; ++i) data.qvel[i] = 30 * s.qvel[i];
    std::copy(s.qpos.begin(), s.qpos.end(), data.qpos.begin());
    std::vector<double> before(model.nq);
    const double h = 1.0 / 60;
    integrate<double>(model, workspace, data.qpos, data.qvel, -h, before);
    std::vector<int> root;
    for (const Joint& joint : model.joints)
      root.push_back(joint.parent < 0 ? int(root.size()) : root[std::size_t(joint.parent)]);
    const auto kinetic = [&](const auto& q, const auto& v, int tree) {
      std::vector<double> own(model.nv);
      for (int k = 0; k < model.nv; ++k) own[k] = root[model.dof_joint[k]] == tree ? v[k] : 0;
      kinematics<double>(model, workspace, q, own);
      return energy<double>(model, workspace, q, own).kinetic;
    };
    const std::vector<double> q(data.qpos.begin(), data.qpos.end());
    Stepper<double> stepper(model, data, {.dt = h, .velocity_products = VelocityProductMode::automatic});
    stepper.step(data);
    const In<double> next = stepper.solved_qvel(data);
    std::vector<double> begun(next.begin(), next.end());
    for (int v = 0; v < model.nv; ++v) begun[v] -= h * data.qacc[v];
    for (int i = 0; i < model.njoint(); ++i) {
      if (root[i] != i) continue;
      const double most = kinetic(before, begun, i), now = kinetic(q, next, i);
      EXPECT_LT(now, 1.01 * most) << "seed " << seed << ", tree of joint " << i;
      ++trees, stopped += now < 0.1 * most;
    }
  }
  EXPECT_GT(trees, 1500);
  EXPECT_LT(stopped, 0.01 * trees);
}

/// A wheel and a swinging pendulum beside a chain with random velocities: they move as without the chain.
TEST(VelocityProductsInSteps, WhatTurnsFarTakesNothingFromOthers) {
  const std::string chain =
      "<body pos='5 0 0'><freejoint/><geom type='capsule' fromto='0 0 0 .3 0 0' size='.03'/><body pos='.3 0 0'>"
      "<joint type='ball'/><geom type='capsule' fromto='0 0 0 .3 0 0' size='.02'/><body pos='.3 0 0'>"
      "<joint type='ball'/><geom type='capsule' fromto='0 0 0 .3 0 0' size='.01'/></body></body></body>";
  const auto model = [&](const std::string& beside) {
    return compile(
        parse_mjcf("<mujoco><worldbody><body><joint name='wheel' axis='1 0 0'/><geom type='box' "
                   "size='.1 .2 .3'/></body><body pos='0 3 0'><joint name='arm' axis='0 1 0'/><geom "
                   "type='capsule' fromto='0 0 0 0 0 -.5' size='.04'/><body pos='0 0 -.5'><joint name='tip' "
                   "axis='0 1 0'/><geom type='capsule' fromto='0 0 0 0 0 -.5' size='.04'/></body></body>" +
                       beside + "</worldbody></mujoco>",
                   "trees", "."));
  };
  const Model alone = model(""), beside = model(chain);
  for (unsigned seed = 0; seed < 20; ++seed) {
    Data a(alone), b(beside);
    std::mt19937 random(seed);
    std::normal_distribution<double> normal;
    for (double& v : b.qvel) v = 20 * normal(random);
    const double rates[] = {3, 2, -1};
    std::copy_n(rates, 3, a.qvel.begin()), std::copy_n(rates, 3, b.qvel.begin());
    const StepOptions options{.dt = 1.0 / 60, .velocity_products = VelocityProductMode::automatic};
    Stepper<double> of_a(alone, a, options), of_b(beside, b, options);
    for (int step = 0; step < 60; ++step) {
      ASSERT_EQ(of_a.step(a), 0);
      ASSERT_EQ(of_b.step(b), 0);
      for (int k = 0; k < 3; ++k) ASSERT_NEAR(a.qvel[k], b.qvel[k], 1e-9) << "seed " << seed << ", step " << step;
    }
  }
}

/// A box whose centre of mass is 5 cm from its origin, thrown at 10 m/s. Its centre of mass flies in a straight line.
TEST(VelocityProductsInSteps, WhatTurnsFarFliesOn) {
  const Model model =
      compile(parse_mjcf("<mujoco><option gravity='0 0 0'/><worldbody><body><freejoint/><geom type='box' pos='.05 0 0' "
                         "size='.05 .1 .15'/></body></worldbody></mujoco>",
                         "box", "."));
  for (unsigned seed = 0; seed < 20; ++seed) {
    Random random(seed);
    Data data(model), workspace(model);
    const Vec3d axis = random.direction(), way = random.direction();
    for (int k = 0; k < 3; ++k) data.qvel[k] = 10 * way[k], data.qvel[3 + k] = 15 * axis[k];
    const auto at = [&] {
      kinematics<double>(model, workspace, data.qpos, data.qvel);
      const Momentum p = momentum<double>(model, workspace);
      return std::pair{p.linear * (1 / p.mass), energy<double>(model, workspace, data.qpos, data.qvel).kinetic};
    };
    const auto [velocity, start] = at();
    Stepper<double> stepper(model, data, {.dt = 1.0 / 60});
    for (int i = 0; i < 600; ++i) {
      ASSERT_EQ(stepper.step(data), 0);
      const auto [now, energy] = at();
      ASSERT_LT(norm(now - velocity), 1e-9) << "seed " << seed << ", step " << i;
      ASSERT_LT(energy, 1.05 * start) << "seed " << seed << ", step " << i;
    }
  }
}

/// A turntable with two slides that stiff servos move in and out. The servos do the work, and the turntable keeps
/// turning.
TEST(VelocityProductsInSteps, WhatDrivesPushGoesOnTurning) {
  const std::string weight = "<inertial pos='0 0 0' mass='.5' diaginertia='1e-4 1e-4 1e-4'/></body>";
  const Model model = compile(
      parse_mjcf("<mujoco><option gravity='0 0 0'/><worldbody><body><joint axis='0 0 1'/><inertial pos='0 0 0' "
                 "mass='1' diaginertia='.1 .1 .1'/><body pos='.1 0 0'><joint name='a' type='slide' axis='1 0 0'/>" +
                     weight + "<body pos='-.1 0 0'><joint name='b' type='slide' axis='-1 0 0'/>" + weight +
                     "</body></worldbody><actuator><position joint='a' kp='1e5' kv='316'/><position joint='b' "
                     "kp='1e5' kv='316'/></actuator></mujoco>",
                 "turntable", "."));
  Data data(model);
  data.qvel[0] = 5;
  Stepper<double> stepper(model, data, {.dt = 1.0 / 60});
  for (int i = 0; i < 120; ++i) {
    data.ctrl[0] = data.ctrl[1] = 0.25 * (1 - std::cos(4 * kPi * i / 60));
    ASSERT_EQ(stepper.step(data), 0);
    const double r = 0.1 + data.qpos[1], momentum = (0.1002 + r * r) * data.qvel[0];
    ASSERT_GT(momentum, 0.5) << "step " << i;  // 0.551 at the start
    ASSERT_LT(momentum, 1) << "step " << i;
  }
}

/// Root joints of slides and three hinges, as in many files, which pass through the pose in which two of the hinges
/// align. A slow body then has fast joints.
TEST(VelocityProductsInSteps, RootsOfThreeHingesGainNoEnergyWhereTwoLineUp) {
  const Model model = compile(parse_mjcf(
      "<mujoco><compiler angle='radian'/><option gravity='0 0 0'/><worldbody><body><joint type='slide' axis='1 0 0'/>"
      "<joint type='slide' axis='0 1 0'/><joint type='slide' axis='0 0 1'/><joint axis='0 0 1'/><joint axis='0 1 0'/>"
      "<joint axis='1 0 0'/><geom type='box' size='.1 .2 .3' mass='10'/><body pos='0 .2 .3'><joint axis='1 0 0'/>"
      "<geom type='capsule' fromto='0 0 0 0 .4 0' size='.04' mass='2'/></body></body></worldbody></mujoco>",
      "root", "."));
  for (const auto& [rate, speed] : {std::pair{30.0, 2.0}, {60.0, 2.0}, {60.0, 5.0}, {240.0, 5.0}}) {
    double left = 0, fastest = 0;
    const int starts = 150;
    for (unsigned seed = 0; seed < starts; ++seed) {
      std::mt19937 random(seed);
      std::uniform_real_distribution<double> uniform(-1, 1);
      Data data(model), workspace(model);
      for (double& v : data.qvel) v = speed * uniform(random);
      data.qpos[4] = 1.3 + 0.5 * uniform(random);
      const auto kinetic = [&](const auto& q) {
        kinematics<double>(model, workspace, q, data.qvel);
        return energy<double>(model, workspace, q, data.qvel).kinetic;
      };
      const double start = kinetic(data.qpos);
      Stepper<double> stepper(model, data, {.dt = 1 / rate});
      double now = start;
      for (int step = 0; step < 300; ++step) {
        const std::vector<double> q(data.qpos.begin(), data.qpos.end());
        ASSERT_EQ(stepper.step(data), 0);
        now = kinetic(q);
        ASSERT_LT(now, 1.07 * start) << rate << " Hz, seed " << seed << ", step " << step;
        fastest = std::max(fastest, std::abs(data.qvel[3]));
      }
      EXPECT_LT(now, 1.01 * start) << rate << " Hz, seed " << seed;
      left += now / start / starts;
    }
    EXPECT_GT(left, 0.92) << rate;
    EXPECT_GT(fastest, 10 * speed) << "none came near that pose";
  }
}

/// A body spins on a ball joint off its centre, on a root of three hinges at rest. A step makes the root's slow joints
/// fast.
TEST(VelocityProductsInSteps, WhatSpinsOnARootOfThreeHingesGivesItNoMoreThanItHas) {
  const Model model = compile(parse_mjcf(
      "<mujoco><option gravity='0 0 0'/><worldbody><body><joint axis='0 0 1'/><joint axis='0 1 0'/>"
      "<joint axis='1 0 0'/><geom type='box' size='.1 .12 .15' mass='1' contype='0'/><body pos='0 0 .2'>"
      "<joint type='ball'/><geom type='box' size='.1 .05 .15' pos='0 0 .15' mass='1' contype='0'/></body></body>"
      "</worldbody></mujoco>",
      "root", "."));
  for (const double rate : {30.0, 60.0, 240.0}) {
    for (unsigned seed = 0; seed < 60; ++seed) {
      std::mt19937 random(seed);
      std::normal_distribution<double> normal;
      Data data(model), workspace(model);
      Vec3d spin{normal(random), normal(random), normal(random)};
      spin = spin * (150 / norm(spin));
      for (int k = 0; k < 3; ++k) data.qvel[3 + k] = spin[k];
      const auto kinetic = [&](const auto& q) {
        kinematics<double>(model, workspace, q, data.qvel);
        return energy<double>(model, workspace, q, data.qvel).kinetic;
      };
      const double start = kinetic(data.qpos);
      Stepper<double> stepper(model, data, {.dt = 1 / rate});
      for (int step = 0; step < 120; ++step) {
        const std::vector<double> q(data.qpos.begin(), data.qpos.end());
        ASSERT_EQ(stepper.step(data), 0) << rate << " Hz, seed " << seed << ", step " << step;
        ASSERT_LT(kinetic(q), 1.05 * start) << rate << " Hz, seed " << seed << ", step " << step;
      }
    }
  }
}

/// A light branch of 0.9 kg on a ball joint with a range of 80°, with a heavy body on a second ball joint behind it.
Model light_limb(double heavy, const std::string& range = "", const std::string& limb = "fromto='0 0 0 0 0 -1'",
                 const std::string& at = "0 0 -1", const std::string& end = "fromto='0 0 0 0 0 -.6'") {
  return compile(parse_mjcf(
      "<mujoco><option gravity='0 0 0'/><worldbody><body><joint type='ball' range='0 80' limited='true'/><geom "
      "type='capsule' " +
          limb + " size='.04' mass='.9' contype='0'/><body pos='" + at + "'><joint type='ball' " + range +
          "/><geom type='capsule' " + end + " size='.1' mass='" + std::to_string(heavy) +
          "' contype='0'/></body></body></worldbody></mujoco>",
      "limb", "."));
}

void throw_joints(Data& data, unsigned seed, double speed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (double& v : data.qvel) v = speed * uniform(random);
}

/// The largest violation of a ball's or hinge's range [rad].
double beyond_ranges(const Model& model, In<double> qpos) {
  double most = 0;
  for (const Joint& joint : model.joints) {
    if (!joint.limited) continue;
    const double q = qpos[joint.qpos];
    if (joint.nv() == 3) most = std::max(most, 2 * std::acos(std::min(1.0, std::abs(q))) - joint.upper());
    if (joint.nv() == 1) most = std::max({most, q - joint.upper(), joint.lower() - q});
  }
  return most;
}

struct Gains {
  int runs = 0, above = 0;  ///< runs above 1.1
  double most = 0, beyond = 0;
};
/// The largest ratio of the energy to its previous minimum, over four seconds at 60 Hz.
void find_gains(const Model& model, Gains& gains) {
  Data workspace(model);
  for (const double speed : {5, 10, 20}) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      Data data(model);
      throw_joints(data, seed, speed);
      const auto kinetic = [&](const auto& q) {
        kinematics<double>(model, workspace, q, data.qvel);
        return energy<double>(model, workspace, q, data.qvel).kinetic;
      };
      std::vector<double> before(model.nq);
      integrate<double>(model, workspace, data.qpos, data.qvel, -1.0 / 60, before);
      double least = kinetic(before), most = 0;
      StepOptions options;
      options.dt = 1.0 / 60, options.rows.joints = true;
      Stepper<double> stepper(model, data, options);
      for (int i = 0; i < 240; ++i) {
        ASSERT_EQ(stepper.step(data), 0) << seed << ", step " << i;
        const double now = kinetic(stepper.start_qpos());
        most = std::max(most, now / least), least = std::min(least, now);
        gains.beyond = std::max(gains.beyond, beyond_ranges(model, data.qpos));
      }
      ++gains.runs, gains.above += most > 1.1, gains.most = std::max(gains.most, most);
    }
  }
}

/// The range's force, which the heavy end makes large, turns the branch about its own axis, about which it has almost
/// no inertia.
TEST(VelocityProductsInSteps, ALightLimbAtTheEndOfItsRangeGainsNoEnergy) {
  Gains gains;
  for (const double ratio : {1, 10, 33, 100}) {
    find_gains(light_limb(0.9 * ratio), gains);
    find_gains(light_limb(0.9 * ratio, "range='0 80' limited='true'"), gains);
    find_gains(light_limb(0.9 * ratio, "", "fromto='0 0 0 1 0 0'", "1 0 0", "fromto='.1 -.1 0 .1 .1 0'"), gains);
  }
  std::printf("energy at most %.3f, above 1.1 in %d of %d, up to %.3f rad beyond a range\n", gains.most, gains.above,
              gains.runs, gains.beyond);
  EXPECT_LT(gains.most, 1.35);
  EXPECT_LT(gains.above, 0.05 * gains.runs);
  EXPECT_LT(gains.beyond, 0.25);
}

/// The forces of hinges do not turn with the hinges. Two pairs of crossing hinges, one pair with a range of ±40° and
/// one free.
TEST(VelocityProductsInSteps, HingesAtTheEndOfTheirRangesGainLittle) {
  Gains gains;
  for (const double ratio : {1, 10, 33, 100}) {
    const std::string range = "range='-40 40' limited='true'", ball = "<geom size='.05' mass='.1' contype='0'/>";
    find_gains(
        compile(parse_mjcf("<mujoco><option gravity='0 0 0'/><worldbody><body><joint axis='1 0 0' " + range + "/>" +
                               ball + "<body pos='0 0 -.05'><joint axis='0 1 0' " + range +
                               "/><geom type='capsule' fromto='0 0 0 0 0 -.95' size='.04' mass='.9' contype='0'/>"
                               "<body pos='0 0 -1'><joint axis='1 0 0'/>" +
                               ball +
                               "<body pos='0 0 -.05'><joint axis='0 1 0'/><geom type='capsule' fromto='0 0 0 0 0 "
                               "-.6' size='.1' contype='0' mass='" +
                               std::to_string(0.9 * ratio) + "'/></body></body></body></body></worldbody></mujoco>",
                           "hinges", ".")),
        gains);
  }
  std::printf("energy at most %.3f, above 1.1 in %d of %d, up to %.3f rad beyond a range\n", gains.most, gains.above,
              gains.runs, gains.beyond);
  EXPECT_LT(gains.most, 1.35);
  EXPECT_LT(gains.beyond, 0.05);
}

/// Each world of a pack decides, as if stepped individually, whether its step is solved a second time.
TEST(VelocityProductsInSteps, LightLimbsSideBySideAreAsAlone) {
  const Model model = light_limb(30, "range='0 80' limited='true'");
  const int worlds = 11;
  StepOptions options;
  options.dt = 1.0 / 60, options.rows.joints = true;
  std::vector<Data> alone(worlds, Data(model));
  std::vector<std::unique_ptr<Stepper<double>>> steppers;
  for (int w = 0; w < worlds; ++w) {
    throw_joints(alone[std::size_t(w)], unsigned(w), 10);
    steppers.push_back(std::make_unique<Stepper<double>>(model, alone[std::size_t(w)], options));
  }
  for (int i = 0; i < 120; ++i) {
    Data batch(model, worlds);
    for (int w = 0; w < worlds; ++w) {
      batch.set(batch.qpos, model.nq, w, alone[std::size_t(w)].qpos);
      batch.set(batch.qvel, model.nv, w, alone[std::size_t(w)].qvel);
      steppers[std::size_t(w)]->restart(alone[std::size_t(w)], 0);
    }
    Stepper<double> together(model, batch, options);
    ASSERT_EQ(together.step(batch), 0);
    for (int w = 0; w < worlds; ++w) {
      Data& one = alone[std::size_t(w)];
      ASSERT_EQ(steppers[std::size_t(w)]->step(one), 0);
      std::vector<double> v(model.nv);
      batch.get(batch.qvel, model.nv, w, v);
      for (int k = 0; k < model.nv; ++k)
        ASSERT_NEAR(v[std::size_t(k)], one.qvel[std::size_t(k)], 1e-5) << "step " << i << ", world " << w;
    }
  }
}

TEST(VelocityProductsInSteps, FastAndSlowWorldsOfOnePackAreAsAlone) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Model model = random_tree(seed, {.bodies = 6});
    if (model.nv == 0) continue;
    const int worlds = 7;
    Random random(seed);
    Data batch(model, worlds);
    std::vector<State> states;
    for (int world = 0; world < worlds; ++world) {
      State s = random_state(random, model);
      for (double& x : s.qvel) x *= world % 3 == 0 ? 1e-6 : 3;  // below and above the threshold of `auto`
      states.push_back(s);
      batch.set(batch.qpos, model.nq, world, s.qpos), batch.set(batch.qvel, model.nv, world, s.qvel);
    }
    // At 1/60 s the step also bounds the energy of the fast ones.
    const StepOptions options{.dt = seed % 2 ? 1e-3 : 1.0 / 60, .velocity_products = VelocityProductMode::automatic};
    Stepper<double> stepper(model, batch, options);
    stepper.step(batch);
    for (int world = 0; world < worlds; ++world) {
      Data alone(model);
      std::copy(states[world].qpos.begin(), states[world].qpos.end(), alone.qpos.begin());
      std::copy(states[world].qvel.begin(), states[world].qvel.end(), alone.qvel.begin());
      Stepper<double>(model, alone, options).step(alone);
      std::vector<double> v(model.nv);
      batch.get(batch.qvel, model.nv, world, v);
      ASSERT_EQ(v, std::vector<double>(alone.qvel.begin(), alone.qvel.end())) << "seed " << seed << " world " << world;
    }
  }
}

Model sprung(double stiffness, double mass) {
  ModelSpec spec;
  spec.option.gravity = {0, 0, 0};
  BodySpec body("bob");
  body.parent = 0;
  JointSpec hinge;
  hinge.type = JointType::hinge, hinge.axis = {0, 1, 0}, hinge.stiffness = stiffness;
  body.joints.push_back(hinge);
  body.inertial = InertialSpec{mass, {0, 0, -0.25}, diagonal3(0.02, 0.02, 0.001), {}};
  spec.bodies.push_back(body);
  return compile(std::move(spec));
}

TEST(SpringsInSteps, KeepTheirAmplitude) {
  const Model model = sprung(20, 1);
  for (const double dt : {0.005, 0.002, 0.0005}) {
    Data data(model);
    data.qpos[0] = 1;
    Stepper<double> stepper(model, data, {.dt = dt});
    double late = 0;
    for (int i = 0; i * dt < 60; ++i) {
      ASSERT_EQ(stepper.step(data), 0);
      if (i * dt > 59) late = std::max(late, std::abs(data.qpos[0]));
    }
    EXPECT_NEAR(late, 1, 0.01) << dt;
  }
}

/// The step's map of the linear oscillator has a quadratic form that falls by the map's determinant (spring_rule.hpp).
/// Amplitudes that the step resolves are kept, those of higher frequencies decay, and none grows.
TEST(SpringsInSteps, KeepWhatAStepResolvesAndLoseWhatItDoesNot) {
  const double h = 0.01, inertia = 0.02 + 0.25 * 0.25;
  for (const double angle : {0.01, 0.1, 0.3, 1.0, 2.0, 5.0, 100.0, 1e5}) {  // h ω
    SCOPED_TRACE(angle);
    const Model model = sprung(inertia * angle * angle / (h * h), 1);
    EXPECT_NEAR(model.carried_inertia[0], inertia, 1e-15);
    const auto step = [&](double q, double u) {  // u = h v
      Data data(model);
      data.qpos[0] = q, data.qvel[0] = u / h;
      Stepper<double> stepper(model, data, {.dt = h});
      EXPECT_EQ(stepper.step(data), 0);
      return std::array{double(data.qpos[0]), h * double(data.qvel[0])};
    };
    const auto [qq, uq] = step(1, 0);
    const auto [qu, uu] = step(0, 1);
    const double w = angle * angle, ahead = 1 / (1 + 2.25 * 2.25 / (w * w)), share = 0.25 + 0.75 * ahead;
    const double determinant = 1 - ahead * w / (1 + share * w);
    EXPECT_NEAR(qq * uu - qu * uq, determinant, 1e-12);
    const double trace = qq + uu, discriminant = trace * trace / 4 - determinant;
    const double radius = discriminant < 0 ? std::sqrt(determinant) : std::abs(trace) / 2 + std::sqrt(discriminant);
    EXPECT_LE(radius, 1 + 1e-15);
    const double period = std::pow(radius, 2 * M_PI / angle), ten = std::pow(radius, 10);  // what is left after it
    EXPECT_GT(period, angle <= 0.1 ? 0.9999 : angle <= 0.3 ? 0.99 : 0);
    EXPECT_LT(ten, angle >= 5 ? 0.01 : 1 + 1e-12);
  }
}

/// A top of 101 J at 200 rad/s, held by its tip. With momentum restored above 0.2 rad a step alone it gained 770 J.
TEST(VelocityProducts, AFastBodyOffItsCentreUnderALoopKeepsItsEnergy) {
  for (const double centre : {0.0, 0.1}) {
    const auto number = [](double x) { return std::to_string(x); };
    const Model model = compile(parse_mjcf(
        "<mujoco><worldbody><body name=\"top\" euler=\"17 0 0\"><freejoint/><inertial pos=\"0 0 " + number(centre) +
            "\" mass=\"1\" diaginertia=\".003 .003 .005\"/></body></worldbody>"
            "<equality><connect body1=\"top\" anchor=\"0 0 " +
            number(centre - 0.1) + "\"/></equality></mujoco>",
        "top.xml", "."));
    const EqualitySet set = EqualitySet::of(model);
    for (const double dt : {7e-4, 5e-4, 2e-4}) {
      Data data(model), work(model);
      data.qvel[5] = 200;
      ConstrainedDynamics<double> loops(model, set, data);
      loops.settle(data, data.qpos, data.joint_inertia, data.qvel);
      const auto total = [&] {
        kinematics<double>(model, work, data.qpos, data.qvel);
        return energy<double>(model, work, data.qpos, data.qvel).total();
      };
      const double start = total();
      Stepper<double> stepper(model, data, {.dt = dt});
      for (int i = 0; i < int(1 / dt); ++i) ASSERT_EQ(stepper.step(data), 0);
      EXPECT_NEAR(total(), start, 0.5) << centre << " m, " << dt << " s";
    }
  }
}

}  // namespace
}  // namespace tarsus::test
