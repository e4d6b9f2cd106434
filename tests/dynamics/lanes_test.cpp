// A world in a SIMD lane gives the same result as one stepped individually, to the bit, at any index of the batch;
// float against double.
#include <gtest/gtest.h>

#include "support/random_model.hpp"
#include "tarsus/control/drive.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/dynamics/lanes.hpp"

namespace tarsus::test {
namespace {

template <class R>
std::vector<R> cast(const std::vector<double>& v) {
  return {v.begin(), v.end()};
}

/// All results of a step for one world computed individually.
template <class R>
struct Answers {
  std::vector<R> qacc, tau, M, minv, next, Q, K, force;
};

template <class R>
Answers<R> compute(const Model& model, BasicData<R>& data, const std::vector<R>& qpos, const std::vector<R>& qvel,
                   const std::vector<R>& tau, const std::vector<R>& target) {
  const Drives drives = Drives::uniform(model, 300, 20, 200, 10);
  Answers<R> a;
  // Packs are loaded from aligned storage, as Data's own arrays are.
  AlignedVector<R> q(qpos.begin(), qpos.end()), v(qvel.begin(), qvel.end()), f(tau.begin(), tau.end()),
      t(target.begin(), target.end());
  AlignedVector<R> Q(data.size(model.nv)), K(data.size(model.nv)), out(data.size(model.nv)),
      big(data.size(model.nv * model.nv)), next(data.size(model.nq));
  drive_terms<R>(model, data, drives, 1.0 / 60, q, v, t, {}, f, Q, K);
  a.Q.assign(Q.begin(), Q.end()), a.K.assign(K.begin(), K.end());
  maba<R>(model, data, q, v, Q, K, out);
  a.qacc.assign(out.begin(), out.end());
  drive_force<R>(model, data, drives, 1.0 / 60, q, v, t, {}, out, Q);
  a.force.assign(Q.begin(), Q.end());
  minv<R>(model, data, f, out);
  a.minv.assign(out.begin(), out.end());
  rnea<R>(model, data, q, v, f, out);
  a.tau.assign(out.begin(), out.end());
  crba<R>(model, data, q, big);
  a.M.assign(big.begin(), big.end());
  integrate<R>(model, data, q, v, R(1.0 / 60), next);
  a.next.assign(next.begin(), next.end());
  return a;
}

/// Every fourth world has quaternions of length 3, another of zeros.
template <class R>
void expect_lanes_equal_scalar(unsigned seed, int worlds) {
  const Model model = random_tree(seed, {.bodies = 1 + int(seed % 13)});
  if (model.nv == 0) return;
  Random random(seed);
  BasicData<R> one(model), batch(model, worlds);
  std::vector<Answers<R>> alone;
  std::vector<R> qpos(batch.size(model.nq)), qvel(batch.size(model.nv)), tau(batch.size(model.nv)),
      target(batch.size(model.nq));
  for (int lane = 0; lane < batch.packs() * batch.width(); ++lane) {  // spare lanes too: they must not disturb
    State s = random_state(random, model);
    const std::vector<double> goal = random_qpos(random, model);
    for (const int place : model.quaternions) {
      for (int k = 0; k < 4; ++k) s.qpos[place + k] *= lane % 4 == 1 ? 3 : lane % 4 == 3 ? 0 : 1;
    }
    batch.set(qpos, model.nq, lane, cast<R>(s.qpos));
    batch.set(qvel, model.nv, lane, cast<R>(s.qvel));
    batch.set(tau, model.nv, lane, cast<R>(s.tau));
    batch.set(target, model.nq, lane, cast<R>(goal));
    if (lane < worlds)
      alone.push_back(compute<R>(model, one, cast<R>(s.qpos), cast<R>(s.qvel), cast<R>(s.tau), cast<R>(goal)));
  }
  const Answers<R> together = compute<R>(model, batch, qpos, qvel, tau, target);
  for (int world = 0; world < worlds; ++world) {
    const auto same = [&](const std::vector<R>& all, const std::vector<R>& expected, const char* what) {
      std::vector<R> mine(expected.size());
      batch.get(all, int(expected.size()), world, mine);
      ASSERT_EQ(mine, expected) << what << ", seed " << seed << ", world " << world;
    };
    same(together.Q, alone[world].Q, "Q");
    same(together.K, alone[world].K, "K");
    same(together.qacc, alone[world].qacc, "qacc");
    same(together.force, alone[world].force, "drive force");
    same(together.minv, alone[world].minv, "minv");
    same(together.tau, alone[world].tau, "rnea");
    same(together.M, alone[world].M, "mass matrix");
    same(together.next, alone[world].next, "integrate");
  }
}

TEST(Lanes, EveryLaneEqualsTheScalarRunToTheBitInDouble) {
  for (unsigned seed = 0; seed < 100; ++seed) expect_lanes_equal_scalar<double>(seed, 2 + int(seed % 11));
}

#ifndef TARSUS_DOUBLE_ONLY
TEST(Lanes, EveryLaneEqualsTheScalarRunToTheBitInFloat) {
  for (unsigned seed = 0; seed < 100; ++seed) expect_lanes_equal_scalar<float>(seed, 2 + int(seed % 19));
}

TEST(Lanes, FloatAgreesWithDoubleToItsPrecision) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const Model model = random_tree(seed, {.bodies = 8});
    if (model.nv == 0) continue;
    Random random(seed);
    const State s = random_state(random, model);
    Data data(model);
    DataFloat data_float(model);
    std::vector<double> tau(model.nv);
    std::vector<float> tau_float(model.nv);
    rnea<double>(model, data, s.qpos, s.qvel, s.qacc, tau);
    rnea<float>(model, data_float, cast<float>(s.qpos), cast<float>(s.qvel), cast<float>(s.qacc), tau_float);
    // A recursion over up to 24 joints: some hundred rounding errors of 6e-8 each.
    ASSERT_LT(relative_error(std::vector<double>(tau_float.begin(), tau_float.end()), tau), 2e-5) << "seed " << seed;
  }
}
#endif

template <class R>
void expect_rows_go_to_lanes_and_back() {
  const int width = lanes<R>(isa_level());
  for (const int n : {1, 2, 7, width - 1, width, width + 1, 3 * width, 5 * width - 2}) {
    std::vector<R> numbers(std::size_t(width) * n), back(numbers.size(), R(-1));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = R(i + 1);
    AlignedVector<R> turned(numbers.size());
    std::vector<const R*> from;
    std::vector<R*> to;
    for (int lane = 0; lane < width; ++lane) {
      from.push_back(numbers.data() + std::size_t(lane) * n);
      to.push_back(lane == 1 ? nullptr : back.data() + std::size_t(lane) * n);
    }
    to_lanes<R>(from, n, turned.data());
    to_rows<R>(turned.data(), n, to);
    for (int lane = 0; lane < width; ++lane) {
      for (int i = 0; i < n; ++i) {
        const std::size_t at = std::size_t(lane) * n + i;
        ASSERT_EQ(turned[std::size_t(i) * width + lane], numbers[at]) << n;
        ASSERT_EQ(back[at], lane == 1 ? R(-1) : numbers[at]) << n;
      }
    }
  }
}

TEST(Lanes, RowsGoToLanesAndBack) {
  expect_rows_go_to_lanes_and_back<double>();
#ifndef TARSUS_DOUBLE_ONLY
  expect_rows_go_to_lanes_and_back<float>();
#endif
}

TEST(Lanes, BadWorldsAreNamedAndNeighboursGoOn) {
  const Model model = random_tree(7);
  Data data(model, 6);
  Random random(7);
  for (int world = 0; world < 6; ++world) {
    const State s = random_state(random, model);
    data.set(data.qpos, model.nq, world, s.qpos);
    data.set(data.qvel, model.nv, world, s.qvel);
  }
  std::vector<double> bad(model.nv, std::nan(""));
  data.set(data.qvel, model.nv, 4, bad);
  aba<double>(model, data, data.qpos, data.qvel, data.tau, data.qacc);
  EXPECT_EQ(first_bad_world<double>(data, data.qacc, model.nv), 4);
  std::vector<double> good(model.nv);
  data.set(data.qvel, model.nv, 4, good);
  aba<double>(model, data, data.qpos, data.qvel, data.tau, data.qacc);
  EXPECT_EQ(first_bad_world<double>(data, data.qacc, model.nv), -1);
}

}  // namespace
}  // namespace tarsus::test
