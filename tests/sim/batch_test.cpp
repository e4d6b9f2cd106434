// Many worlds: each gives the same bits as one stepped individually, for any number of threads, any index and any other
// worlds; a failed world stays at its last good state and does not affect its neighbours.
#include "tarsus/sim/batch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <random>

#include "support/allocations.hpp"
#include "support/random_model.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/constraint/hanging.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/capture.hpp"

namespace tarsus {
namespace {

Model model_of(const std::string& file) {
  return compile(read_model(std::string(TARSUS_SOURCE_DIR) + "/models/" + file, {}));
}

struct Scene {
  std::string name, file;
  BatchOptions options;
};

/// Options with stable PD drives of gains kp and kp/10.
/// @param contacts also enables the joint ranges
/// @param limit the drives' force limit; 0: none
BatchOptions driven(const Model& model, bool contacts, double kp, double limit) {
  BatchOptions options;
  options.step.rows.contacts = options.step.rows.joints = contacts;
  options.drives = Drives::uniform(model, kp, kp / 10, 0, 0);
  if (limit > 0) options.drives->force_limit.assign(std::size_t(model.nv), limit);
  return options;
}

/// Scenes with and without contacts, with and without force limits, and with loops.
std::vector<Scene> scenes(const std::vector<Model>& models) {
  std::vector<Scene> out;
  const auto add = [&](const char* name, const Model& model, bool contacts, double limit, double kp, LoopMode loops) {
    BatchOptions options = driven(model, contacts, kp, limit);
    options.step.loops = loops;
    out.push_back({name, model.name, options});
  };
  add("contacts", models[0], true, 0, 300, LoopMode::spook);
  add("contacts and limits", models[0], true, 60, 300, LoopMode::spook);
  add("free", models[0], false, 0, 300, LoopMode::spook);
  add("free with limits", models[0], false, 60, 300, LoopMode::spook);
  add("loops", models[1], false, 0, 1, LoopMode::spook);
  add("closed loops", models[1], false, 0, 1, LoopMode::shake);
  add("loops and limits", models[1], false, 0.5, 1, LoopMode::spook);
  add("loops and contacts", models[1], true, 0, 1, LoopMode::spook);
  return out;
}

std::vector<Model> scene_models() {
  std::vector<Model> models;
  models.push_back(model_of("humanoid.xml")), models.push_back(model_of("loops/four_bar.xml"));
  return models;
}
const Model& model_for(const Scene& scene, const std::vector<Model>& models) {
  return scene.file == models[0].name ? models[0] : models[1];
}

/// Numbers in [-size, size] that depend on the seed alone.
std::vector<double> noise(int n, unsigned seed, double size) {
  std::mt19937 random(seed);
  std::vector<double> out(at(n));
  for (double& x : out) x = size * (double(random() % 20001) / 10000 - 1);
  return out;
}
/// Each world's initial velocity, and its drives' target at a step.
std::vector<double> start_speed(const Model& model, unsigned world) { return noise(model.nv, 7 + world, 1); }
std::vector<double> goal(const Model& model, unsigned world, int step) {
  std::vector<double> out(at(model.nq)), turn = noise(model.nv, 1000 * world + unsigned(step / 5), 0.5);
  Data data(model);
  integrate<double>(model, data, model.qpos0, turn, 1, out);
  return out;
}

using State = std::pair<std::vector<double>, std::vector<double>>;  ///< qpos, qvel

/// The state of a world that is stepped individually by its own Stepper. With contacts or loops the lanes solve in
/// another order than the scalar path, so that the reference is then a batch of one world.
State alone(const Model& model, const BatchOptions& options, unsigned world, int steps) {
  const bool terms = options.step.rows.any() || !model.spec.equalities.empty();
  if (terms && pack_width<double>(model, options.step, &*options.drives) > 1) {
    Batch<double> one(model, 1, options);
    const std::vector<double> v = start_speed(model, world);
    std::copy(v.begin(), v.end(), one.qvel().begin());
    for (int i = 0; i < steps; ++i) {
      const std::vector<double> q = goal(model, world, i);
      std::copy(q.begin(), q.end(), one.qpos_target().begin());
      EXPECT_EQ(one.step(), 0);
    }
    return {{one.qpos().begin(), one.qpos().end()}, {one.qvel().begin(), one.qvel().end()}};
  }
  Data data(model);
  const std::vector<double> v = start_speed(model, world);
  std::copy(v.begin(), v.end(), data.qvel.begin());
  Stepper<double> stepper(model, data, options.step);
  for (int i = 0; i < steps; ++i) stepper.step(data, *options.drives, goal(model, world, i));
  EXPECT_EQ(stepper.status(0), WorldStatus::ok);
  return {{data.qpos.begin(), data.qpos.end()}, {data.qvel.begin(), data.qvel.end()}};
}

void begin(Batch<double>& batch, const std::vector<unsigned>& names) {
  for (int w = 0; w < batch.worlds(); ++w) {
    const std::vector<double> v = start_speed(batch.model(), names[at(w)]);
    std::copy(v.begin(), v.end(), batch.qvel().begin() + std::ptrdiff_t(w) * batch.model().nv);
  }
}
void aim(Batch<double>& batch, const std::vector<unsigned>& names, int step) {
  for (int w = 0; w < batch.worlds(); ++w) {
    const std::vector<double> q = goal(batch.model(), names[at(w)], step);
    std::copy(q.begin(), q.end(), batch.qpos_target().begin() + std::ptrdiff_t(w) * batch.model().nq);
  }
}
std::vector<double> world_of(std::span<const double> array, int n, int world) {
  return {array.begin() + std::ptrdiff_t(n) * world, array.begin() + std::ptrdiff_t(n) * (world + 1)};
}

/// The name of the world at each index.
std::vector<unsigned> names_of(int worlds, bool backwards) {
  std::vector<unsigned> names;
  for (int w = 0; w < worlds; ++w) names.push_back(unsigned(backwards ? worlds - 1 - w : w));
  return names;
}
/// Each world's (qpos, qvel) equals to the bit the expected state under its name.
void expect_worlds(Batch<double>& batch, const std::vector<unsigned>& names, const std::vector<State>& expected,
                   const std::string& scene) {
  const Model& model = batch.model();
  for (int w = 0; w < batch.worlds(); ++w) {
    const State& alone = expected[names[at(w)]];
    EXPECT_EQ(world_of(batch.qpos(), model.nq, w), alone.first) << scene << " world " << w;
    EXPECT_EQ(world_of(batch.qvel(), model.nv, w), alone.second) << scene << " world " << w;
  }
}

TEST(Batch, EachWorldIsAsAloneToTheBit) {
  const std::vector<Model> models = scene_models();
  const int steps = 40;
  for (const Scene& scene : scenes(models)) {
    const Model& model = model_for(scene, models);
    std::vector<State> expected;
    for (unsigned world = 0; world < 11; ++world) expected.push_back(alone(model, scene.options, world, steps));
    // Batch sizes, threads and indices: the same worlds in forward and reverse order.
    for (const auto& [worlds, threads, backwards] :
         {std::tuple{11, 1, false}, std::tuple{11, 3, true}, std::tuple{4, 2, true}, std::tuple{1, 1, false}}) {
      BatchOptions options = scene.options;
      options.threads = threads;
      Batch<double> batch(model, worlds, options);
      const std::vector<unsigned> names = names_of(worlds, backwards);
      begin(batch, names);
      for (int i = 0; i < steps; ++i) {
        aim(batch, names, i);
        ASSERT_EQ(batch.step(), 0) << scene.name << ": " << batch.fault(0).text();
      }
      expect_worlds(batch, names, expected, scene.name);
    }
  }
}

TEST(Batch, SavedAndRestoredItGoesOnToTheBit) {
  const std::vector<Model> models = scene_models();
  for (const Scene& scene : scenes(models)) {
    const Model& model = model_for(scene, models);
    const std::vector<unsigned> names{0, 1, 2, 3, 4, 5};
    Batch<double> batch(model, 6, scene.options);
    begin(batch, names);
    for (int i = 0; i < 30; ++i) {
      aim(batch, names, i);
      ASSERT_EQ(batch.step(), 0);
    }
    const BatchState<double> saved = batch.save();
    Batch<double> copy(batch);
    const auto go_on = [&](Batch<double>& b) {
      for (int i = 30; i < 60; ++i) aim(b, names, i), b.step();
      return b.state_hash();
    };
    const std::uint64_t expected = go_on(batch);
    EXPECT_EQ(go_on(copy), expected) << scene.name;
    batch.restore(saved);
    EXPECT_EQ(go_on(batch), expected) << scene.name;
    BatchOptions options = scene.options;
    options.threads = 3;
    Batch<double> elsewhere(model, 6, options);
    elsewhere.restore(saved);
    EXPECT_EQ(go_on(elsewhere), expected) << scene.name;
    EXPECT_EQ(elsewhere.steps(0), 60);
  }
}

TEST(Batch, BadWorldsLeaveTheOthersAsTheyAre) {
  const std::vector<Model> models = scene_models();
  for (const Scene& scene : scenes(models)) {
    const Model& model = model_for(scene, models);
    const int worlds = 100, steps = scene.options.step.rows.any() ? 8 : 20;
    std::vector<unsigned> names;
    for (int w = 0; w < worlds; ++w) names.push_back(unsigned(w));
    BatchOptions options = scene.options;
    options.threads = 2;
    Batch<double> clean(model, worlds, options), batch(model, worlds, options);
    begin(clean, names), begin(batch, names);
    const auto spoil = [&](int i) {
      const std::size_t q = std::size_t(model.nq), v = std::size_t(model.nv);
      batch.qpos_target()[2 * q] = std::nan("");
      if (i > 0) batch.qpos_target()[35 * q + q - 1] = kInfinity;
      if (i > 1) batch.qvel()[41 * v] = 1e30;
      if (i > 2) batch.tau()[77 * v] = -kInfinity;
      if (i > 3) batch.qpos()[99 * q] = std::nan("");
    };
    for (int i = 0; i < steps; ++i) {
      aim(clean, names, i), aim(batch, names, i), spoil(i);
      ASSERT_EQ(clean.step(), 0) << scene.name;
      EXPECT_EQ(batch.step(), std::min(i + 1, 5)) << scene.name;
    }
    for (int w = 0; w < worlds; ++w) {
      const bool bad = w == 2 || w == 35 || w == 41 || w == 77 || w == 99;
      ASSERT_EQ(batch.status(w) == WorldStatus::ok, !bad) << scene.name << " world " << w;
      if (!bad) {
        ASSERT_EQ(batch.state_hash(w), clean.state_hash(w)) << scene.name << " world " << w;
      }
    }
    EXPECT_EQ(batch.fault(2).text(), "bad_input: qpos_target[0] is nan");
    EXPECT_EQ(batch.fault(35).text(), "bad_input: qpos_target[" + std::to_string(model.nq - 1) + "] is inf");
    EXPECT_EQ(batch.fault(41).text(), "too_fast: qvel[0] is 1e+30");
    EXPECT_EQ(batch.fault(77).text(), "bad_input: tau[0] is -inf");
    EXPECT_EQ(batch.fault(99).text(), "bad_input: qpos[0] is nan");
    EXPECT_EQ(batch.steps(2), 0);
    EXPECT_EQ(batch.steps(35), 1);
    EXPECT_EQ(batch.steps(77), 3);
    EXPECT_EQ(world_of(batch.qpos(), model.nq, 2), model.qpos0);
  }
}

// The humanoid's drives throw its arms and legs into one another. In one step of several thousand the lanes leave
// residuals of metres a second.
TEST(Batch, WhatLanesDoNotSolveIsSolvedAlone) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  const Model model = model_of("humanoid.xml");
  constexpr int kWorlds = 128, kSteps = 300;
  Batch<float> batch(model, kWorlds, driven(model, true, 300, 150));
  std::mt19937 random(5);
  std::uniform_real_distribution<float> turn(-0.8f, 0.8f);
  double worst = 0;
  int unsolved = 0;
  for (int step = 0; step < kSteps; ++step) {
    for (int world = 0; world < kWorlds && step % 6 == 0; ++world) {
      const std::span<float> target = batch.qpos_target().subspan(at(world * model.nq), at(model.nq));
      for (const Joint& joint : model.joints) {
        if (joint.type == JointType::hinge) target[at(joint.qpos)] = turn(random);
        if (joint.type != JointType::ball) continue;
        const Quatd q = exp_map({turn(random), turn(random), turn(random)});
        const double numbers[] = {q.w, q.x, q.y, q.z};
        for (int k = 0; k < 4; ++k) target[at(joint.qpos + k)] = float(numbers[k]);
      }
    }
    ASSERT_EQ(batch.step(), 0);
    for (int world = 0; world < kWorlds; ++world) {
      worst = std::max(worst, batch.reports()[at(world)].residual);
      unsolved += batch.reports()[at(world)].unsolved;
    }
  }
  EXPECT_LE(worst, 1);  // the lanes alone leave 30 and 19
  EXPECT_LE(unsolved, 8);
}

// A lane's result may exceed the speed limit or be no finite number although the scalar path solves the world. Such a
// world must not be reported as failed. Here a joint range resists a torque of 1e13 N m.
TEST(Batch, AWorldWhoseLaneRunsAwayIsSolvedAlone) {
  const Model model = model_of("humanoid.xml");
  Batch<double> batch(model, 4, driven(model, true, 300, 0));
  ASSERT_EQ(batch.rollout({.steps = 20}), 0);
  batch.tau()[at(2 * model.nv + 8)] = 1e13;
  ASSERT_EQ(batch.step(), 0);
  EXPECT_FALSE(batch.reports()[2].unsolved);
}

/// The largest energy [J] that a step of limp dogs in float gains beyond the gain of a step in double from the same
/// state. The energy is T(q, v⁺) plus the mean of the potentials at the start and the end of the step, as in
/// Ground.LimpFallsOfADogInFloatGainNoEnergy. A step in double gains up to 1 J where limbs that overlap are separated.
/// @param seeds one for each dog's initial orientation and velocities
/// @param missed number of steps whose residual exceeds the tolerance, added
double most_gained(const std::vector<unsigned>& seeds, int steps, int& missed) {
  constexpr double kSmall = 0.5;  // [J]
  const Model model = model_of("dog.xml");
  BatchOptions options;
  options.step.dt = 1.0 / 60, options.step.rows.contacts = options.step.rows.joints = true;
  const int worlds = int(seeds.size());
  Batch<float> batch(model, worlds, options);
  const auto part = [](auto&& all, int n, int world) { return std::span(all).subspan(at(world * n), at(n)); };
  for (int world = 0; world < worlds; ++world) {
    test::Random random{seeds[at(world)]};
    const Quatd turn = random.rotation();
    const std::span<float> q = part(batch.qpos(), model.nq, world);
    q[2] += 0.3f, q[3] = float(turn.w), q[4] = float(turn.x), q[5] = float(turn.y), q[6] = float(turn.z);
    for (float& v : part(batch.qvel(), model.nv, world)) v = float(random.uniform(-1, 1));
  }
  Data workspace(model);
  const auto energy_at = [&](const auto& qpos, const auto& qvel) {
    const AlignedVector<double> q(qpos.begin(), qpos.end()), v(qvel.begin(), qvel.end());
    kinematics<double>(model, workspace, q, v);
    return energy<double>(model, workspace, q, v);
  };
  const auto energy_of = [&](const auto& start, const auto& end, const auto& v) {
    const Energy before = energy_at(start, v);
    return before.kinetic + 0.5 * (before.potential + energy_at(end, v).potential);
  };
  const auto energy_in_double = [&](const auto& start, const auto& v) {
    Batch<double> one(model, 1, options);
    std::copy(start.begin(), start.end(), one.qpos().begin()), std::copy(v.begin(), v.end(), one.qvel().begin());
    EXPECT_EQ(one.step(), 0);
    return energy_of(start, one.qpos(), one.qvel());
  };
  std::vector<double> last(seeds.size(), std::numeric_limits<double>::infinity());
  double most = 0;
  for (int step = 0; step < steps; ++step) {
    AlignedVector<float> qpos(batch.qpos().begin(), batch.qpos().end()), qvel(batch.qvel().begin(), batch.qvel().end());
    EXPECT_EQ(batch.step(), 0);
    for (int world = 0; world < worlds; ++world) {
      const std::span<float> start = part(qpos, model.nq, world);
      const double now = energy_of(start, part(batch.qpos(), model.nq, world), part(batch.qvel(), model.nv, world));
      double& reference = last[at(world)];
      if (now > reference + kSmall) {
        reference = std::max(reference, energy_in_double(start, part(qvel, model.nv, world)));
      }
      most = std::max(most, now - reference), reference = now;
      missed += batch.reports()[at(world)].unsolved;
    }
  }
  return most;
}

/// In float the lanes lose digits of the dog's velocities that the velocities of its rows do not show. Without a test
/// of the result (decision 512) 9 of these steps gain more than 1 J, up to 284 J.
TEST(Batch, LimpFallsOfDogsInFloatGainNoEnergy) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  std::vector<unsigned> seeds(256);
  std::iota(seeds.begin(), seeds.end(), 0u);
  int missed = 0;
  EXPECT_LT(most_gained(seeds, 120, missed), 1);
  EXPECT_LE(missed, 3);
}

/// Float lanes check the energy of their result in steps that end with the first solve too. Without this check, one
/// step of each of these two falls gains 122 and 86 J.
TEST(Batch, LimpFallsOfDogsInFloatGainNoEnergyInOneSolve) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  int missed = 0;
  EXPECT_LT(most_gained({1623, 3387}, 25, missed), 1);
}

/// The largest speed of the bodies on the floor over half a second after `seconds`.
/// @param push bound of the initial velocities
template <class R>
double unrest(const std::string& bodies, double dt, double seconds, double push = 0) {
  const std::string text = "<mujoco><worldbody><geom type='plane' size='0 0 1'/>" + bodies + "</worldbody></mujoco>";
  const Model model = compile(parse_mjcf(text, "stack.xml", "."));
  BatchOptions options;
  options.step.dt = dt, options.step.rows.contacts = true;
  Batch<R> batch(model, 2, options);
  test::Random random{5};
  for (R& v : batch.qvel()) v = R(random.uniform(-push, push));
  double fastest = batch.rollout({.steps = int(seconds / dt)}) == 0 ? 0 : std::numeric_limits<double>::infinity();
  for (int i = 0; i < int(0.5 / dt); ++i) {
    batch.step();
    for (const R v : batch.qvel()) fastest = std::max(fastest, std::abs(double(v)));
  }
  return fastest;
}

std::string stack(int count, const std::string& geom, double height) {
  std::string bodies;
  for (int i = 0; i < count; ++i) {
    bodies += "<body pos='0 0 " + std::to_string((i + 0.5) * height) + "'><freejoint/><geom " + geom + "/></body>";
  }
  return bodies;
}

/// The lowest point of a cylinder's cap moves around the rim as the cap rocks. If it is a contact point, such coins
/// rock for ever, at 0.004 rad/s and more (decision 504).
TEST(Batch, CoinsComeToRest) {
  const std::string coin = "type='cylinder' size='0.01 0.0005' mass='0.008'";
  for (const double dt : {1.0 / 60, 1.0 / 240}) {
    for (const int count : {1, 3}) {
      EXPECT_LT(unrest<double>(stack(count, coin, 0.001), dt, 4, 0.002), 1e-9) << count << " " << dt;
#ifndef TARSUS_DOUBLE_ONLY
      EXPECT_LT(unrest<float>(stack(count, coin, 0.001), dt, 4, 0.002), 1e-4) << count << " " << dt;
#endif
    }
  }
}

#ifndef TARSUS_DOUBLE_ONLY
/// Without a margin float rounding decides whether the corners of aligned boxes count as on the side below or off it,
/// and stacks turn by 0.01 to 0.1 rad/s (decision 504).
TEST(Batch, AlignedBoxesComeToRestInFloat) {
  const std::string centimetres = "type='box' size='0.01 0.01 0.01' mass='0.008'";
  const std::string millimetres = "type='box' size='0.001 0.001 0.001' mass='8e-6'";
  EXPECT_LT(unrest<float>(stack(3, centimetres, 0.02), 1.0 / 30, 3), 2e-4);
  EXPECT_LT(unrest<float>(stack(3, millimetres, 0.002), 1.0 / 30, 3), 2e-3);
}

/// The determinant of the moments of inertia of such a ball is not representable in float. Its world must not fail as
/// singular.
TEST(Batch, ABallOfATenthOfAMillimetreRestsInFloat) {
  EXPECT_LT(unrest<float>(stack(1, "type='sphere' size='0.0001' mass='1e-6'", 0.0002), 0.001, 1), 1e-6);
}
#endif

TEST(Batch, AWorldThatIsResetIsAsNew) {
  const std::vector<Model> models = scene_models();
  for (const Scene& scene : scenes(models)) {
    const Model& model = model_for(scene, models);
    const std::vector<unsigned> names{3, 1, 2, 0, 4};
    Batch<double> batch(model, 5, scene.options);
    begin(batch, names);
    for (int i = 0; i < 20; ++i) {
      aim(batch, names, i);
      if (i == 10) batch.qpos_target()[std::size_t(model.nq)] = std::nan("");
      batch.step();
    }
    EXPECT_EQ(batch.bad_worlds(), 1);
    EXPECT_EQ(batch.steps(1), 10);
    const std::uint64_t untouched = batch.state_hash(2);
    const std::vector<std::uint8_t> mask{1, 1, 0, 0, 0};
    std::vector<double> speeds;
    for (const unsigned world : names) {
      const std::vector<double> v = start_speed(model, world);
      speeds.insert(speeds.end(), v.begin(), v.end());
    }
    batch.reset(mask, {}, speeds);
    EXPECT_EQ(batch.bad_worlds(), 0);
    EXPECT_EQ(batch.steps(0), 0);
    EXPECT_EQ(batch.steps(2), 20);
    EXPECT_EQ(batch.state_hash(2), untouched);
    for (int i = 0; i < 20; ++i) aim(batch, names, i), batch.step();
    for (const int w : {0, 1}) {
      EXPECT_EQ(world_of(batch.qpos(), model.nq, w), alone(model, scene.options, names[at(w)], 20).first)
          << scene.name << " world " << w;
    }
  }
}

TEST(Batch, RolloutIsItsSteps) {
  const std::vector<Model> models = scene_models();
  for (const Scene& scene : scenes(models)) {
    const Model& model = model_for(scene, models);
    const int worlds = 7, steps = 15, n = model.nq + model.nv;
    const std::vector<unsigned> names{0, 1, 2, 3, 4, 5, 6};
    BatchOptions options = scene.options;
    options.threads = 2;
    Batch<double> one(model, worlds, scene.options), all(model, worlds, options);
    begin(one, names), begin(all, names);
    std::vector<double> targets, expected, states(std::size_t(steps) * worlds * n);
    for (int i = 0; i < steps; ++i) {
      aim(one, names, i);
      if (i == 5) one.qpos_target()[0] = std::nan("");
      targets.insert(targets.end(), one.qpos_target().begin(), one.qpos_target().end());
      one.step();
      for (int w = 0; w < worlds; ++w) {
        for (const auto& part : {world_of(one.qpos(), model.nq, w), world_of(one.qvel(), model.nv, w)})
          expected.insert(expected.end(), part.begin(), part.end());
      }
    }
    EXPECT_EQ(all.rollout({.steps = steps, .qpos_target = targets, .states = states}), 1);
    EXPECT_EQ(states, expected) << scene.name;
    EXPECT_EQ(all.steps(0), 5);
    EXPECT_EQ(all.state_hash(), one.state_hash());
  }
}

/// Bodies that tumble by more than kBoundAngle in a step. Some of them need the bound on their energy and others keep
/// it without.
TEST(Batch, WhatTumblesBesideOthersIsAsAlone) {
  const Model model = compile(parse_mjcf(
      "<mujoco><worldbody><body pos='0 0 1'><freejoint/><geom type='capsule' pos='-.04 -.04 .03' euler='30 40 50' "
      "size='.046 .094' mass='2.93'/></body></worldbody></mujoco>",
      "capsule.xml", "."));
  BatchOptions options;
  options.step.dt = 1.0 / 120;
  const int worlds = 64;
  Batch<double> all(model, worlds, options), one(model, 1, options);
  std::mt19937 random(4);
  std::normal_distribution<double> normal;
  for (int world = 0; world < worlds; ++world) {
    const double size = world % 3 == 0 ? 3 : world % 3 == 1 ? 30 : 100;
    for (int k = 0; k < 6; ++k) all.qvel()[at(6 * world + k)] = (k < 3 ? 5 : size) * normal(random);
  }
  const AlignedVector<double> start(all.qvel().begin(), all.qvel().end());
  all.step();
  for (int world = 0; world < worlds; ++world) {
    one.reset();
    std::copy_n(&start[at(6 * world)], 6, one.qvel().begin());
    one.step();
    EXPECT_EQ(world_of(one.qvel(), 6, 0), world_of(all.qvel(), 6, world)) << world;
  }
}

/// An activation overflows. No other quantity of the step depends on it.
TEST(Batch, ARolloutStopsWhereItsStepsDo) {
  const Model model = compile(parse_mjcf(
      "<mujoco><worldbody><body><joint name='j'/><geom size='.1'/></body></worldbody><actuator><general joint='j' "
      "dyntype='integrator' gainprm='1' forcerange='-1 1'/></actuator></mujoco>",
      "motor.xml", "."));
  Batch<double> steps(model, 2, {}), rollout(model, 2, {});
  for (Batch<double>* batch : {&steps, &rollout}) batch->ctrl()[1] = 1e308;
  for (int i = 0; i < 400; ++i) steps.step();
  rollout.rollout({.steps = 400});
  EXPECT_EQ(steps.steps(0), 400);
  EXPECT_LT(steps.steps(1), 400);
  EXPECT_EQ(rollout.steps(1), steps.steps(1));
  EXPECT_EQ(rollout.fault(1).text(), steps.fault(1).text());
}

/// During a rollout without recorded states the states stay in lanes. Some worlds fail on the way, by their targets or
/// their speed, and some only the scalar path solves.
TEST(Batch, ARolloutThatNobodyWatchesEndsAsOneThatIs) {
  const Model model = model_of("humanoid.xml");
  const int worlds = 37, steps = 40;
  BatchOptions options;
  options.step.rows.contacts = options.step.rows.joints = true, options.threads = 2;
  options.step.speed_limit = 60;
  options.drives = Drives::uniform(model, 300, 30, 0, 0);
  options.drives->force_limit.assign(std::size_t(model.nv), 150);
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  AlignedVector<double> target, states(std::size_t(steps * worlds * (model.nq + model.nv)));
  for (int i = 0; i < steps * worlds; ++i) target.insert(target.end(), model.qpos0.begin(), model.qpos0.end());
  const auto target_of = [&](int step, int world) { return &target[std::size_t((step * worlds + world) * model.nq)]; };
  target_of(11, 3)[9] = std::numeric_limits<double>::quiet_NaN();
  target_of(20, 30)[12] = std::numeric_limits<double>::infinity();
  for (const int most : {2, 100}) {  // iterations: with two of them the scalar path solves many worlds
    options.step.rows.solve.max_iterations = most;
    Batch<double> watched(model, worlds, options), alone(model, worlds, options);
    for (Batch<double>* batch : {&watched, &alone}) {
      random.seed(5);
      for (int world = 0; world < worlds; ++world) {
        batch->qpos()[std::size_t(world * model.nq + 2)] += 0.2;
        for (int k = 0; k < model.nv; ++k)
          batch->qvel()[std::size_t(world * model.nv + k)] = (world == 17 ? 8 : 2) * normal(random);
      }
    }
    const int bad = watched.rollout({.steps = steps, .qpos_target = target, .states = states});
    EXPECT_GE(bad, 2);
    EXPECT_EQ(alone.rollout({.steps = steps, .qpos_target = target}), bad);
    const auto &one = watched.save(), &other = alone.save();
    EXPECT_EQ(one.qpos, other.qpos);
    EXPECT_EQ(one.qvel, other.qvel);
    EXPECT_EQ(one.steps, other.steps);
    EXPECT_EQ(one.qacc, other.qacc);
    EXPECT_EQ(one.ground_force, other.ground_force);
    for (int world = 0; world < worlds; ++world) {
      EXPECT_EQ(one.faults[std::size_t(world)].status, other.faults[std::size_t(world)].status) << world;
      EXPECT_EQ(one.reports[std::size_t(world)].iterations, other.reports[std::size_t(world)].iterations) << world;
      const WorldCapture a = watched.capture(world), b = alone.capture(world);
      EXPECT_EQ(a.qpos, b.qpos) << world;
      EXPECT_EQ(a.qvel, b.qvel) << world;
      EXPECT_EQ(a.qpos_target.size(), b.qpos_target.size()) << world;
    }
    ASSERT_EQ(watched.rollout({.steps = 3}), bad);  // and they continue alike
    ASSERT_EQ(alone.rollout({.steps = 3}), bad);
    EXPECT_EQ(watched.state_hash(), alone.state_hash());
  }
}

TEST(Batch, HooksComeAroundEachStepOfEachPackWhicheverThreadTakesIt) {
  const Model model = model_of("humanoid.xml");
  BatchOptions options;
  options.step.rows.contacts = options.step.rows.joints = true;
  std::uint64_t expected = 0;
  for (const int threads : {1, 3}) {
    options.threads = threads;
    Batch<double> batch(model, 41, options);
    const int width = batch.pack_width(), packs = (41 + width - 1) / width;
    std::vector<int> calls(41);  // twice per step, and once more between before and after
    Rollout<double> rollout{.steps = 6};
    rollout.before = [&](int thread, int first, int count, int step) {
      EXPECT_TRUE(thread >= 0 && thread < threads);
      for (int w = first; w < first + count; ++w) {
        EXPECT_EQ(calls[at(w)]++, 2 * step);
        // The first pack's worlds lie on the ground and push, the others fly: the first pack's steps take much longer.
        if (step == 0 && w >= width) batch.qpos()[at(w * model.nq + 2)] += 5;
        batch.tau()[at(w * model.nv + 6)] = w + step;
      }
    };
    rollout.after = [&](int, int first, int count, int step) {
      for (int w = first; w < first + count; ++w) {
        EXPECT_EQ(calls[at(w)]++, 2 * step + 1);
        EXPECT_EQ(batch.steps(w), step + 1);
        batch.tau()[at(w * model.nv + 6)] = 0;
      }
    };
    EXPECT_EQ(batch.rollout(rollout), 0);
    for (const int n : calls) EXPECT_EQ(n, 12);
    EXPECT_GT(packs, 3);
    if (threads == 1) expected = batch.state_hash();
    EXPECT_EQ(batch.state_hash(), expected);
  }
}

/// Drives at their limits and hard landings rarely converge within so few iterations. The reports must then give the
/// remaining residual, and nothing may blow up.
template <class R>
void expect_no_more_iterations_than_allowed() {
  const Model model = model_of("humanoid.xml");
  BatchOptions options;
  options.step.rows.contacts = options.step.rows.joints = true;
  options.drives = Drives::uniform(model, 300, 30, 0, 0);
  options.drives->force_limit.assign(at(model.nv), 150);
  const int worlds = 32;
  for (const int most : {3, 8, 3000}) {
    options.step.rows.solve.max_iterations = most;
    Batch<R> batch(model, worlds, options);
    std::mt19937 random(4);
    std::normal_distribution<double> normal;
    for (R& v : batch.qvel()) v = R(4 * normal(random));
    int unsolved = 0;
    for (int step = 0; step < 60; ++step) {
      ASSERT_EQ(batch.step(), 0);
      for (const WorldReport& report : batch.reports()) {
        EXPECT_LE(report.iterations, most + 2);  // one where a range joins, one that bounds impulses
        unsolved += report.unsolved;
        EXPECT_TRUE(report.unsolved || report.residual <= (sizeof(R) == 8 ? 1e-6 : 1e-4)) << report.residual;
      }
    }
    EXPECT_EQ(unsolved > 0, most < 3000) << unsolved;
    for (const R v : batch.qvel()) EXPECT_LT(std::abs(v), 100);
  }
}
TEST(Batch, TakesNoMoreIterationsThanItMay) {
  expect_no_more_iterations_than_allowed<double>();
#ifndef TARSUS_DOUBLE_ONLY
  expect_no_more_iterations_than_allowed<float>();
#endif
}

TEST(Batch, RolloutReadsSensorsAndControls) {
  const char* text = R"(<mujoco><option timestep="0.01"/><worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 0.1"><freejoint/><geom type="sphere" size="0.1" mass="2"/>
      <site name="all" type="sphere" size="0.2"/>
      <body name="arm" pos="0 0 0.3"><joint name="hinge" axis="0 0 1"/><geom type="sphere" size="0.05" mass="0.5"/></body>
    </body></worldbody>
    <actuator><motor name="m" joint="hinge"/></actuator>
    <sensor><jointvel joint="hinge"/><touch site="all"/><clock/></sensor></mujoco>)";
  const Model model = compile(parse_mjcf(text, "ball.xml", "."));
  BatchOptions options;
  options.step.dt = 0.01, options.step.rows.contacts = true;
  const int worlds = 3, steps = 40;
  Batch<double> batch(model, worlds, options);
  std::vector<double> ctrl(std::size_t(steps * worlds)), sensors(std::size_t(steps * worlds * batch.sensor_numbers()));
  for (int i = 0; i < steps * worlds; ++i) ctrl[at(i)] = 0.001 * (i % worlds);
  ASSERT_EQ(batch.sensor_numbers(), 3);
  ASSERT_EQ(batch.rollout({.steps = steps, .ctrl = ctrl, .sensors = sensors}), 0);
  for (int w = 0; w < worlds; ++w) {
    const double* last = &sensors[std::size_t(3 * (worlds * (steps - 1) + w))];
    EXPECT_EQ(last[0], world_of(batch.qvel(), model.nv, w)[6]);
    EXPECT_EQ(last[0] > 0, w > 0);
    EXPECT_NEAR(last[1], 2.5 * 9.81, 1e-3);
    EXPECT_DOUBLE_EQ(last[2], 0.4);
  }
}

/// A body with a bag on top and two legs, which fold to their ranges and touch each other; the feet resist turning.
Model sensing_model(const std::string& more = "") {
  return compile(parse_mjcf(
      std::string(R"(<mujoco><option timestep="0.01"/><default><geom condim="4" friction="0.8 0.02 0.001"/></default>
    <worldbody><geom type="plane" size="0 0 1"/><body name="torso" pos="0 0 0.52"><freejoint/>
      <geom type="box" size="0.1 0.15 0.05" mass="3"/>
      <body pos="0 0.06 -0.05"><joint name="l" axis="1 0 0" range="-20 20" damping="0.5"/>
        <geom type="capsule" fromto="0 0 -0.1 0 0 -0.4" size="0.05" mass="1"/><site name="l" pos="0 0 -0.4" size="0.06"/>
        <site name="hip" pos="0 0 0"/></body>
      <body pos="0 -0.06 -0.05"><joint name="r" axis="1 0 0" range="-20 20" damping="0.5"/>
        <geom type="capsule" fromto="0 0 -0.1 0 0 -0.4" size="0.05" mass="1"/><site name="r" pos="0 0 -0.4" size="0.06"/>
      </body></body>
      <body name="bag" pos="0.35 0 0.42"><freejoint/><geom size="0.04" mass="0.5"/><site name="bag"/></body></worldbody>
    <sensor><touch site="l"/><touch site="r"/><force site="hip"/><torque site="hip"/><jointlimitfrc joint="l"/>
      <jointlimitfrc joint="r"/><contact site="l" num="1" reduce="maxforce" data="found force torque dist pos normal"/>
      <contact body1="torso" num="1" reduce="netforce" data="force torque pos"/><force site="bag"/></sensor>)") +
          more + "</mujoco>",
      "legs.xml", "."));
}

/// The sensor values after each step of a Stepper with many worlds, as [step][world][number].
std::vector<double> stepped_sensors(const Model& model, const StepOptions& options, int worlds, int steps,
                                    std::span<const double> qvel) {
  Data data(model, worlds);
  Stepper<double> stepper(model, data, options);
  stepper.feel();
  for (int w = 0; w < worlds; ++w) data.set(data.qvel, model.nv, w, qvel.subspan(at(w * model.nv), at(model.nv)));
  SensorSet set(model);
  std::vector<double> all, numbers(at(set.numbers()));
  for (int step = 0; step < steps; ++step) {
    EXPECT_EQ(stepper.step(data), 0);
    for (int w = 0; w < worlds; ++w) {
      const auto mine = [&](const AlignedVector<double>& from, int n) {
        std::vector<double> out(at(n));
        data.get(from, n, w, out);
        return out;
      };
      const std::vector<double> q = mine(data.qpos, model.nq), v = mine(data.qvel, model.nv),
                                a = mine(data.qacc, model.nv);
      const StepForces forces = step_forces(model, stepper, data, w);
      set.evaluate({data.time, q, v, a, {}, {}, {}, {}, forces}, numbers);
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
  }
  return all;
}

void expect_sensors_in_lanes(const Model& model) {
  BatchOptions options;
  options.step.dt = 0.01, options.step.rows.contacts = options.step.rows.joints = true;
  options.step.rows.solve.tolerance = 1e-9, options.threads = 2;
  const int worlds = 21, steps = 40;
  Batch<double> batch(model, worlds, options);
  ASSERT_GT(batch.pack_width(), 1);
  std::mt19937 random(3);
  std::uniform_real_distribution<double> any(-1, 1);
  for (double& v : batch.qvel()) v = any(random);
  const AlignedVector<double> start(batch.qvel().begin(), batch.qvel().end());
  const int n = batch.sensor_numbers();
  std::vector<double> sensors(at(steps * worlds * n));
  ASSERT_EQ(batch.rollout({.steps = steps, .sensors = sensors}), 0);
  const auto stepped = stepped_sensors(model, options.step, worlds, steps, start);
  int felt = 0, limits = 0, parted = 0;  // parted: friction occasionally has more than one solution
  for (int w = 0; w < worlds; ++w) {
    Data data(model);
    Stepper<double> stepper(model, data, options.step);
    SensorSet set(model);
    std::copy_n(&start[at(w * model.nv)], model.nv, data.qvel.begin());
    std::vector<double> alone(at(n));
    bool same = true;
    for (int step = 0; step < steps && same; ++step) {
      ASSERT_EQ(stepper.step(data), 0);
      const StepForces forces = step_forces(model, stepper, data);
      const SensorInput input{0.01 * (step + 1), data.qpos, data.qvel, data.qacc, data.ctrl, data.act, {}, {}, forces};
      set.evaluate(input, alone);
      for (int i = 0; i < n; ++i) {
        for (const std::span<const double> all : {std::span<const double>(sensors), std::span<const double>(stepped)}) {
          const double here = all[at((step * worlds + w) * n + i)];
          same = same && std::abs(here - alone[at(i)]) <= 1e-5 * (1 + std::abs(alone[at(i)]));
        }
      }
      parted += !same;
      felt += alone[0] > 0, limits += alone[8] > 0;
    }
  }
  EXPECT_LE(parted, 1);
  EXPECT_GT(felt, 100);
  EXPECT_GT(limits, 10);
}
TEST(Batch, SensorsOfWorldsInLanesFeelWhatThoseOfWorldsAloneDo) {
  expect_sensors_in_lanes(sensing_model());
  expect_sensors_in_lanes(sensing_model(
      "<equality><connect body1='bag' body2='torso' anchor='0 0 0.1'/><joint joint1='l' joint2='r'/></equality>"));
}

/// The forces are those of the accepted step, also where the scalar path repeats a step that the lanes did not solve.
TEST(StepForces, AreThoseThatTheGroundBears) {
  const Model model = model_of("humanoid.xml");
  StepOptions options;
  options.rows.contacts = options.rows.joints = true, options.rows.solve.max_iterations = 2;
  const int worlds = 37;
  Data data(model, worlds);
  Stepper<double> stepper(model, data, options);
  stepper.feel();
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  for (double& v : data.qvel) v = 8 * normal(random);
  int alone = 0, together = 0;
  for (int step = 0; step < 40; ++step) {
    ASSERT_EQ(stepper.step(data), 0);
    for (int w = 0; w < worlds; ++w) {
      std::vector<double> ground(at(3 * model.njoint()));
      stepper.ground_force(w, ground);
      const StepForces forces = step_forces(model, stepper, data, w);
      ASSERT_TRUE(forces.known);
      (&stepper.taker(w) == &stepper ? together : alone) += !forces.contacts.empty();
      for (const TouchPoint& c : forces.contacts) {
        if (c.body_a != 0 && c.body_b != 0) continue;
        const int link = model.bodies[at(c.body_a + c.body_b)].link;
        for (int k = 0; k < 3; ++k) ground[at(3 * link + k)] -= c.body_b == 0 ? c.force[k] : -c.force[k];
      }
      for (const double rest : ground) EXPECT_NEAR(rest, 0, 1e-9);
    }
  }
  EXPECT_GT(alone, 10);
  EXPECT_GT(together, 10);
}

/// The sensors of a failed world read NaN, whichever world its thread stepped last.
TEST(Batch, SensorsOfAWorldThatGoesBadAreItsOwn) {
  const Model model = sensing_model();
  BatchOptions options;
  options.step.dt = 0.01, options.step.rows.contacts = options.step.rows.joints = true;
  for (const bool singly : {false, true}) {
    if (singly) {  // lanes do not limit the force on a free joint
      options.drives = Drives::uniform(model, 1, 1, 1, 1);
      options.drives->force_limit.assign(at(model.nv), 1e6);
    }
    Batch<double> batch(model, 3, options);
    ASSERT_EQ(batch.pack_width() == 1, singly);
    ASSERT_EQ(batch.rollout({.steps = 30}), 0);
    const int n = batch.sensor_numbers();
    std::vector<double> sensors(at(3 * n));
    ASSERT_EQ(batch.rollout({.sensors = sensors}), 0);
    EXPECT_GT(sensors[at(n)], 0);
    batch.tau()[at(model.nv)] = std::numeric_limits<double>::quiet_NaN();
    ASSERT_EQ(batch.rollout({.sensors = sensors}), 1);
    EXPECT_TRUE(std::isnan(sensors[at(n)]));
    EXPECT_GT(sensors[0], 0);
  }
}

TEST(Batch, GroundForcesCarryTheWeight) {
  const Model model = model_of("humanoid.xml");
  BatchOptions options;
  options.step.rows.contacts = options.step.rows.joints = true;
  options.drives = Drives::uniform(model, 1000, 100, 0, 0);
  Batch<double> batch(model, 3, options);
  ASSERT_EQ(batch.rollout({.steps = 120}), 0);
  for (int w = 0; w < 3; ++w) {
    double weight = 0;
    for (int link = 0; link < model.njoint(); ++link) {
      const double* f = &batch.ground_force()[std::size_t(3 * (w * model.njoint() + link))];
      weight += f[2];
      const bool foot = link == model.bodies[model.body_id("left_foot")].link ||
                        link == model.bodies[model.body_id("right_foot")].link;
      EXPECT_EQ(f[2] > 0, foot) << link;
    }
    EXPECT_NEAR(weight, model.total_mass() * 9.81, 0.05 * model.total_mass() * 9.81);
    EXPECT_GT(batch.reports()[at(w)].touching, 1);
    EXPECT_LT(batch.reports()[at(w)].residual, 1e-6);
  }
  std::vector<char> touched(at(model.njoint()), 0);
  for (const LinkContact& c : batch.contacts(1)) {
    EXPECT_EQ(c.b, -1);
    EXPECT_NEAR(c.point.normal.z, 1, 1e-12);
    EXPECT_NEAR(c.point.position.z, 0, 0.01);
    touched[at(c.a)] = 1;
  }
  for (int link = 0; link < model.njoint(); ++link)
    EXPECT_EQ(bool(touched[at(link)]), batch.ground_force()[at(3 * (model.njoint() + link) + 2)] > 0) << link;
}

TEST(Batch, AStepAllocatesNothing) {
  std::vector<Model> models = scene_models();
  std::vector<Scene> list = scenes(models);
  // The rows of a four-bar are dependent. Finding their rank allocates where there are no other rows.
  std::erase_if(list, [&](const Scene& s) {
    return s.file != models[0].name && std::string(s.name).find("and") == std::string::npos;
  });
  for (const Scene& scene : list) {
    BatchOptions options = scene.options;
    options.threads = 2;
    Batch<double> batch(model_for(scene, models), 20, options);
    std::vector<unsigned> names;
    for (unsigned w = 0; w < 20; ++w) names.push_back(w);
    begin(batch, names);
    for (int i = 0; i < 300; ++i) {
      aim(batch, names, i);
      ASSERT_EQ(batch.step(), 0);
    }
    const long before = allocations;
    batch.rollout({.steps = 30});
    for (int i = 0; i < 5; ++i) batch.step();
    EXPECT_EQ(allocations - before, 0) << scene.name;
  }
}
TEST(Batch, AStepWithTendonsAndLoopsAllocatesNothing) {
  const Model model = compile(parse_mjcf(R"(<mujoco><option density="900" viscosity=".1"/><worldbody>
    <geom type="plane" size="0 0 1"/><site name="w" pos="0 0 1"/><body name="a" pos="0 0 .2"><freejoint/>
      <geom type="box" size=".1 .1 .1"/><body pos=".2 0 0"><joint name="j" axis="0 1 0" stiffness="1 1"/><geom size=".05" pos=".1 0 0"/>
        <site name="s" pos=".1 0 0"/></body><body pos="-.2 0 0"><joint name="k" axis="0 1 0"/><geom size=".05" pos="-.1 0 0"/></body>
    </body></worldbody>
    <tendon><spatial name="t" stiffness="20" range="0 1" limited="true"><site site="w"/><site site="s"/></spatial></tendon>
    <equality><joint joint1="j" joint2="k"/></equality>
    <actuator><position tendon="t" kp="9"/><muscle joint="k" lengthrange="-1 1"/></actuator></mujoco>)",
                                         "m", "."));
  BatchOptions options;
  options.step.rows.contacts = options.step.rows.joints = true;
  Batch<double> batch(model, 20, options);
  ASSERT_GT(batch.pack_width(), 1);
  for (std::size_t i = 0; i < batch.qvel().size(); ++i) batch.qvel()[i] = std::sin(double(i));
  batch.rollout({.steps = 300});
  const long before = allocations;
  ASSERT_EQ(batch.rollout({.steps = 30}), 0);
  EXPECT_EQ(allocations - before, 0);
}

TEST(Batch, MeasuresAndPushes) {
  const Model model = model_of("humanoid.xml");
  BatchOptions options;
  options.threads = 2;
  Batch<double> batch(model, 5, options);
  begin(batch, {0, 1, 2, 3, 4});
  ASSERT_EQ(batch.rollout({.steps = 10}), 0);
  const int n = model.nbody(), head = model.body_id("head");
  std::vector<double> position(std::size_t(15 * n)), orientation(std::size_t(20 * n)), velocity(std::size_t(30 * n)),
      energies(15), com(30);
  batch.measure({position, orientation, velocity, energies, com});
  const std::vector<double> force{3, -2, 5}, point{0.3, 0.2, 1.1};
  const std::vector<std::uint8_t> mask{0, 1, 1, 0, 0};
  batch.apply_force(head, force, point, mask);
  for (int w = 0; w < 5; ++w) {
    Data one(model);
    const std::vector<double> q = world_of(batch.qpos(), model.nq, w), v = world_of(batch.qvel(), model.nv, w);
    std::copy(q.begin(), q.end(), one.qpos.begin()), std::copy(v.begin(), v.end(), one.qvel.begin());
    kinematics<double>(model, one, one.qpos, one.qvel);
    const Energy e = energy<double>(model, one, one.qpos, one.qvel);
    EXPECT_EQ(energies[at(3 * w)], e.kinetic);
    EXPECT_EQ(energies[at(3 * w + 1)], e.potential);
    const Momentum m = momentum(model, one);
    for (int k = 0; k < 3; ++k) {
      EXPECT_EQ(com[at(6 * w + k)], m.com[k]);
      EXPECT_NEAR(com[at(6 * w + 3 + k)], m.linear[k] / m.mass, 1e-12);
      EXPECT_EQ(position[at(3 * (w * n + head) + k)], body_pose(model, one, head).p[k]);
      EXPECT_EQ(velocity[at(6 * (w * n + head) + k)], body_velocity(model, one, head).w[k]);
    }
    const double* quat = &orientation[at(4 * (w * n + head))];
    const Mat3d R = rotation(Quatd{quat[0], quat[1], quat[2], quat[3]}), expected = body_pose(model, one, head).R;
    EXPECT_NEAR(R.xx, expected.xx, 1e-12);
    EXPECT_NEAR(R.zy, expected.zy, 1e-12);
    // The generalised force by the point's Jacobian.
    AlignedVector<double> J(std::size_t(6) * model.nv);
    jacobian<double>(model, one, head, point, J);
    for (int i = 0; i < model.nv; ++i) {
      double f = 0;
      for (int k = 0; k < 3; ++k) f += mask[at(w)] * force[at(k)] * J[at((3 + k) * model.nv + i)];
      EXPECT_NEAR(batch.tau()[at(w * model.nv + i)], f, 1e-12);
    }
  }
}

TEST(Batch, MemoryGoesThroughBytes) {
  const std::vector<Model> models = scene_models();
  const Scene scene = scenes(models)[1];
  Batch<double> batch(models[0], 3, scene.options);
  begin(batch, {0, 1, 2});
  for (int i = 0; i < 50; ++i) aim(batch, {0, 1, 2}, i), batch.step();
  BatchState<double> state = batch.save();
  const std::vector<std::uint8_t> bytes = to_bytes<double>(state.memory);
  std::vector<StepMemory<double>> memory(state.memory.size());
  from_bytes<double>(bytes, memory);
  state.memory = memory;
  Batch<double> other(models[0], 3, scene.options);
  other.restore(state);
  for (int i = 50; i < 80; ++i) aim(batch, {0, 1, 2}, i), batch.step(), aim(other, {0, 1, 2}, i), other.step();
  EXPECT_EQ(other.state_hash(), batch.state_hash());
  const std::span<const std::uint8_t> all(bytes);
  for (const std::size_t length : {std::size_t(0), std::size_t(7), bytes.size() / 2, bytes.size() - 1})
    EXPECT_THROW(from_bytes<double>(all.first(length), memory), ValueError);
  // Another layout needs another kBytesVersion. These are the sizes on 64-bit systems.
  EXPECT_EQ(sizeof(TermMemory::Entry), 24U);
  EXPECT_EQ(sizeof(WorldReport), 56U);
  std::size_t expected = 0;
  for (const StepMemory<double>& m : state.memory) {
    expected += 3 * 8 + (m.drive_demand.size() + m.lane_terms.size()) * 8;
    for (const TermMemory& terms : m.terms) {
      expected += 8 + 4 + 8 + 24 * terms.entries.size() + 8 + 8 * terms.numbers.size() + 8;
    }
  }
  EXPECT_EQ(bytes.size(), expected);
  std::vector<StepMemory<double>> two(state.memory.size() + 1);
  EXPECT_THROW(from_bytes<double>(bytes, two), ValueError);
}

TEST(Batch, FourThousandHumanoidsFitIntoHalfAGigabyte) {
  const Model model = model_of("humanoid.xml");
  BatchOptions options;
  options.threads = 2, options.step.rows.contacts = options.step.rows.joints = true;
  options.drives = Drives::uniform(model, 300, 30, 0, 0);
  options.drives->force_limit.assign(std::size_t(model.nv), 100);
  const long before = held_bytes;
  const auto began = std::chrono::steady_clock::now();
  Batch<double> batch(model, 4096, options);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  EXPECT_EQ(batch.rollout({.steps = 2}), 0);
  const double mebibytes = double(held_bytes - before) / (1 << 20);
  EXPECT_LT(mebibytes, 512);
  RecordProperty("mebibytes", std::to_string(mebibytes));
  RecordProperty("seconds_to_make", std::to_string(seconds));
}

TEST(Batch, WorldsThatDoNotExistAreNamed) {
  const Model model = model_of("humanoid.xml");
  BatchOptions options;
  options.step.rows.contacts = true;
  Batch<double> batch(model, 5, options);
  batch.step();
  const WorldCapture capture = batch.capture(4);
  const std::uint64_t before = batch.state_hash();
  for (const int world : {-1, 5, 9}) {
    EXPECT_THROW(batch.status(world), ValueError);
    EXPECT_THROW(batch.fault(world), ValueError);
    EXPECT_THROW(batch.steps(world), ValueError);
    EXPECT_THROW(batch.time(world), ValueError);
    EXPECT_THROW(batch.reset_world(world), ValueError);
    EXPECT_THROW(batch.capture(world), ValueError);
    EXPECT_THROW(batch.put(world, capture), ValueError);
    EXPECT_THROW(batch.contacts(world), ValueError);
    EXPECT_THROW(batch.state_hash(world), ValueError);
  }
  EXPECT_EQ(batch.state_hash(), before);
  WorldCapture bad = capture;
  bad.steps = -3;
  EXPECT_THROW(batch.put(0, bad), ValueError);
  EXPECT_NO_THROW(batch.put(0, capture));
}

TEST(Batch, StatesAndKeysOfOtherSizesAreNamed) {
  const Model model = compile(parse_mjcf(R"(<mujoco><worldbody>
    <body><joint name="a" axis="0 1 0"/><geom size=".1" pos="1 0 0"/></body><body mocap="true"/></worldbody>
    <actuator><motor joint="a"/><general joint="a" dyntype="filter" dynprm="0.1"/></actuator></mujoco>)",
                                         "key", {}));
  Batch<double> batch(model, 3, {});
  using List = std::vector<double> KeyframeSpec::*;
  for (const auto& [name, list, size] : {std::tuple<const char*, List, int>("qpos", &KeyframeSpec::qpos, 1),
                                         {"qvel", &KeyframeSpec::qvel, 1},
                                         {"act", &KeyframeSpec::act, 1},
                                         {"ctrl", &KeyframeSpec::ctrl, 2},
                                         {"mocap_position", &KeyframeSpec::mocap_position, 3},
                                         {"mocap_orientation", &KeyframeSpec::mocap_orientation, 4}}) {
    KeyframeSpec key;
    key.*list = std::vector<double>(at(size), 0.5);
    EXPECT_NO_THROW(batch.reset_to(key)) << name;
    for (const int other : {size - 1, size + 1, 3 * size}) {
      if (other == 0) continue;
      key.*list = std::vector<double>(at(other), 1);
      EXPECT_THROW(batch.reset_to(key), ShapeError) << name << ' ' << other;
    }
  }
  batch.reset();
  auto state = batch.save();
  state.faults.pop_back();
  EXPECT_THROW(batch.restore(state), ShapeError);
  state = batch.save();
  state.reports.pop_back();
  EXPECT_THROW(batch.restore(state), ShapeError);
}

TEST(Batch, WhatDoesNotFitIsNamed) {
  const Model model = model_of("humanoid.xml");
  BatchOptions options;
  EXPECT_THROW(Batch<double>(model, 0, options), ValueError);
  EXPECT_THROW(Batch<double>(model, -3, options), ValueError);
  options.threads = 0;
  EXPECT_THROW(Batch<double>(model, 2, options), ValueError);
  options.threads = 1, options.step.dt = -1;
  EXPECT_THROW(Batch<double>(model, 2, options), ValueError);
  options.step.dt = 0.01;
  options.drives = Drives::uniform(model);
  options.drives->kp[3] = std::nan("");
  EXPECT_THROW(Batch<double>(model, 2, options), ValueError);
  options.drives.reset();
  Batch<double> batch(model, 2, options), three(model, 3, options);
  const std::vector<std::uint8_t> mask(3);
  const std::vector<double> row(std::size_t(model.nq) + 1);
  EXPECT_THROW(batch.reset(mask), ShapeError);
  EXPECT_THROW(batch.reset({}, row), ShapeError);
  EXPECT_THROW(batch.reset({}, {}, row), ShapeError);
  EXPECT_THROW(batch.restore(three.save()), ShapeError);
  EXPECT_THROW(batch.rollout({.steps = -1}), ValueError);
  EXPECT_THROW(batch.rollout({.steps = 2, .qpos_target = row}), ValueError);  // there are no drives
  EXPECT_THROW(batch.rollout({.steps = 2, .qvel_target = row}), ValueError);
  options.drives = Drives::uniform(model);
  Batch<double> driven(model, 2, options);
  EXPECT_THROW(driven.rollout({.steps = 2, .qpos_target = row}), ShapeError);
  EXPECT_THROW(driven.rollout({.steps = 2, .ctrl = row}), ValueError);  // the drives act in the actuators' place
  EXPECT_THROW(Batch<double>(model, std::numeric_limits<int>::max(), options), ValueError);
  std::vector<double> out(5);
  EXPECT_THROW(batch.rollout({.steps = 2, .states = out}), ShapeError);
}

// -- parameters per world ---------------------------------------------------------------------------------------------

/// Positive numbers about 1 that depend on the seed alone.
std::vector<double> factors(int n, unsigned seed) {
  std::vector<double> out = noise(n, seed, 0.4);
  for (double& x : out) x += 1;
  return out;
}
constexpr WorldParameter kAllParameters[] = {WorldParameter::mass_scale,     WorldParameter::damping_scale,
                                             WorldParameter::armature_scale, WorldParameter::friction_loss_scale,
                                             WorldParameter::com_offset,     WorldParameter::gravity,
                                             WorldParameter::friction_scale, WorldParameter::kp_scale,
                                             WorldParameter::kd_scale,       WorldParameter::force_scale};
/// One world's values of a parameter. A rotation uses those of its first DoF.
std::vector<double> own_numbers(const Model& model, WorldParameter which, unsigned world) {
  if (which == WorldParameter::gravity) return {0.3 * world, -0.2, -9.81 + 0.5 * world};
  if (which == WorldParameter::com_offset) return noise(numbers(model, which), 100 * world + 3, 0.01);
  return factors(numbers(model, which), 100 * world + unsigned(which) + 5);
}
bool acts(WorldParameter which, const Model& model, const BatchOptions& options) {
  if (which == WorldParameter::friction_scale) return options.step.rows.contacts && !ContactGeometry(model).empty();
  if (which == WorldParameter::friction_loss_scale) return options.step.rows.joints;
  return which != WorldParameter::force_scale || options.drives->limited();
}
WorldParameters only(WorldParameter which, const std::vector<double>& numbers) {
  WorldParameters all;
  all[which] = numbers;
  return all;
}
void set_own(Batch<double>& batch, const std::vector<unsigned>& names) {
  for (const WorldParameter which : kAllParameters) {
    if (!acts(which, batch.model(), batch.options())) continue;
    std::vector<double> all;
    for (const unsigned world : names) {
      const std::vector<double> own = own_numbers(batch.model(), which, world);
      all.insert(all.end(), own.begin(), own.end());
    }
    batch.set_parameters(only(which, all));
  }
}

/// The model with one world's parameters written into its specification.
Model edited(const Model& model, const WorldParameters& own) {
  ModelSpec spec = model.spec;
  const auto of = [&](WorldParameter which, std::size_t i, double otherwise = 1) {
    return own[which].empty() ? otherwise : own[which].at(i);
  };
  const auto vector = [&](WorldParameter which, std::size_t i, const Vec3d& otherwise) {
    return Vec3d{of(which, 3 * i, otherwise.x), of(which, 3 * i + 1, otherwise.y), of(which, 3 * i + 2, otherwise.z)};
  };
  spec.option.gravity = vector(WorldParameter::gravity, 0, spec.option.gravity);
  std::size_t joint = 0, geom = 0;
  for (std::size_t b = 0; b < spec.bodies.size(); ++b) {
    BodySpec& body = spec.bodies[b];
    if (body.inertial) {
      const double mass = of(WorldParameter::mass_scale, b);
      body.inertial->mass *= mass, body.inertial->inertia = body.inertial->inertia * mass;
      body.inertial->com += vector(WorldParameter::com_offset, b, {0, 0, 0});
    }
    for (JointSpec& j : body.joints) {
      j.damping *= of(WorldParameter::damping_scale, joint), j.armature *= of(WorldParameter::armature_scale, joint);
      j.friction_loss *= of(WorldParameter::friction_loss_scale, joint), ++joint;
    }
    for (GeomSpec& g : body.geoms) g.friction[0] *= of(WorldParameter::friction_scale, geom++);
  }
  return compile(std::move(spec));
}
Model own_model(const Model& model, unsigned world) {
  WorldParameters own;
  for (const WorldParameter which :
       {WorldParameter::mass_scale, WorldParameter::damping_scale, WorldParameter::armature_scale,
        WorldParameter::friction_loss_scale, WorldParameter::com_offset, WorldParameter::gravity,
        WorldParameter::friction_scale})
    own[which] = own_numbers(model, which, world);
  return edited(model, own);
}
BatchOptions own_options(const Model& model, const BatchOptions& options, unsigned world) {
  BatchOptions out = options;
  const std::vector<double> kp = own_numbers(model, WorldParameter::kp_scale, world),
                            kd = own_numbers(model, WorldParameter::kd_scale, world),
                            force = own_numbers(model, WorldParameter::force_scale, world);
  for (std::size_t i = 0; i < kp.size(); ++i) {
    out.drives->kp[i] *= kp[i], out.drives->kd[i] *= kd[i];
    if (out.drives->limited()) out.drives->force_limit[i] *= force[i];
  }
  return out;
}

/// Models with damping, springs, armature and dry friction, which the humanoid's file does not have, and a slope that
/// feet slip on.
std::vector<Model> models_with_damping() {
  std::vector<Model> models;
  for (const Model& model : scene_models()) {
    ModelSpec spec = model.spec;
    for (BodySpec& body : spec.bodies) {
      for (JointSpec& joint : body.joints) {
        joint.damping += joint.type == JointType::free ? 0 : 0.5;
        joint.stiffness += joint.type == JointType::free ? 0 : 20;
        joint.armature += joint.type == JointType::free ? 0 : 0.02;
        joint.friction_loss += joint.type == JointType::free ? 0 : 0.7;
      }
      for (GeomSpec& geom : body.geoms) geom.friction[0] *= 0.3;
    }
    models.push_back(compile(std::move(spec)));
  }
  return models;
}

TEST(BatchParameters, AWorldIsAsOneOfAModelWithThoseNumbers) {
  const std::vector<Model> models = models_with_damping();
  const int steps = 40;
  for (const Scene& scene : scenes(models)) {
    const Model& model = model_for(scene, models);
    std::vector<State> expected;
    for (unsigned world = 0; world < 11; ++world) {
      const Model own = own_model(model, world);
      expected.push_back(alone(own, own_options(model, scene.options, world), world, steps));
    }
    for (const auto& [worlds, threads, backwards] : {std::tuple{11, 2, false}, std::tuple{5, 1, true}}) {
      BatchOptions options = scene.options;
      options.threads = threads;
      Batch<double> batch(model, worlds, options);
      const std::vector<unsigned> names = names_of(worlds, backwards);
      begin(batch, names), set_own(batch, names);
      for (int i = 0; i < steps; ++i) {
        aim(batch, names, i);
        ASSERT_EQ(batch.step(), 0) << scene.name << ": " << batch.fault(0).text();
      }
      expect_worlds(batch, names, expected, scene.name);
      Batch<double> plain(model, worlds, options);
      begin(plain, names);
      for (int i = 0; i < steps; ++i) aim(plain, names, i), plain.step();
      EXPECT_NE(plain.state_hash(), batch.state_hash()) << scene.name;
    }
  }
}

/// To the bit, also in float, where worlds are stepped individually.
template <class R>
void expect_masses_of_one_change_nothing() {
  const Model model = compile(parse_mjcf(
      "<mujoco><worldbody><geom type='plane' size='5 5 1'/><body pos='0 0 .09'><joint type='free' frictionloss='.1'/>"
      "<geom type='box' size='.1 .13 .09' mass='1.37'/><body pos='.15 0 0'><joint type='slide' axis='1 0 0' "
      "range='-.1 .001' limited='true'/><geom type='box' size='.03 .04 .05' "
      "mass='.713'/></body></body></worldbody></mujoco>",
      "boxes.xml", "."));
  BatchOptions options;
  options.step.rows.contacts = options.step.rows.joints = true;
  const int worlds = 20;
  Batch<R> plain(model, worlds, options), own(model, worlds, options);
  EXPECT_EQ(plain.pack_width(), 1);
  own.set_parameters(only(WorldParameter::mass_scale, std::vector<double>(at(worlds * model.nbody()), 1.0)));
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  for (std::size_t i = 0; i < plain.qvel().size(); ++i) plain.qvel()[i] = own.qvel()[i] = R(2 * normal(random));
  for (int step = 0; step < 5; ++step) plain.step(), own.step();
  EXPECT_EQ(plain.state_hash(), own.state_hash());
}
TEST(BatchParameters, MassesOfOneChangeNothing) {
  expect_masses_of_one_change_nothing<double>();
#ifndef TARSUS_DOUBLE_ONLY
  expect_masses_of_one_change_nothing<float>();
#endif
}

/// Steps worlds with their own parameters beside one another, and each alone in a batch of its own model, all from
/// random speeds, and expects the same velocities.
/// @param of the parameters of a world
template <class R>
void expect_each_as_its_model(const Model& model, const BatchOptions& options, int worlds, double speed,
                              const std::function<WorldParameters(int world)>& of) {
  WorldParameters all;
  std::vector<std::unique_ptr<Model>> models;
  std::vector<std::unique_ptr<Batch<R>>> alone;
  for (int w = 0; w < worlds; ++w) {
    const WorldParameters own = of(w);
    for (int k = 0; k < kWorldParameters; ++k)
      all.values[at(k)].insert(all.values[at(k)].end(), own.values[at(k)].begin(), own.values[at(k)].end());
    models.push_back(std::make_unique<Model>(edited(model, own)));
    alone.push_back(std::make_unique<Batch<R>>(*models.back(), 1, options));
    const std::vector<double> v = noise(model.nv, 3 + unsigned(w), speed);
    std::copy(v.begin(), v.end(), alone.back()->qvel().begin());
  }
  Batch<R> batch(model, worlds, options), plain(model, worlds, options);
  batch.set_parameters(all);
  for (int w = 0; w < worlds; ++w) {
    for (Batch<R>* to : {&batch, &plain})
      std::copy_n(alone[at(w)]->qvel().begin(), model.nv, to->qvel().begin() + w * model.nv);
  }
  for (int step = 0; step < 40; ++step) {
    ASSERT_EQ(batch.step(), 0) << batch.fault(0).text();
    plain.step();
    for (int w = 0; w < worlds; ++w) {
      ASSERT_EQ(alone[at(w)]->step(), 0);
      for (int i = 0; i < model.nv; ++i) {
        ASSERT_EQ(batch.qvel()[at(w * model.nv + i)], alone[at(w)]->qvel()[at(i)])
            << "step " << step << ", world " << w << ", DoF " << i;
      }
    }
  }
  EXPECT_NE(plain.state_hash(), batch.state_hash());
}

/// What hangs is stiff by the masses and the gravity of the world, in lanes beside worlds in which nothing hangs. Of a
/// chain on a <connect> the wrong masses change the first step by 25 rad/s.
TEST(BatchParameters, WhatHangsHasTheMassesAndTheGravityOfItsWorld) {
  const auto chain = [](bool on_a_loop) {
    return compile(parse_mjcf(
        std::string("<mujoco><worldbody><body name='a' pos='0 0 2'>") +
            (on_a_loop ? "<freejoint/>" : "<joint type='ball'/>") +
            "<geom type='capsule' fromto='0 0 0 0 0 -.3' size='.03' contype='0' density='300'/><body pos='0 0 -.3'>"
            "<joint type='ball' armature='1e-3'/><geom type='capsule' fromto='0 0 0 0 0 -.3' size='.03' contype='0' "
            "density='300'/><body pos='0 0 -.3'><joint type='ball'/><geom type='box' size='.2 .15 .1' pos='0 0 -.2' "
            "contype='0' density='3000'/></body></body></body></worldbody>" +
            (on_a_loop ? "<equality><connect body1='a' anchor='0 0 0'/></equality></mujoco>" : "</mujoco>"),
        "chain", "."));
  };
  for (const bool on_a_loop : {true, false}) {
    const Model model = chain(on_a_loop);
    const auto own = [&](int world) {
      WorldParameters out;
      out[WorldParameter::mass_scale] = std::vector<double>(at(model.nbody()), 1);
      out[WorldParameter::gravity] = {0, 0, -9.81};
      out[WorldParameter::com_offset] = std::vector<double>(at(3 * model.nbody()), 0);
      out[WorldParameter::armature_scale] = std::vector<double>(at(model.njoint()), 1);
      if (world % 6 == 1) out[WorldParameter::mass_scale][3] = 5;
      if (world % 6 == 2) out[WorldParameter::mass_scale][3] = 0.02;
      if (world % 6 == 3) out[WorldParameter::gravity] = {0.1, 0, -0.2};
      if (world % 6 == 4) out[WorldParameter::gravity] = {3, 0, -30}, out[WorldParameter::armature_scale][1] = 40;
      if (world % 6 == 5) out[WorldParameter::com_offset] = noise(3 * model.nbody(), unsigned(world), 0.1);
      return out;
    };
    BatchOptions options;
    options.step.dt = 1.0 / 60;
    if (!on_a_loop) {
      const auto hangs = [&](int w) { return HangingLinks<double>(edited(model, own(w)), 1.0 / 60, nullptr).any(); };
      EXPECT_TRUE(hangs(1) && !hangs(2) && !hangs(3));
    }
    for (const bool rows : {false, true}) {
      options.step.rows.contacts = options.step.rows.joints = rows;
      for (const int worlds : {13, 3}) expect_each_as_its_model<double>(model, options, worlds, 2, own);
#ifndef TARSUS_DOUBLE_ONLY
      expect_each_as_its_model<float>(model, options, 7, 2, own);
#endif
    }
  }
}

/// A ball joint at the end of its range holds a light link by the masses of the world (0.2 rad/s in the first step).
TEST(BatchParameters, RangesHoldTheLightLinksOfTheirWorld) {
  const Model model = compile(parse_mjcf(
      "<mujoco><worldbody><body pos='0 0 1'><joint type='ball' range='0 20' limited='true'/><geom type='box' "
      "size='.1 .03 .04' pos='.1 .02 0' contype='0' mass='1'/><body pos='.2 0 0'><joint axis='0 1 0' damping='.1'/>"
      "<geom type='box' size='.1 .02 .04' pos='.1 0 .03' contype='0' mass='.6'/></body></body></worldbody></mujoco>",
      "limb", "."));
  BatchOptions options;
  options.step.dt = 0.01, options.step.rows.joints = true;
  const auto own = [&](int world) {
    WorldParameters out;
    out[WorldParameter::mass_scale] = {1, world % 3 == 1 ? 0.5 : 1, world % 3 == 2 ? 1.0 : 3};
    out[WorldParameter::com_offset] = noise(3 * model.nbody(), unsigned(world), 0.02);
    return out;
  };
  for (const int worlds : {12, 3}) expect_each_as_its_model<double>(model, options, worlds, 3, own);
}

/// A wheel whose centre of mass is off its axle is not round, beside worlds in which it is.
TEST(BatchParameters, WheelsAreRoundByTheMassesOfTheirWorld) {
  for (const bool on_a_loop : {true, false}) {
    const Model model = compile(parse_mjcf(
        std::string("<mujoco><worldbody><body name='a' pos='0 0 1'>") +
            (on_a_loop ? "<joint type='ball'/>" : "<joint type='ball' range='0 20' limited='true'/>") +
            "<inertial pos='.3 0 0' mass='.5' diaginertia='.002 .003 .004'/><body pos='.3 0 0'><joint axis='0 0 1'/>"
            "<inertial pos='0 0 0' mass='1' diaginertia='.004 .004 .006'/></body></body></worldbody>" +
            (on_a_loop ? "<equality><connect body1='a' anchor='.5 0 0'/></equality></mujoco>" : "</mujoco>"),
        "wheel", "."));
    const auto own = [&](int world) {
      WorldParameters out;
      out[WorldParameter::com_offset] = std::vector<double>(at(3 * model.nbody()), 0);
      if (world % 3 > 0) out[WorldParameter::com_offset][7] = 0.02 * (world % 3 - 1.5);
      return out;
    };
    BatchOptions options;
    options.step.dt = 0.01, options.step.rows.joints = true;
    for (const int worlds : {12, 3}) expect_each_as_its_model<double>(model, options, worlds, 30, own);
  }
}

/// A tendon's equality that no pose satisfies pulls the joints by the masses of the world.
TEST(BatchParameters, EqualitiesOfTendonsLookAheadByTheMassesOfTheirWorld) {
  const Model model = compile(parse_mjcf(
      "<mujoco><worldbody><site name='post' pos='0 .3 1.2'/><body pos='0 0 1'><joint axis='0 1 0'/><geom "
      "type='capsule' "
      "fromto='0 0 0 .3 0 0' size='.03'/><body pos='.3 0 0'><joint axis='0 1 0'/><geom type='capsule' "
      "fromto='0 0 0 .3 0 0' size='.03'/><site name='tip' pos='.3 0 0'/></body></body></worldbody><tendon><spatial "
      "name='t' width='.01'><site site='post'/><site site='tip'/></spatial></tendon><equality><tendon tendon1='t' "
      "polycoef='.3 0 0 0 0'/></equality></mujoco>",
      "tendon", "."));
  const auto own = [&](int world) {
    WorldParameters out;
    out[WorldParameter::mass_scale] = {1, world % 3 == 1 ? 8.0 : 1, world % 3 == 2 ? 0.1 : 1};
    return out;
  };
  BatchOptions options;
  options.step.dt = 0.01;
  for (const int worlds : {12, 3}) expect_each_as_its_model<double>(model, options, worlds, 1, own);
}

TEST(BatchParameters, EachOfThemActs) {
  const Model model = models_with_damping()[0];
  const BatchOptions options = scenes(scene_models())[1].options;  // contacts and limits
  const auto after = [&](const std::function<void(Batch<double>&)>& change) {
    Batch<double> batch(model, 3, options);
    begin(batch, {0, 0, 0}), change(batch);
    for (int i = 0; i < 40; ++i) aim(batch, {0, 0, 0}, i), batch.step();
    return std::vector<std::uint64_t>{batch.state_hash(0), batch.state_hash(1), batch.state_hash(2)};
  };
  const std::vector<std::uint64_t> plain = after([](Batch<double>&) {});
  for (const WorldParameter which : kAllParameters) {
    const int n = numbers(model, which);
    const std::vector<std::uint64_t> one = after([&](Batch<double>& batch) {
      const std::vector<double> own = own_numbers(model, which, 1);
      std::vector<double> all(std::size_t(3) * at(n), 1);
      std::copy(own.begin(), own.end(), all.begin() + n);
      batch.set_parameters(only(which, all), std::vector<std::uint8_t>{0, 1, 0});
    });
    EXPECT_EQ(one[0], plain[0]) << name(which);
    EXPECT_NE(one[1], plain[1]) << name(which);
    EXPECT_EQ(one[2], plain[2]) << name(which);
  }
  EXPECT_EQ(after([&](Batch<double>& batch) {
              set_own(batch, {1, 2, 3});
              batch.clear_parameters();
            }),
            plain);
}

TEST(BatchParameters, SavedCopiedAndKeptByResets) {
  const std::vector<Model> models = models_with_damping();
  for (const Scene& scene : scenes(models)) {
    const Model& model = model_for(scene, models);
    const std::vector<unsigned> names{0, 1, 2, 3, 4};
    Batch<double> batch(model, 5, scene.options);
    begin(batch, names), set_own(batch, names);
    for (int i = 0; i < 10; ++i) aim(batch, names, i), batch.step();
    const BatchState<double> saved = batch.save();
    Batch<double> copy(batch), elsewhere(model, 5, scene.options);
    elsewhere.restore(saved);
    const auto go_on = [&](Batch<double>& b) {
      for (int i = 10; i < 30; ++i) aim(b, names, i), b.step();
      return b.state_hash();
    };
    const std::uint64_t expected = go_on(batch);
    EXPECT_EQ(go_on(copy), expected) << scene.name;
    EXPECT_EQ(go_on(elsewhere), expected) << scene.name;
    batch.reset();
    begin(batch, names);
    for (int i = 0; i < 10; ++i) aim(batch, names, i), batch.step();
    EXPECT_EQ(world_of(batch.qpos(), model.nq, 3), world_of(saved.qpos, model.nq, 3)) << scene.name;
    BatchState<double> broken = saved;
    broken.parameters[WorldParameter::gravity].pop_back();
    EXPECT_THROW(elsewhere.restore(broken), ShapeError);
  }
}

TEST(BatchParameters, EnergyAndMomentumAreTheWorldsOwn) {
  const Model model = models_with_damping()[0];
  Batch<double> batch(model, 2, scenes(scene_models())[2].options);
  begin(batch, {0, 1}), set_own(batch, {3, 4});
  std::vector<double> energies(6), com(12);
  batch.measure({.energy = energies, .com = com});
  for (int w = 0; w < 2; ++w) {
    const Model own = own_model(model, unsigned(3 + w));
    Data one(own);
    const std::vector<double> v = world_of(batch.qvel(), model.nv, w);
    std::copy(v.begin(), v.end(), one.qvel.begin());
    kinematics<double>(own, one, one.qpos, one.qvel);
    const Energy e = energy<double>(own, one, one.qpos, one.qvel);
    EXPECT_NEAR(energies[at(3 * w)], e.kinetic, 1e-12 * e.kinetic);
    EXPECT_NEAR(energies[at(3 * w + 1)], e.potential, 1e-12 * std::abs(e.potential));
    EXPECT_NEAR(com[at(6 * w + 2)], momentum(own, one).com.z, 1e-12);
  }
}

TEST(BatchParameters, DampingIsAJointsOwn) {
  const auto pendulum = [](const char* damping) {
    return compile(parse_mjcf(std::string("<mujoco><worldbody><body><joint damping='") + damping +
                                  "'/><geom type='sphere' size='.1' pos='0 .3 0'/></body></worldbody></mujoco>",
                              "pendulum.xml", "."));
  };
  const std::vector<double> negative{1, -1}, some{1, 2};
  for (const char* damping : {"1", "0 1", "0 0 1"}) {
    const Model model = pendulum(damping);
    Batch<double> batch(model, 2, {});
    EXPECT_THROW(batch.set_parameters(only(WorldParameter::damping_scale, negative)), ValueError);
    batch.set_parameters(only(WorldParameter::damping_scale, some));
    batch.qvel()[0] = batch.qvel()[1] = 3;
    batch.rollout({.steps = 20});
    EXPECT_LT(std::abs(batch.qvel()[1]), std::abs(batch.qvel()[0])) << damping;
  }
  const Model free = pendulum("0");
  EXPECT_THROW(Batch<double>(free, 2, {}).set_parameters(only(WorldParameter::damping_scale, some)), ValueError);
}

/// A finger on a floor with all affine kinds of actuators.
const char* kActuated = R"(<mujoco><worldbody><geom type="plane" size="0 0 1"/>
  <body pos="0 0 .5"><joint name="a" axis="0 1 0" damping=".1"/><joint name="b" axis="1 0 0" damping=".1"/>
    <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
    <body pos=".3 0 0"><joint name="c" axis="0 1 0" damping=".1"/><joint name="d" axis="0 0 1" damping=".1"/>
      <geom type="capsule" size=".03" fromto="0 0 0 .3 0 0"/>
      <body pos=".3 0 0"><joint name="e" axis="0 1 0" damping=".1"/>
        <joint name="f" type="slide" axis="1 0 0" damping="1" %s/>
        <geom type="capsule" size=".03" fromto="0 0 0 .2 0 0"/><site name="tip" pos=".2 0 0"/></body></body></body>
  </worldbody><tendon><fixed name="t"><joint joint="c" coef="1"/><joint joint="e" coef="-.5"/></fixed></tendon><actuator>
  <motor name="motor" joint="a" gear="3" ctrllimited="true" ctrlrange="-2 2" forcelimited="true"
    forcerange="-1.5 1.5"/>
  <position name="servo" joint="b" kp="40" kv="2" forcelimited="true" forcerange="-2 3"/>
  <velocity joint="c" kv="2" gear="2"/><intvelocity joint="d" kp="20" kv="1" actrange="-1 1"/>
  <position joint="e" kp="10"/><position joint="e" kp="15" kv="1" gear="-2"/>
  <position name="slide" joint="f" kp="50" kv="3"/>%s</actuator>
  <sensor><actuatorfrc actuator="motor"/><actuatorfrc actuator="servo"/><actuatorfrc actuator="slide"/>
  <jointactuatorfrc joint="f"/></sensor></mujoco>)";
/// Along a tendon, at a site, and with a damping that is controlled, which lanes do not have.
const char* kAlongPaths = R"(<position tendon="t" kp="8" kv=".5" forcelimited="true" forcerange="-1 1"/>
  <general site="tip" gear="0 1 0 0 0 0" gainprm="2" biastype="affine" biasprm=".1 0 -.3"/>)";
const char* kDamper = R"(<damper joint="a" kv="1" ctrlrange="0 1"/>)";

Model actuated(const char* more, const char* range) {
  std::string text = kActuated;
  text.replace(text.find("%s"), 2, range);
  text.replace(text.find("%s"), 2, more);
  return compile(parse_mjcf(text, "finger.xml", "."));
}

/// The model with its actuators' numbers scaled.
Model scaled(const Model& model, const ActuatorScales& scale) {
  ModelSpec spec = model.spec;
  for (std::size_t i = 0; i < spec.actuators.size(); ++i) {
    ActuatorSpec& a = spec.actuators[i];
    for (std::size_t k = 0; k < 3; ++k) {
      const double factor = k < 2 ? scale.gain[i] : scale.damping[i];
      a.gain[k] *= factor, a.bias[k] *= factor;
    }
    for (double& f : a.force_range) f *= scale.force[i];
  }
  return compile(std::move(spec));
}

TEST(BatchParameters, ActuatorsAreThoseOfAModelWithTheirNumbers) {
  const int worlds = 9, steps = 30;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> some(-1, 1);
  const char* const kRange = "actuatorfrcrange='-4 4'";
  for (const auto& [more, range, in_lanes] : {std::tuple{"", "", true}, std::tuple{kAlongPaths, "", true},
                                              std::tuple{kAlongPaths, kRange, false}, std::tuple{kDamper, "", false}}) {
    const Model model = actuated(more, range);
    const std::size_t n = model.spec.actuators.size();
    WorldParameters own;
    for (const WorldParameter which : {WorldParameter::actuator_gain_scale, WorldParameter::actuator_damping_scale,
                                       WorldParameter::actuator_force_scale}) {
      EXPECT_EQ(at(numbers(model, which)), n);
      own[which] = factors(worlds * int(n), 7 + unsigned(which));
    }
    for (const ActuationMode mode : {ActuationMode::implicit_servos, ActuationMode::explicit_forces}) {
      BatchOptions options;
      options.step.dt = mode == ActuationMode::implicit_servos ? 0.004 : 0.0002, options.step.actuation = mode;
      options.step.rows.contacts = options.step.rows.joints = true;
      Batch<double> batch(model, worlds, options), plain(model, worlds, options);
      batch.set_parameters(own);
      const int sensors = batch.sensor_numbers();
      std::vector<double> controls(at(steps * worlds * model.nu)), read(at(steps * worlds * sensors));
      for (double& u : controls) u = 1.5 * some(random);
      EXPECT_EQ(batch.rollout({.steps = steps, .ctrl = controls, .sensors = read}), 0);
      EXPECT_EQ(plain.rollout({.steps = steps, .ctrl = controls}), 0);
      for (int w = 0; w < worlds; ++w) {
        const Model alone = scaled(model, own.actuators(model, w));
        Batch<double> one(alone, 1, options);
        std::vector<double> mine, felt(at(steps * sensors));
        for (int k = 0; k < steps; ++k) {
          const auto first = controls.begin() + (k * worlds + w) * model.nu;
          mine.insert(mine.end(), first, first + model.nu);
        }
        EXPECT_EQ(one.rollout({.steps = steps, .ctrl = mine, .sensors = felt}), 0);
        double far = 0;
        for (int i = 0; i < model.nv; ++i) {
          const std::size_t place = at(w * model.nv + i);
          EXPECT_NEAR(batch.qvel()[place], one.qvel()[at(i)], 1e-8) << more << w;
          far = std::max(far, std::abs(batch.qvel()[place] - plain.qvel()[place]));
        }
        EXPECT_GT(far, 1e-3);
        for (int i = 0; i < sensors; ++i) {
          const double here = read[at(((steps - 1) * worlds + w) * sensors + i)];
          EXPECT_NEAR(here, felt[at((steps - 1) * sensors + i)], 1e-7) << more << i;
        }
      }
      batch.clear_parameters(), batch.reset();
      EXPECT_EQ(batch.rollout({.steps = steps, .ctrl = controls}), 0);
      EXPECT_EQ(batch.state_hash(), plain.state_hash()) << more;
      EXPECT_EQ(batch.pack_width(), in_lanes ? lanes<double>(isa_level()) : 1) << more << range;
    }
  }
}

TEST(BatchParameters, FactorsOnActuatorsThatDoNotFitAreRefused) {
  const auto refused = [](const std::string& text, WorldParameter which,
                          const BatchOptions& options = {}) -> std::string {
    const Model model = compile(
        parse_mjcf("<mujoco><worldbody><body><joint name='a' actuatorfrcrange='-9 9'/><joint name='b' axis='1 0 0'/>"
                   "<geom size='.1'/></body></worldbody><actuator>" +
                       text + "</actuator></mujoco>",
                   "a.xml", "."));
    Batch<double> batch(model, 2, options);
    try {
      batch.set_parameters(only(which, {1.0, 1.1}));
    } catch (const ValueError& e) {
      return e.what();
    }
    return "";
  };
  const WorldParameter gain = WorldParameter::actuator_gain_scale, damping = WorldParameter::actuator_damping_scale,
                       force = WorldParameter::actuator_force_scale;
  const auto says = [](const std::string& message, const char* what) {
    EXPECT_NE(message.find(what), std::string::npos) << message;
  };
  EXPECT_EQ(refused("<motor joint='a'/>", gain), "");
  says(refused("<motor joint='a'/>", damping), "with damping");
  says(refused("<motor joint='a'/>", force), "with a forcerange");
  says(refused("", gain), "a model with actuators");
  EXPECT_EQ(refused("<position joint='b' kp='1' kv='1' forcerange='-1 1'/>", damping), "");
  EXPECT_EQ(refused("<position joint='b' kp='1' kv='1' forcerange='-1 1'/>", force), "");
  says(refused("<position joint='a' kp='1' kv='1' forcerange='-1 1'/>", force), "actuatorfrcrange");
  says(refused("<muscle joint='a' lengthrange='0 1'/>", gain), "without muscles");
  BatchOptions options;
  options.step.actuation = ActuationMode::off;
  says(refused("<motor joint='a'/>", gain, options), "a batch with actuators");
  const Model model = actuated("", "");
  options.drives = Drives::uniform(model);
  Batch<double> driven(model, 2, options);
  EXPECT_THROW(driven.set_parameters(only(gain, {1.0, 1.1})), ValueError);
}

TEST(BatchParameters, WhatDoesNotFitIsNamed) {
  const Model model = model_of("humanoid.xml");
  BatchOptions options;
  Batch<double> batch(model, 2, options);
  const auto message = [&](WorldParameter which, const std::vector<double>& values) -> std::string {
    try {
      batch.set_parameters(only(which, values));
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  const auto says = [&](WorldParameter which, const std::vector<double>& values, const char* what) {
    EXPECT_NE(message(which, values).find(what), std::string::npos) << message(which, values);
  };
  says(WorldParameter::mass_scale, {1, 0}, "mass_scale[1, 0]");
  says(WorldParameter::mass_scale, {1, std::nan("")}, "mass_scale[1, 0]");
  says(WorldParameter::damping_scale, {1, 1}, "damped joints");
  says(WorldParameter::gravity, {0, 0, 0, 0, 0, std::nan("")}, "gravity[1, 2]");
  says(WorldParameter::mass_scale, {1, 1, 1}, "mass_scale");
  says(WorldParameter::gravity, {1, 1}, "gravity");
  says(WorldParameter::friction_scale, {1, 1}, "with contacts");
  says(WorldParameter::kp_scale, {1, 1}, "with drives");
  EXPECT_TRUE(batch.parameter(WorldParameter::mass_scale).empty());
  batch.set_drives(Drives::uniform(model));
  says(WorldParameter::force_scale, {1, 1}, "with force limits");
  EXPECT_EQ(message(WorldParameter::kp_scale, {2, 0}), "");
  batch.set_drives({});
  EXPECT_TRUE(batch.parameter(WorldParameter::kp_scale).empty());
  EXPECT_THROW(batch.set_parameters(only(WorldParameter::mass_scale, {1, 1}), std::vector<std::uint8_t>(3)),
               ShapeError);
}

// -- captures ---------------------------------------------------------------------------------------------------------

TEST(BatchCaptures, ABadStepIsTakenAgainToTheBit) {
  const std::vector<Model> models = models_with_damping();
  for (const Scene& scene : scenes(models)) {
    const Model& model = model_for(scene, models);
    const std::vector<unsigned> names{0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    BatchOptions options = scene.options;
    options.keep_starts = true, options.threads = 2;
    Batch<double> batch(model, 10, options);
    begin(batch, names), set_own(batch, names);
    for (int i = 0; i < 20; ++i) {
      aim(batch, names, i);
      if (i == 12) batch.qpos_target()[std::size_t(model.nq)] = std::nan("");  // world 1
      if (i == 13) batch.tau()[4 * std::size_t(model.nv)] = 1e60;              // 4: too fast by the solve
      if (i == 14) batch.qvel()[6 * std::size_t(model.nv)] = -1e30;            // 6: too fast from the start
      batch.step();
    }
    ASSERT_EQ(batch.bad_worlds(), 3) << scene.name;
    for (const int world : {1, 4, 6}) {
      const WorldCapture capture = batch.capture(world);
      EXPECT_FALSE(capture.memory.empty());
      EXPECT_TRUE(same_fault(capture.fault, batch.fault(world)));
      const WorldCapture read = from_arrays(model, to_arrays(model, capture), "capture");
      const WorldFault again = step_again(model, read);
      EXPECT_TRUE(same_fault(batch.fault(world), again))
          << scene.name << ": " << again.text() << " for " << batch.fault(world).text();
    }
    EXPECT_EQ(batch.fault(1).text(), "bad_input: qpos_target[0] is nan");
    EXPECT_NE(batch.status(4), WorldStatus::ok);
    // Captured worlds continue to the bit as in the batch, in other batches and at other indices.
    Batch<double> one(model, 1, scene.options), three(model, 3, scene.options);
    one.put(0, batch.capture(8)), three.put(2, batch.capture(8));
    for (int i = 20; i < 40; ++i) {
      aim(batch, names, i), aim(one, {8}, i), aim(three, {0, 0, 8}, i);
      batch.step(), one.step(), three.step();
    }
    EXPECT_EQ(one.state_hash(0), batch.state_hash(8)) << scene.name;
    EXPECT_EQ(three.state_hash(2), batch.state_hash(8)) << scene.name;
    EXPECT_EQ(one.steps(0), 40);
    batch.reset(std::vector<std::uint8_t>{0, 1, 0, 0, 0, 0, 0, 0, 0, 0});
    EXPECT_EQ(batch.capture(1).fault.status, WorldStatus::ok);
  }
}

TEST(BatchCaptures, WhatDoesNotFitIsNamed) {
  const std::vector<Model> models = models_with_damping();
  Batch<double> batch(models[0], 2, scenes(models)[1].options);
  const CaptureArrays good = to_arrays(models[0], batch.capture(0));
  EXPECT_TRUE(is_capture(good.meta));
  EXPECT_FALSE(is_capture("{}"));
  const auto refused = [&](const Model& model, CaptureArrays arrays, const std::string& what) {
    try {
      step_again(model, from_arrays(model, arrays, "file"));
      ADD_FAILURE() << what;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(what), std::string::npos) << e.what();
    }
  };
  refused(models[1], good, "joints");
  CaptureArrays bad = good;
  bad.meta = "{";
  refused(models[0], bad, "not a capture");
  for (const char* member : {"qpos", "dt", "kp"}) {
    bad = good;
    std::erase_if(bad.arrays, [&](const auto& a) { return a.first == member; });
    refused(models[0], bad, member);
    bad = good;
    for (auto& [name, values] : bad.arrays) {
      if (name == member) values.push_back(1);
    }
    refused(models[0], bad, member);
  }
  for (const auto& [member, range] :
       {std::pair("\"fault_index\": ", "from -1 to 1073741824"), {"\"contacts\": ", "from 0 to 1"}}) {
    bad = good;
    bad.meta.replace(bad.meta.find(member) + std::string_view(member).size(), 1, "-22");
    refused(models[0], bad, range);
  }
  bad = good;
  bad.meta.replace(bad.meta.find("\"version\": 3"), 12, "\"version\": 1");
  refused(models[0], bad, "file: error: a capture of version 1, written by another version of tarsus");
  bad = good;
  bad.memory.resize(bad.memory.size() / 2);
  refused(models[0], bad, "file: error: not the bytes that Batch.capture writes (memory)");
  std::mt19937 random(1);
  for (std::uint8_t& byte : bad.memory) byte = std::uint8_t(random());
  refused(models[0], bad, "file: error: not the bytes that Batch.capture writes (memory)");
}

}  // namespace
}  // namespace tarsus
