// Rows eliminated branch by branch against the dense KKT system, and the behaviour where a branch cannot satisfy its
// rows.
#include <gtest/gtest.h>

#include "support/dense_system.hpp"
#include "tarsus/constraint/constrained_dynamics.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/math/rotation.hpp"

namespace tarsus::test {
namespace {

using Vector = Eigen::VectorXd;

Model character(const std::string& name) {
  return compile(read_model(std::filesystem::path(TARSUS_SOURCE_DIR) / "models" / (name + ".xml")));
}

Vector dense(const Model& model, const EqualitySet& set, const State& s, double* condition) {
  const DenseSystem system = dense_system(model, set, s, model.armature, 0, 0.3);
  *condition = system.condition();
  return system.solve();
}

/// Constraints of every kind on bodies of several branches.
EqualitySet branch_rows(Random& random, const Model& model, int count) {
  EqualitySet set(model);
  for (int i = 0; i < count; ++i) {
    const std::string name = "c" + std::to_string(i);
    const int a = 1 + random.index(model.nbody() - 1), b = random.chance(0.7) ? 0 : random.index(model.nbody());
    if (model.bodies[a].link == model.bodies[b].link) continue;
    const int kind = random.index(4);
    const Vec3d at_a = random.vector(0.2), at_b = random.vector(0.3);
    const double length = random.uniform(0.1, 1);
    if (kind == 0) set.add_connect(name, a, at_a, b, at_b);
    if (kind == 1) set.add_weld(name, a, b, {rotation(random.rotation()), at_a}, 2 * length);
    if (kind == 2) set.add_distance(name, a, at_a, b, at_b, length);
    if (kind == 3) set.add_point_on_plane(name, a, at_a, b, at_b, random.direction());
  }
  return set;
}

TEST(Branches, SolveTheDenseSystem) {
  int compared = 0, eliminated = 0, by_branches_off = 0;
  for (const char* name : {"humanoid", "dog"}) {
    const Model model = character(name);
    for (unsigned seed = 0; seed < 150; ++seed) {
      Random random(seed);
      const EqualitySet set = branch_rows(random, model, 2 + int(seed % 5));
      const State s = random_state(random, model);
      if (set.rows() == 0) continue;
      double condition = 0;
      const Vector expected = dense(model, set, s, &condition);
      if (condition > 1e5) continue;
      ++compared;
      Data data(model);
      ConstrainedDynamics<double> dynamics(model, set, data);
      std::vector<double> qacc(model.nv);
      dynamics.accelerate(data, 0, s.qpos, s.qvel, s.tau, model.armature, qacc, 0.3);
      eliminated += dynamics.by_branches(0), by_branches_off += !dynamics.by_branches(0);
      const std::vector<double> a(expected.data(), expected.data() + model.nv),
          x2(expected.data() + model.nv, expected.data() + expected.size());
      ASSERT_LT(relative_error(qacc, a), 1e-10 * std::max(1.0, condition / 100)) << name << " seed " << seed;
      ASSERT_LT(relative_error(dynamics.multiplier(), x2), 1e-10 * std::max(1.0, condition / 100))
          << name << " " << seed;
      EXPECT_EQ(dynamics.status(0), KktStatus::solved);
    }
  }
  std::printf("%d compared, %d by branches, %d all rows at once\n", compared, eliminated, by_branches_off);
  EXPECT_GT(eliminated, 60);
}

/// A call leaves nothing behind for the next one, also in sets in which some pairs of blocks share no link.
TEST(Branches, CallsLeaveNothingBehind) {
  int eliminated = 0;
  for (const char* name : {"humanoid", "dog"}) {
    const Model model = character(name);
    for (unsigned seed = 0; seed < 100; ++seed) {
      Random random(seed);
      const EqualitySet set = branch_rows(random, model, 4 + int(seed % 5));
      if (set.rows() == 0) continue;
      Data data(model);
      ConstrainedDynamics<double> used(model, set, data), fresh(model, set, data);
      std::vector<double> a(model.nv), b(model.nv);
      State s;
      for (int call = 0; call < 3; ++call) {
        s = random_state(random, model);
        used.accelerate(data, 0, s.qpos, s.qvel, s.tau, model.armature, a, 0.3);
      }
      fresh.accelerate(data, 0, s.qpos, s.qvel, s.tau, model.armature, b, 0.3);
      eliminated += used.by_branches(0);
      EXPECT_EQ(a, b) << name << " seed " << seed;
    }
  }
  EXPECT_GT(eliminated, 30);
}

/// Both feet welded to the world.
EqualitySet feet(const Model& model, const std::vector<double>& qpos) {
  Data data(model);
  kinematics<double>(model, data, qpos);
  EqualitySet set(model);
  for (const char* name : {"left_foot", "right_foot"}) {
    const int body = model.body_id(name);
    set.add_weld(name, body, 0, inverse(body_pose(model, data, body)));
  }
  return set;
}

/// The joints of a straight leg cannot satisfy a row along the leg. All rows are then solved at once, so that the root
/// can satisfy it.
TEST(Branches, StraightLegsAreHandedOver) {
  const Model model = character("humanoid");
  const EqualitySet set = feet(model, model.qpos0);
  Data data(model);
  ConstrainedDynamics<double> dynamics(model, set, data);
  Random random(3);
  State s{model.qpos0, random_vector(random, model.nv, 0.1), {}, random_vector(random, model.nv, 10)};
  std::vector<double> qacc(model.nv);
  int handed_over = 0, kept = 0;
  for (const double bend : {0.0, 1e-9, 1e-6, 1e-4, 1e-3, 1e-2, 0.1, 0.5}) {
    for (const char* knee : {"left_knee", "right_knee"}) s.qpos[model.joints[model.joint_id(knee)].qpos] = -bend;
    double condition = 0;
    const Vector expected = dense(model, set, s, &condition);
    dynamics.accelerate(data, 0, s.qpos, s.qvel, s.tau, model.armature, qacc, 0.3);
    dynamics.by_branches(0) ? ++kept : ++handed_over;
    EXPECT_LT(relative_error(qacc, {expected.data(), std::size_t(model.nv)}), 1e-14 * std::max(condition, 1e4))
        << "knees bent by " << bend;
  }
  EXPECT_GT(handed_over, 0);
  EXPECT_GT(kept, 0);
}

/// Each world of a batch has the same result to the bit whatever its neighbours are. Some neighbours need the fallback,
/// some are full of NaN.
template <class R>
void neighbours_do_not_matter() {
  const Model model = character("humanoid");
  Random random(5);
  const std::vector<double> start = random_qpos(random, model);
  const EqualitySet set = feet(model, start);
  constexpr int kWorlds = 16;
  BasicData<R> data(model, kWorlds), other(model, kWorlds);
  ConstrainedDynamics<R> dynamics(model, set, data), among_others(model, set, other);
  AlignedVector<R> qpos(data.size(model.nq)), qvel(data.size(model.nv)), tau(qvel), K(qvel), a(qvel), b(qvel);
  for (int w = 0; w < kWorlds; ++w) {
    const State s = random_state(random, model);
    const auto put = [&](AlignedVector<R>& to, const std::vector<double>& from) {
      data.set(to, int(from.size()), w, std::vector<R>(from.begin(), from.end()));
    };
    put(qpos, start), put(qvel, s.qvel), put(tau, s.tau), put(K, model.armature);
  }
  dynamics.accelerate(data, 0.01, qpos, qvel, tau, K, a);
  for (const int w : {1, 6, 11}) {
    std::vector<R> q(model.qpos0.begin(), model.qpos0.end());  // straight legs
    data.set(qpos, model.nq, w, q);
    data.set(tau, model.nv, w + 1, std::vector<R>(model.nv, std::numeric_limits<R>::quiet_NaN()));
  }
  among_others.accelerate(other, 0.01, qpos, qvel, tau, K, b);
  std::vector<R> x(model.nv), y(model.nv);
  int same = 0;
  for (int w = 0; w < kWorlds; ++w) {
    if (w % 5 == 1 || w % 5 == 2) continue;
    data.get(a, model.nv, w, x), data.get(b, model.nv, w, y);
    EXPECT_EQ(x, y) << "world " << w;
    same += x == y;
    EXPECT_EQ(among_others.status(w), KktStatus::solved);
  }
  EXPECT_EQ(same, 10);
  EXPECT_FALSE(among_others.by_branches(2));
}
TEST(Branches, NeighboursDoNotMatter) { neighbours_do_not_matter<double>(); }
#ifndef TARSUS_DOUBLE_ONLY
TEST(Branches, NeighboursDoNotMatterInFloat) { neighbours_do_not_matter<float>(); }
#endif

/// Every row occurs twice: the copies are found to be dependent, and the motion is that of one copy.
TEST(Branches, RedundantRowsAreStillFound) {
  const Model model = character("humanoid");
  Random random(8);
  const State s = random_state(random, model);
  const EqualitySet once = feet(model, s.qpos);
  EqualitySet twice = feet(model, s.qpos);
  const Equality& first = once[0];
  Data data(model);
  kinematics<double>(model, data, s.qpos);
  twice.add_weld("again", first.body_a, 0, inverse(body_pose(model, data, first.body_a)));
  ConstrainedDynamics<double> one(model, once, data), both(model, twice, data);
  std::vector<double> a(model.nv), b(model.nv);
  one.accelerate(data, 0, s.qpos, s.qvel, s.tau, model.armature, a);
  both.accelerate(data, 0, s.qpos, s.qvel, s.tau, model.armature, b);
  EXPECT_EQ(one.status(0), KktStatus::solved);
  EXPECT_EQ(both.status(0), KktStatus::redundant);
  EXPECT_LT(relative_error(b, a), 1e-8);
}

}  // namespace
}  // namespace tarsus::test
