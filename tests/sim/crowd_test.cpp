// Worlds of a batch with many contacts between bodies. Lanes leave such a world to the scalar path until its bodies
// come apart (decision 509). Its bits are its own even so, wherever it is and whatever the worlds beside it do.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "tarsus/base/index.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/sim/batch.hpp"

namespace tarsus {
namespace {

constexpr int kColumns = 3, kRows = 4;

/// Columns of boxes of 20 cm on the floor, which stand 5 cm apart. Two boxes that touch have four contacts.
const Model& columns() {
  static const Model model = [] {
    std::string bodies;
    for (int i = 0; i < kColumns * kRows; ++i) {
      const double x = 0.25 * (i / kRows), z = 0.1 + 0.2 * (i % kRows);
      bodies += "<body pos='" + std::to_string(x) + " 0 " + std::to_string(z) +
                "'><freejoint/><geom type='box' size='.1 .1 .1'/></body>";
    }
    return compile(parse_mjcf("<mujoco><worldbody><geom type='plane' size='9 9 1'/>" + bodies + "</worldbody></mujoco>",
                              "columns.xml", "."));
  }();
  return model;
}

enum class Start { stacked, spread, falling, thrown, count };

/// Spread: all boxes side by side. Falling: the columns begin as an armful in the air. Thrown: at kThrow all fly apart.
template <class R>
void start(Batch<R>& batch, int world, Start how) {
  const int nq = columns().nq;
  for (int i = 0; i < kColumns * kRows; ++i) {
    R* q = &batch.qpos()[at(world * nq + 7 * i)];
    if (how == Start::spread) q[0] = R(0.25 * i), q[2] = R(0.1);
    if (how == Start::falling) q[2] = R(0.3 + 0.3 * (i % kRows));
  }
}

constexpr int kThrow = 40, kSteps = 80;

template <class R>
void act(Batch<R>& batch, int world, Start how, int step) {
  if (how != Start::thrown || step != kThrow) return;
  const int nv = columns().nv;
  for (int i = 0; i < kColumns * kRows; ++i) {
    R* v = &batch.qvel()[at(world * nv + 6 * i)];
    v[0] = R(3 * (i / kRows) - 3), v[1] = R(4 * (i % kRows) - 6), v[2] = R(5 + i % kRows);
  }
}

/// Whether the scalar path steps a world.
template <class R>
bool is_apart(const Batch<R>& batch, int world) {
  const BatchState<R> state = batch.save();
  const std::vector<TermMemory>& terms = state.memory[at(world / batch.pack_width())].terms;
  return !terms.empty() && !terms[at(world % batch.pack_width())].entries.empty();
}

BatchOptions options(int threads = 1) {
  BatchOptions out;
  out.step.dt = 1.0 / 60, out.threads = threads;
  out.step.rows.contacts = true;
  return out;
}

template <class R>
std::vector<R> poses(Batch<R>& batch, int world) {
  const std::span<const R> all = batch.qpos();
  const auto mine = all.subspan(at(world * columns().nq), at(columns().nq));
  return {mine.begin(), mine.end()};
}

template <class R>
class Crowds : public ::testing::Test {};
#ifdef TARSUS_DOUBLE_ONLY
using Numbers = ::testing::Types<double>;
#else
using Numbers = ::testing::Types<double, float>;
#endif
TYPED_TEST_SUITE(Crowds, Numbers);

TYPED_TEST(Crowds, HaveTheirOwnBits) {
  using R = TypeParam;
  const Model& model = columns();
  constexpr int kWorlds = 21;
  const auto kind = [](int world) { return Start(world % int(Start::count)); };
  Batch<R> batch(model, kWorlds, options(2));
  for (int w = 0; w < kWorlds; ++w) start(batch, w, kind(w));
  std::vector<std::unique_ptr<Batch<R>>> one;
  for (int k = 0; k < int(Start::count); ++k) {
    one.push_back(std::make_unique<Batch<R>>(model, 1, options()));
    start(*one.back(), 0, Start(k));
  }
  std::unique_ptr<Batch<R>> restored;
  bool was_apart[int(Start::count)] = {};
  for (int step = 0; step < kSteps; ++step) {
    if (step == kSteps / 2 + 10) {
      BatchState<R> state = batch.save();
      std::vector<StepMemory<R>> memory(state.memory.size());
      from_bytes<R>(to_bytes<R>(state.memory), memory);
      state.memory = memory;
      restored = std::make_unique<Batch<R>>(model, kWorlds, options());
      restored->restore(state);
      one[0]->put(0, batch.capture(4));  // a stacked world, as world 0 is
    }
    for (int w = 0; w < kWorlds; ++w) act(batch, w, kind(w), step);
    ASSERT_EQ(batch.step(), 0);
    if (restored) {
      ASSERT_EQ(restored->step(), 0);
    }
    for (int k = 0; k < int(Start::count); ++k) {
      act(*one[at(k)], 0, Start(k), step);
      ASSERT_EQ(one[at(k)]->step(), 0);
      was_apart[k] |= is_apart(*one[at(k)], 0);
    }
    for (int w = 0; w < kWorlds; ++w) {
      ASSERT_EQ(poses(batch, w), poses(*one[at(w % int(Start::count))], 0)) << "world " << w << " step " << step;
      ASSERT_FALSE(batch.reports()[at(w)].unsolved) << "world " << w << " step " << step;
    }
  }
  EXPECT_EQ(restored->state_hash(), batch.state_hash());
  EXPECT_TRUE(was_apart[int(Start::stacked)] && was_apart[int(Start::falling)] && was_apart[int(Start::thrown)]);
  EXPECT_FALSE(was_apart[int(Start::spread)]);
  EXPECT_TRUE(is_apart(*one[int(Start::stacked)], 0));
  EXPECT_FALSE(is_apart(*one[int(Start::thrown)], 0));
}

/// Compares with a single world under the same laws, over the step that leaves the lanes and after it.
TEST(CrowdsOfOne, MoveAsInAStepper) {
  const Model& model = columns();
  Batch<double> batch(model, 3, options());
  start(batch, 1, Start::falling);
  Data data(model);
  Stepper<double> stepper(model, data, options().step);
  std::copy_n(&batch.qpos()[at(model.nq)], model.nq, data.qpos.begin());
  for (int step = 0; step < 30; ++step) {
    ASSERT_EQ(batch.step(), 0);
    ASSERT_EQ(stepper.step(data), 0);
    EXPECT_EQ(batch.steps(1), step + 1);
    for (int i = 0; i < model.nq; ++i)
      ASSERT_NEAR(batch.qpos()[at(model.nq + i)], data.qpos[at(i)], 1e-6) << "step " << step << " qpos " << i;
  }
  ASSERT_TRUE(is_apart(batch, 1));
}

TEST(CrowdsOfOne, GoBadAloneWithTheirCause) {
  const Model& model = columns();
  const int nv = model.nv;
  Batch<double> batch(model, 4, options()), clean(model, 4, options());
  for (int step = 0; step < 20; ++step) batch.step(), clean.step();
  ASSERT_TRUE(is_apart(batch, 1) && is_apart(batch, 2));
  batch.tau()[at(nv + 8)] = 1e300;
  batch.qvel()[at(2 * nv + 4)] = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> before = poses(batch, 1);
  EXPECT_EQ(batch.step(), 2);
  clean.step();
  EXPECT_NE(batch.fault(1).status, WorldStatus::ok);
  EXPECT_EQ(poses(batch, 1), before);
  EXPECT_EQ(batch.fault(2).status, WorldStatus::bad_input);
  EXPECT_EQ(batch.fault(2).array, std::string("qvel"));
  EXPECT_EQ(batch.fault(2).index, 4);
  for (int step = 0; step < 5; ++step) {
    EXPECT_EQ(batch.step(), 2);
    clean.step();
  }
  for (const int world : {0, 3}) EXPECT_EQ(poses(batch, world), poses(clean, world));
  EXPECT_EQ(batch.steps(1), 20);
}

}  // namespace
}  // namespace tarsus
