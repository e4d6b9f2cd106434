// Constrained dynamics of random trees and random rows against the dense KKT system: several roots, branches on a
// floating base, masses and gains over many orders of magnitude, duplicate rows, contradicting rows; one workspace for
// calls at changing states.
#include <gtest/gtest.h>

#include "support/dense_system.hpp"
#include "support/random_equalities.hpp"
#include "tarsus/constraint/constrained_dynamics.hpp"
#include "tarsus/io/model_file.hpp"

namespace tarsus::test {
namespace {

using Vector = Eigen::VectorXd;

/// Branches on a floating base, some of which branch again.
Model floating_branches(Random& random) {
  ModelSpec spec;
  spec.option.gravity = random.vector(10);
  const double mass_scale = random.chance(0.3) ? std::pow(10, random.uniform(-3, 3)) : 1;
  const auto add = [&](int parent, std::initializer_list<JointType> types) {
    BodySpec body("b" + std::to_string(spec.bodies.size()));
    body.parent = parent, body.position = random.vector(0.4), body.orientation = random.rotation();
    const double mass = random.uniform(0.2, 3) * mass_scale;
    body.inertial = InertialSpec{mass, random.vector(0.1), random.inertia(mass), {}};
    for (const JointType type : types)
      body.joints.push_back(random_joint(random, type, body.name + "_" + std::to_string(body.joints.size()), {}));
    spec.bodies.push_back(body);
  };
  add(0, {JointType::free});
  const int branches = 2 + random.index(4);
  for (int l = 0; l < branches; ++l) {
    int parent = random.chance(0.15) ? 1 + random.index(int(spec.bodies.size()) - 1) : 1;
    const int length = 1 + random.index(5);
    for (int k = 0; k < length; ++k) {
      const int kind = random.index(8);
      if (kind < 3) add(parent, {JointType::hinge});
      if (kind == 3) add(parent, {JointType::slide});
      if (kind == 4 || kind == 5) add(parent, {JointType::ball});
      if (kind == 6) add(parent, {JointType::hinge, JointType::hinge, JointType::hinge});
      if (kind == 7) add(parent, {});
      parent = int(spec.bodies.size()) - 1;
    }
  }
  return compile(std::move(spec));
}

/// Random equalities, some of them duplicated, some soft.
EqualitySet rows_of(Random& random, const Model& model) {
  EqualitySet set = random_equalities(random, model, {.count = 1 + random.index(6)});
  const int n = model.nbody();
  for (int i = random.index(3); i > 0; --i) {
    const int a = 1 + random.index(n - 1), b = random.chance(0.6) ? 0 : random.index(n);
    if (model.bodies[a].link == model.bodies[b].link) continue;
    const Vec3d p = random.vector(0.3), q = random.vector(0.3);
    const Transformd X{rotation(random.rotation()), p};
    const bool weld = random.chance(0.5);
    for (const char* name : {"once", "again"}) weld ? set.add_weld(name, a, b, X) : set.add_connect(name, a, p, b, q);
  }
  for (int i = 0; i < set.size(); ++i) {
    if (random.chance(0.2)) set.set_softness(i, {std::pow(10, random.uniform(-7, -2)), random.uniform(0, 8)});
  }
  return set;
}

/// Joint inertia: armature alone, some drives, or stiff ones everywhere.
std::vector<double> joint_inertia(Random& random, const Model& model) {
  std::vector<double> K(model.armature.begin(), model.armature.end());
  const int kind = random.index(4);
  const double stiff = std::pow(10, random.uniform(-1, 5));
  for (const Joint& joint : model.joints) {
    if (kind == 0 || joint.type == JointType::free || (kind == 1 && random.chance(0.5))) continue;
    const double k = kind == 2 ? stiff : random.uniform(0, 100);
    for (int i = 0; i < joint.nv(); ++i) K[joint.qvel + i] += k;
  }
  return K;
}

Model random_model(unsigned seed, Random& random) {
  if (random.chance(0.5)) return floating_branches(random);
  TreeOptions options;
  options.bodies = 1 + random.index(14), options.chain = random.uniform(0, 1);
  return random_tree(seed, options);
}

template <class R>
Vector wide(std::span<const R> x) {
  Vector out(Eigen::Index(x.size()));
  for (std::size_t i = 0; i < x.size(); ++i) out[Eigen::Index(i)] = double(x[i]);
  return out;
}

struct Tally {
  int solved = 0, redundant = 0, inconsistent = 0, by_branches = 0;
  double force = 0, row = 0, error = 0;
};

/// Checks the results of the dynamics for one state.
void check(const DenseSystem& system, const ConstrainedDynamics<double>& dynamics, const std::vector<double>& qacc,
           Tally& tally) {
  const Vector a = wide<double>(qacc), x2 = wide<double>(dynamics.multiplier());
  ASSERT_TRUE(a.allFinite() && x2.allFinite());
  const KktStatus status = dynamics.status(0);
  tally.by_branches += dynamics.by_branches(0);
  const double force = system.force_residual(a, x2);
  EXPECT_LT(force, 1e-8);
  tally.force = std::max(tally.force, force);
  if (status == KktStatus::inconsistent) {
    ++tally.inconsistent;
    return;
  }
  const double row = system.row_residual(a, x2);
  EXPECT_LT(row, 1e-7);
  tally.row = std::max(tally.row, row);
  ++(status == KktStatus::solved ? tally.solved : tally.redundant);
  const double condition = system.condition();
  if (condition > 1e8) return;
  EXPECT_EQ(status, KktStatus::solved) << "condition " << condition;
  const Vector x = system.solve();
  const double error =
      (a - x.head(a.size())).cwiseAbs().maxCoeff() / std::max(1.0, x.head(a.size()).cwiseAbs().maxCoeff());
  EXPECT_LT(error, 1e-9 * std::max(condition, 100.0));
  tally.error = std::max(tally.error, error / std::max(condition, 100.0));
}

void solve_random(unsigned seed, Tally& tally) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Model model = random_model(seed, random);
  if (model.nv == 0) return;
  const EqualitySet set = rows_of(random, model);
  if (set.rows() == 0) return;
  Data data(model);
  ConstrainedDynamics<double> dynamics(model, set, data), at_once(model, set, data, false);
  std::vector<double> qacc(model.nv), other(model.nv);
  for (int call = 0; call < 4; ++call) {
    State s = random_state(random, model);
    if (random.chance(0.2)) s.qpos.assign(model.qpos0.begin(), model.qpos0.end());
    const std::vector<double> K = joint_inertia(random, model);
    const double dt = random.chance(0.5)   ? 0
                      : random.chance(0.5) ? 1e-3
                                           : 1.0 / 60,
                 drift = random.chance(0.5) ? 0.3 : 0;
    if (random.chance(0.1)) {  // a non-finite input must not affect later calls
      std::vector<double> bad(s.qvel);
      bad[random.index(model.nv)] = std::nan("");
      dynamics.accelerate(data, dt, s.qpos, bad, s.tau, K, qacc, drift);
    }
    const DenseSystem system = dense_system(model, set, s, K, dt, drift);
    dynamics.accelerate(data, dt, s.qpos, s.qvel, s.tau, K, qacc, drift);
    check(system, dynamics, qacc, tally);
    at_once.accelerate(data, dt, s.qpos, s.qvel, s.tau, K, other, drift);
    check(system, at_once, other, tally);
    EXPECT_EQ(dynamics.status(0), at_once.status(0));
    dynamics.settle(data, s.qpos, K, s.qvel);
    EXPECT_LT((system.J * wide<double>(s.qvel)).cwiseAbs().maxCoeff(), 1e-8 * (1 + wide<double>(s.qvel).norm()));
  }
}

TEST(RandomSystems, AreSolved) {
  Tally tally;
  for (unsigned seed = 0; seed < 1200; ++seed) solve_random(seed, tally);
  std::printf(
      "%d solved, %d redundant, %d inconsistent, %d by branches; residuals %.1e and %.1e, error / condition %.1e\n",
      tally.solved, tally.redundant, tally.inconsistent, tally.by_branches, tally.force, tally.row, tally.error);
  EXPECT_GT(tally.solved, 2000);
  EXPECT_GT(tally.redundant, 500);
  EXPECT_GT(tally.inconsistent, 500);
  EXPECT_GT(tally.by_branches, 60);
}

/// Two bodies on one hinge each.
Model two_hinges() {
  ModelSpec spec;
  for (int i = 1; i <= 2; ++i) {
    BodySpec body("b" + std::to_string(i));
    JointSpec joint;
    joint.name = "j" + std::to_string(i), joint.type = JointType::hinge, joint.axis = {0, 1, 0};
    body.parent = 0, body.joints = {joint};
    body.inertial = InertialSpec{1, {0.1, 0, 0}, {0.1, 0, 0, 0.1, 0, 0.1}, {}};
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

/// A violated row with zero Delassus entry is reported although other rows are merely duplicated.
TEST(RandomSystems, ADeadRowThatIsNotMetIsTold) {
  const Model model = two_hinges();
  EqualitySet set(model);
  set.add_joint("once", 0, -1, {0, 0, 0, 0, 0});
  set.add_joint("again", 0, -1, {0, 0, 0, 0, 0});
  UserRows dead;
  dead.joints = {1};
  dead.evaluate = [](auto, auto, std::span<double> phi, std::span<double> J, std::span<double> Jdot_v) {
    phi[0] = 1, J[0] = 0;
    if (!Jdot_v.empty()) Jdot_v[0] = 0;
  };
  set.add_user("dead", dead);
  Data data(model);
  ConstrainedDynamics<double> dynamics(model, set, data);
  std::vector<double> qacc(model.nv);
  dynamics.accelerate(data, 0, data.qpos, data.qvel, data.tau, data.joint_inertia, qacc, 0.1);
  EXPECT_EQ(dynamics.status(0), KktStatus::inconsistent);
}

/// In single precision the rank is limited by rounding: dependent rows must not carry forces of 1e14 N.
TEST(RandomSystems, InFloat) {
#ifdef TARSUS_DOUBLE_ONLY
  GTEST_SKIP() << "double only";
#endif
  int solved = 0, redundant = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Model model = floating_branches(random);
    const EqualitySet set = rows_of(random, model);
    if (set.rows() == 0) continue;
    BasicData<float> data(model);
    ConstrainedDynamics<float> dynamics(model, set, data);
    const State s = random_state(random, model);
    const std::vector<float> qpos(s.qpos.begin(), s.qpos.end()), qvel(s.qvel.begin(), s.qvel.end()),
        tau(s.tau.begin(), s.tau.end()), K(model.armature.begin(), model.armature.end());
    std::vector<float> qacc(model.nv);
    dynamics.accelerate(data, 1.0 / 60, qpos, qvel, tau, K, qacc);
    if (dynamics.status(0) > KktStatus::redundant) continue;
    ++(dynamics.status(0) == KktStatus::solved ? solved : redundant);
    const State same{{qpos.begin(), qpos.end()}, {qvel.begin(), qvel.end()}, {}, {tau.begin(), tau.end()}};
    const DenseSystem system = dense_system(model, set, same, std::vector<double>(K.begin(), K.end()), 1.0 / 60, 0);
    EXPECT_LT(system.row_residual(wide<float>(qacc), wide<float>(dynamics.multiplier())), 0.1);
  }
  std::printf("%d solved, %d redundant\n", solved, redundant);
  EXPECT_GT(solved, 100);
  EXPECT_GT(redundant, 50);
}

/// The result of close() for a world does not depend on its neighbours, even if no pose satisfies their rows.
TEST(RandomSystems, LanesCloseAsTheyWouldWithOtherNeighbours) {
  const Model model = compile(read_model(TARSUS_SOURCE_DIR "/models/humanoid.xml"));
  Random random(4);
  const std::vector<double> start = random_qpos(random, model);
  Data probe(model);
  kinematics<double>(model, probe, start);
  EqualitySet set(model);
  for (const char* name : {"left_foot", "right_foot"}) {
    const int body = model.body_id(name);
    const Transformd X = body_pose(model, probe, body);
    set.add_weld(name, body, 0, {transpose(X.R), -transpose_mul(X.R, X.p)});
  }
  constexpr int kWorlds = 8;
  Data data(model, kWorlds);
  ConstrainedDynamics<double> loops(model, set, data);
  AlignedVector<double> qpos(data.size(model.nq)), v(data.size(model.nv)), next(qpos), K(v);
  for (int w = 0; w < kWorlds; ++w) {
    data.set(qpos, model.nq, w, start), data.set(K, model.nv, w, model.armature);
    data.set(v, model.nv, w, random_vector(random, model.nv, w % 2 ? 1 : 0.1));
  }
  AlignedVector<double> moved(v), other_v(v), other_next(qpos);
  loops.close(data, 0.01, qpos, K, moved, next);
  for (const int w : {1, 5}) data.set(other_v, model.nv, w, random_vector(random, model.nv, 1e3));
  loops.close(data, 0.01, qpos, K, other_v, other_next);
  EXPECT_FALSE(loops.closed(1));
  std::vector<double> a(model.nv), b(model.nv);
  for (const int w : {0, 2, 3, 4, 6, 7}) {
    EXPECT_TRUE(loops.closed(w)) << w;
    data.get(moved, model.nv, w, a), data.get(other_v, model.nv, w, b);
    EXPECT_EQ(a, b) << "world " << w;
  }
  for (const double x : other_next) EXPECT_TRUE(std::isfinite(x));
}

}  // namespace
}  // namespace tarsus::test
