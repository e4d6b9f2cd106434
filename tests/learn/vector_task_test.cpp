// Many worlds of a task: on what their results depend, and on what they must not. Reward and observation are compared
// with another implementation in tests/python/test_learn.py.
#include "tarsus/learn/vector_task.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/allocations.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/learn/cart_pole_task.hpp"
#include "tarsus/learn/motion_task.hpp"

namespace tarsus::test {
namespace {

const std::string kModels = std::string(TARSUS_SOURCE_DIR) + "/models/";

struct Walk {
  Model model = compile(read_model(kModels + "humanoid.xml", {}));
  MotionTaskOptions options;

  Walk() {
    for (const char* foot : {"left_foot", "right_foot"}) {
      options.feet.push_back(model.body_id(foot));
      options.end_effectors.push_back({model.body_id(foot), {0, 0, 0}});
    }
  }
  Drives drives() const {
    Drives d = Drives::uniform(model, 300, 30, 0, 0);
    d.force_limit.assign(model.nv, 150);
    return d;
  }
  MotionTask task(bool loop = true) const {
    MotionClip file = read_clip(kModels + "clips/humanoid_walk.json");
    file.loop = loop;
    return MotionTask(model, bind(model, file, choose_clip_mapping(model, file)), drives(), options);
  }
};

/// Actions that depend on the world and the step alone.
std::vector<double> actions(int worlds, int size, int first, int step) {
  std::vector<double> out;
  for (int w = 0; w < worlds; ++w) {
    for (int i = 0; i < size; ++i) out.push_back(0.3 * std::sin(1.0 + 3.7 * (first + w) + 0.9 * i + 0.4 * step));
  }
  return out;
}

TEST(Philox, KnownAnswers) {  // Random123's kat_vectors
  using Counter = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(VectorTask, AWorldDoesNotDependOnThreadsNorOnHowManyThereAre) {
  const Walk walk;
  const MotionTask task = walk.task();
  const int n = 7;
  VectorTask<double> many(task, {.worlds = n, .threads = 3, .seed = 5, .autoreset = Autoreset::same_step});
  many.reset();
  std::vector<std::unique_ptr<VectorTask<double>>> alone;
  for (int w = 0; w < n; ++w) {
    alone.push_back(std::make_unique<VectorTask<double>>(
        task, VectorTaskOptions{.seed = std::uint64_t(5 + w), .autoreset = Autoreset::same_step}));
    alone.back()->reset();
  }
  int ended = 0;
  for (int step = 0; step < 90; ++step) {
    many.step(actions(n, task.action_size(), 0, step));
    for (int w = 0; w < n; ++w) {
      alone[w]->step(actions(1, task.action_size(), w, step));
      ASSERT_EQ(many.reward()[w], alone[w]->reward()[0]) << step << " " << w;
      ASSERT_EQ(many.terminated()[w], alone[w]->terminated()[0]);
      for (int i = 0; i < task.observation_size(); ++i)
        ASSERT_EQ(many.observation()[w * task.observation_size() + i], alone[w]->observation()[i]) << step << " " << w;
      ended += many.terminated()[w] != 0;
    }
  }
  EXPECT_GT(ended, 0);  // restarts took part
}

TEST(VectorTask, ThreeWaysToGoOnAfterAnEnd) {
  Walk walk;
  walk.options.time_limit = 0.1;  // three steps
  const MotionTask task = walk.task();
  const std::vector<double> still(task.action_size());
  VectorTask<double> next(task, {.autoreset = Autoreset::next_step}), same(task, {.autoreset = Autoreset::same_step}),
      disabled(task, {.autoreset = Autoreset::disabled});
  EXPECT_THROW(next.step(still), ValueError);  // before the first reset
  for (auto* v : {&next, &same, &disabled}) v->reset();
  for (int step = 1; step <= 3; ++step) {
    for (auto* v : {&next, &same, &disabled}) {
      v->step(still);
      ASSERT_EQ(v->truncated()[0] != 0, step == 3);
    }
  }
  const std::vector<double> last(next.observation().begin(), next.observation().end());
  EXPECT_TRUE(std::equal(last.begin(), last.end(), same.final_observation().begin()));
  EXPECT_TRUE(std::equal(last.begin(), last.end(), disabled.observation().begin()));
  EXPECT_FALSE(std::equal(last.begin(), last.end(), same.observation().begin()));
  EXPECT_EQ(same.steps()[0], 0);
  EXPECT_THROW(disabled.step(still), ValueError);
  const std::vector<std::uint8_t> mask{1};
  disabled.reset(mask);
  next.step(still);  // its action is not used
  EXPECT_EQ(next.reward()[0], 0);
  EXPECT_FALSE(next.truncated()[0]);
  for (auto* v : {&next, &disabled})
    EXPECT_TRUE(std::equal(v->observation().begin(), v->observation().end(), same.observation().begin()));
  for (auto* v : {&next, &same, &disabled}) v->step(still);
  for (auto* v : {&next, &disabled})
    EXPECT_TRUE(std::equal(v->observation().begin(), v->observation().end(), same.observation().begin()));
}

TEST(VectorTask, ABadWorldStartsAnewAndIsCounted) {
  const Walk walk;
  const MotionTask task = walk.task();
  VectorTask<double> worlds(task, {.worlds = 3, .autoreset = Autoreset::same_step}),
      others(task, {.worlds = 3, .autoreset = Autoreset::same_step});
  worlds.reset(), others.reset();
  const int n = task.observation_size();
  for (int step = 0; step < 20; ++step) {
    const auto a = actions(3, task.action_size(), 0, step);
    auto b = a;
    if (step == 5) worlds.batch().qpos()[walk.model.nq + 9] = std::numeric_limits<double>::quiet_NaN();
    if (step == 9) b[task.action_size() + 3] = std::numeric_limits<double>::infinity();
    const std::vector<double> before(worlds.observation().begin() + n, worlds.observation().begin() + 2 * n);
    worlds.step(b), others.step(a);
    EXPECT_EQ(bool(worlds.bad()[1]), step == 5 || step == 9);
    if (step == 5 || step == 9) {
      EXPECT_TRUE(worlds.truncated()[1]);
      EXPECT_FALSE(worlds.terminated()[1]);
      EXPECT_TRUE(std::equal(before.begin(), before.end(), worlds.final_observation().begin() + n));
      EXPECT_EQ(worlds.reward()[1], 0);
      EXPECT_EQ(worlds.steps()[1], 0);
    }
    for (double x : worlds.observation()) ASSERT_TRUE(std::isfinite(x));
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(worlds.observation()[i], others.observation()[i]);
      ASSERT_EQ(worlds.observation()[2 * n + i], others.observation()[2 * n + i]);
    }
  }
  EXPECT_EQ(worlds.bad_worlds(), 2);
  EXPECT_EQ(others.bad_worlds(), 0);
}

TEST(VectorTask, AStepAllocatesNothing) {
  Walk walk;
  walk.options.time_limit = 0.5;  // restarts take part
  walk.options.relative_action = true;
  const MotionTask task = walk.task();
  VectorTask<double> worlds(task, {.worlds = 20, .threads = 2, .autoreset = Autoreset::same_step});
  worlds.reset();
  std::vector<std::vector<double>> all;
  for (int step = 0; step < 240; ++step) all.push_back(actions(20, task.action_size(), 0, step));
  for (int step = 0; step < 200; ++step) worlds.step(all[step]);  // until the hardest steps have occurred
  const long before = allocations;
  for (int step = 200; step < 240; ++step) worlds.step(all[step]);
  EXPECT_EQ(allocations - before, 0);
  EXPECT_GT(worlds.episode(0), 2);
}

TEST(MotionTask, AWorldOnTheClipHasTheWholeReward) {
  const Walk walk;
  const MotionTask task = walk.task();
  const auto scratch = task.scratch();
  std::vector<double> q(walk.model.nq), v(walk.model.nv), memory(task.memory_size()), terms(5);
  const std::vector<double> touch(walk.model.joints.size());
  EpisodeRandom random(3, 0);
  task.start(random, {q, v, memory}, *scratch);
  for (int step = 0; step < 100; ++step) {  // through several cycles
    std::vector<double> ahead = memory;
    ahead[1] += 1;
    task.reference(ahead, q, v);
    const auto score = task.score({q, v, memory}, touch, terms, *scratch);
    ASSERT_NEAR(score.reward, 1, 1e-9) << step;
  }
}

/// Each lane against the task's own functions for that world alone, to `close`; 0: the same bits.
template <class R>
void expect_lanes_as_alone(const MotionTask& task, double close) {
  const Model& model = task.model();
  const int width = lanes<R>(isa_level()), nact = task.action_size(), nobs = task.observation_size();
  std::unique_ptr<TaskLanes<R>> lanes;
  task.make_lanes(width, lanes);
  const auto scratch = task.scratch();
  const std::size_t links = model.joints.size();
  AlignedVector<R> qpos(model.nq * width), qvel(model.nv * width), action(nact * width), target(model.nq * width);
  AlignedVector<R> touch(links * width), terms(5 * width), observation(nobs * width);
  std::vector<Task::Score> scores(width);
  std::vector<double> memory(task.memory_size() * width), alone = memory;
  std::vector<double*> each(width);
  std::vector<double> q(model.nq), v(model.nv), a(nact), t(model.nq), term(5), o(nobs), no_touch(links);
  const auto put = [&](AlignedVector<R>& to, const std::vector<double>& from, int lane) {
    for (std::size_t i = 0; i < from.size(); ++i) to[i * width + lane] = R(from[i]);
  };
  const auto expect = [&](const AlignedVector<R>& got, const std::vector<double>& expected, int lane,
                          const char* what) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(got[i * width + lane], expected[i], close) << what << " " << i << ", lane " << lane;
  };
  int ended = 0;
  for (int step = 0; step < 60; ++step) {
    for (int lane = 0; lane < width; ++lane) {  // near the clip, farther in each step
      double* const mine = &alone[lane * task.memory_size()];
      EpisodeRandom random(lane, step);
      if (step == 0) task.start(random, {q, v, {mine, std::size_t(task.memory_size())}}, *scratch);
      std::copy_n(mine, task.memory_size(), &memory[lane * task.memory_size()]);
      each[lane] = lane == 1 ? nullptr : &memory[lane * task.memory_size()];
      task.reference({mine, std::size_t(task.memory_size())}, q, v);
      std::vector<double> turn(model.nv), next(model.nq);
      for (double& x : turn) x = (random.uniform() - 0.5) * 0.02 * step;
      for (double& x : v) x = R(x + random.uniform() - 0.5);
      Data data(model);
      integrate<double>(model, data, q, turn, 1, next);
      for (double& x : next) x = R(x);
      for (double& x : a) x = R(random.uniform() - 0.5);
      put(qpos, next, lane), put(qvel, v, lane), put(action, a, lane);
    }
    const typename TaskLanes<R>::Worlds worlds{qpos, qvel, each};
    lanes->act(worlds, action, target);
    std::vector<std::vector<double>> targets, all_terms, observations;
    std::vector<Task::Score> expected;
    for (int lane = 0; lane < width; ++lane) {
      const Task::World world{q, v, {&alone[lane * task.memory_size()], std::size_t(task.memory_size())}};
      for (int i = 0; i < model.nq; ++i) q[i] = qpos[i * width + lane];
      for (int i = 0; i < model.nv; ++i) v[i] = qvel[i * width + lane];
      for (int i = 0; i < nact; ++i) a[i] = action[i * width + lane];
      task.act(world, a, t, *scratch);
      scratch->current = false;
      expected.push_back(task.score(world, no_touch, term, *scratch));
      task.observe(world, o, *scratch);
      targets.push_back(t), all_terms.push_back(term), observations.push_back(o);
    }
    lanes->score(worlds, touch, terms, scores);
    lanes->observe(worlds, true, observation);
    for (int lane = 0; lane < width; ++lane) {
      if (lane == 1) continue;
      expect(target, targets[lane], lane, "target"), expect(terms, all_terms[lane], lane, "term");
      expect(observation, observations[lane], lane, "observation");
      ASSERT_NEAR(scores[lane].reward, expected[lane].reward, close);
      ASSERT_EQ(scores[lane].terminated, expected[lane].terminated) << step << " " << lane;
      ASSERT_EQ(scores[lane].truncated, expected[lane].truncated);
      ended += scores[lane].terminated;
      for (int i = 0; i < task.memory_size(); ++i)
        ASSERT_NEAR(memory[lane * task.memory_size() + i], alone[lane * task.memory_size() + i], close);
    }
  }
  EXPECT_GT(ended, 0);
}

TEST(MotionTask, WorldsInLanesAreAsAlone) {
  Walk walk;
  walk.options.tilt_limit = 0.12;
  for (const bool kit : {false, true}) {
    walk.options.reward = kit ? ImitationReward::mimickit : ImitationReward::deepmimic;
    walk.options.relative_action = kit;
    const MotionTask task = walk.task();
    expect_lanes_as_alone<double>(task, 0);
#ifndef TARSUS_DOUBLE_ONLY
    expect_lanes_as_alone<float>(task, 1e-5);  // some tens of rounding errors of numbers up to 30
#endif
  }
}

TEST(MotionTask, ARelativeActionOfZeroIsTheClip) {
  Walk walk;
  walk.options.relative_action = true;
  const MotionTask task = walk.task();
  const auto scratch = task.scratch();
  std::vector<double> q(walk.model.nq), v(walk.model.nv), memory(task.memory_size()), target(walk.model.nq);
  EpisodeRandom random(1, 2);
  task.start(random, {q, v, memory}, *scratch);
  task.act({q, v, memory}, std::vector<double>(task.action_size()), target, *scratch);
  std::vector<double> clip(walk.model.nq);
  task.clip().sample(task.clip_time(memory) + task.control_dt(), clip, {});
  for (int i = 7; i < walk.model.nq; ++i) EXPECT_NEAR(target[i], clip[i], 1e-12) << i;
}

TEST(MotionTask, AClipThatDoesNotLoopEnds) {
  const Walk walk;
  const MotionTask task = walk.task(false);
  ASSERT_FALSE(task.clip().loop());
  const auto scratch = task.scratch();
  std::vector<double> q(walk.model.nq), v(walk.model.nv), memory(task.memory_size());
  const std::vector<double> touch(walk.model.joints.size());
  EpisodeRandom random(3, 1);
  task.start(random, {q, v, memory}, *scratch);
  const double left = task.clip().duration() - task.clip_time(memory);
  int steps = 0;
  while (!task.score({q, v, memory}, touch, {}, *scratch).truncated) ASSERT_LT(++steps, 1000);
  EXPECT_NEAR((steps + 1) * task.control_dt(), left, task.control_dt());
}

TEST(MotionTask, BadInput) {
  Walk walk;
  walk.options.substeps = 0;
  EXPECT_THROW(walk.task(), ValueError);
  walk.options.substeps = 2;
  walk.options.feet = {0};
  EXPECT_THROW(walk.task(), ValueError);
  walk.options.feet.clear();
  walk.options.joint_weight = {1, 2};
  EXPECT_THROW(walk.task(), ShapeError);
  walk.options.joint_weight.assign(walk.model.joints.size(), std::nan(""));
  EXPECT_THROW(walk.task(), ValueError);
  const Model cart = compile(read_model(kModels + "cart_pole.xml", {}));
  EXPECT_THROW(CartPoleTask{walk.model}, ValueError);
  const CartPoleTask task(cart);
  EXPECT_THROW(VectorTask<double>(task, {.worlds = 0}), ValueError);
  VectorTask<double> one(task, {});
  one.reset();
  EXPECT_THROW(one.step(std::vector<double>(2)), ShapeError);
}

TEST(CartPoleTask, FallsWithoutAPush) {
  const Model model = compile(read_model(kModels + "cart_pole.xml", {}));
  const CartPoleTask task(model);
  VectorTask<double> worlds(task, {.worlds = 20, .autoreset = Autoreset::disabled});
  worlds.reset();
  for (double x : worlds.observation()) EXPECT_LE(std::abs(x), 0.05);
  int fallen = 0;
  for (int step = 0; step < 200 && fallen == 0; ++step) {
    worlds.step(std::vector<double>(20));
    for (int w = 0; w < 20; ++w) {
      EXPECT_EQ(worlds.reward()[w], 1);
      fallen += worlds.terminated()[w];
      EXPECT_EQ(worlds.terminated()[w] != 0, std::abs(worlds.observation()[4 * w + 1]) > 12 * kPi / 180);
    }
  }
  EXPECT_GT(fallen, 0);
}

}  // namespace
}  // namespace tarsus::test
