// Steps of random trees with closed loops, joint limits, dry friction, contacts and drives at their force limits: the
// report must be true, and no result with status ok may be non-finite.
#include <gtest/gtest.h>

#include "support/dense_solve.hpp"
#include "support/dense_system.hpp"
#include "support/random_equalities.hpp"
#include "tarsus/sim/batch.hpp"

namespace tarsus::test {
namespace {

/// The range of the random scenes: how hard a scene is.
struct Hardness {
  bool shapes = false;  ///< of all kinds, with torsion and rolling, and some trees; else a tree with spheres
  double kp = 4, kd = 2, rate = 0.5;  ///< largest log₁₀ of drives' gains; largest rate at the start [rad/s | m/s]
  std::vector<double> steps = {1e-3, 0.01};  ///< [s]
};
const Hardness kHard{true, 6, 4, 5, {1e-3, 5e-3, 1.0 / 60, 1.0 / 30}};

/// A sphere, or a shape of any convex kind.
GeomSpec random_shape(Random& random, bool any) {
  constexpr GeomType kTypes[] = {GeomType::sphere, GeomType::capsule, GeomType::box, GeomType::cylinder,
                                 GeomType::ellipsoid};
  constexpr int kDimensions[] = {1, 3, 4, 6};
  GeomSpec shape;
  shape.size = {random.uniform(0.02, 0.08), 0, 0}, shape.position = random.vector(0.15);
  if (!any) return shape;
  shape.type = kTypes[random.index(5)], shape.orientation = random.rotation();
  shape.size[1] = random.uniform(0.02, 0.15), shape.size[2] = random.uniform(0.02, 0.1);
  shape.friction = {random.uniform(0, 1.5), random.uniform(0, 0.02), random.uniform(0, 0.01)};
  shape.condim = kDimensions[random.index(4)];
  return shape;
}

/// Bodies above a floor.
Model random_scene(Random& random, const Hardness& hardness) {
  ModelSpec spec;
  spec.option.gravity = {0, 0, -9.81};
  GeomSpec floor;
  floor.type = GeomType::plane, floor.position = {0, 0, random.uniform(-1.2, -0.3)};
  spec.bodies[0].geoms.push_back(floor);
  const int bodies = 2 + random.index(10);
  for (int i = 1; i <= bodies; ++i) {
    BodySpec body("b" + std::to_string(i));
    const bool roots = hardness.shapes && random.chance(0.2);
    body.parent = i == 1 || roots ? 0 : random.chance(0.5) ? i - 1 : random.index(i);
    body.position = random.vector(0.3), body.orientation = random.rotation();
    TreeOptions options;
    options.welds = false;
    add_joints(random, body, i, options);
    for (JointSpec& joint : body.joints) {
      const bool axial = joint.type == JointType::hinge || joint.type == JointType::slide;
      if (axial && random.chance(0.4)) {
        joint.limited = true;
        joint.range = {joint.reference - random.uniform(0.05, 1), joint.reference + random.uniform(0.05, 1)};
      }
      if (joint.type != JointType::free && random.chance(0.2)) joint.friction_loss = random.uniform(0, 2);
    }
    const double mass = random.uniform(0.2, 3);
    body.inertial = InertialSpec{mass, random.vector(0.05), random.inertia(mass), {}};
    if (random.chance(0.6)) body.geoms.push_back(random_shape(random, hardness.shapes));
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

/// Points and frames that coincide in the model's initial pose.
EqualitySet closed_loops(Random& random, const Model& model) {
  Data data(model);
  kinematics<double>(model, data, model.qpos0);
  EqualitySet set(model);
  for (int i = random.index(4); i > 0; --i) {
    const int a = 1 + random.index(model.nbody() - 1), b = 1 + random.index(model.nbody() - 1);
    if (model.bodies[a].link == model.bodies[b].link) continue;
    const Transformd A = body_pose(model, data, a), B = body_pose(model, data, b);
    const Vec3d p = random.vector(0.2), at = A.R * p + A.p, q = transpose_mul(B.R, at - B.p);
    const std::string name = "c" + std::to_string(i);
    const int kind = random.index(4);
    if (kind == 0) set.add_connect(name, a, p, b, q);
    if (kind == 1) set.add_weld(name, a, b, {transpose(A.R) * B.R, transpose_mul(A.R, B.p - A.p)});
    if (kind == 2) set.add_distance(name, a, p, 0, at + Vec3d{0, 0, 0.4}, 0.4);
    if (kind == 3) set.add_point_on_plane(name, a, p, b, q, random.direction());
  }
  return set;
}

Drives random_drives(Random& random, const Model& model, const Hardness& hardness) {
  const bool limited = random.chance(0.5);
  Drives drives = Drives::uniform(model, std::pow(10, random.uniform(0, hardness.kp)),
                                  std::pow(10, random.uniform(-1, hardness.kd)), 0, 0);
  if (!limited) return drives;
  drives.force_limit.assign(model.nv, kInfinity);
  for (const Joint& joint : model.joints) {
    const double most = joint.type == JointType::free ? kInfinity : std::pow(10, random.uniform(-1, 2));
    for (int i = 0; i < joint.nv(); ++i) drives.force_limit[joint.qvel + i] = most;
  }
  return drives;
}

struct Tally {
  int steps = 0, closed = 0, missed = 0, unsettled = 0, unreported = 0, contradict = 0, rows_open = 0, stopped = 0;
  double loops = 0, movable = 0, rows = 0;
};

/// The residual of the loops' rows at the end of the step, J q̈ - Σ x₂ - y₂ with q̈ = (v⁺ - v)/h, over the largest
/// term; the latter is at least 1 m/s².
struct Miss {
  double all = 0;
  double movable = 0;  ///< without the components with J M̂⁻¹ Jᵀ x₂ = 0, whose right sides contradict one another
  double speed = 0;    ///< `all` as a velocity [m/s | rad/s]
};
Miss loops_missed(const Model& model, const EqualitySet& set, const Data& data, const State& before, double dt,
                  const ConstrainedDynamics<double>& loops) {
  const DenseSystem system = dense_system(model, set, before, data.joint_inertia, dt, 0, loops.ahead());
  const Eigen::VectorXd v0 = Eigen::Map<const Eigen::VectorXd>(before.qvel.data(), model.nv) / dt,
                        a = Eigen::Map<const Eigen::VectorXd>(data.qacc.data(), model.nv),
                        x2 = Eigen::Map<const Eigen::VectorXd>(loops.multiplier().data(), set.rows());
  Eigen::MatrixXd A = system.J * spd_solve(system.M, system.J.transpose());
  A.diagonal() += system.sigma;
  const double largest =
      std::max({(system.J.cwiseAbs() * (a.cwiseAbs() + v0.cwiseAbs()) + system.y2.cwiseAbs()).maxCoeff(),
                (A.cwiseAbs() * x2.cwiseAbs()).maxCoeff(), 1.0});
  const Eigen::VectorXd miss = (system.J * a - system.sigma.cwiseProduct(x2) - system.y2) / largest;
  Eigen::VectorXd scale = Eigen::VectorXd::Zero(set.rows());  // rows of one unit have one, as a solver's least squares
  for (int e = 0; e < set.size(); ++e) {
    for (int k = 0; k < set[e].nrow; k += 3) {
      const int rows = std::min(3, set[e].nrow - k);
      const double most = A.diagonal().segment(set[e].first_row + k, rows).maxCoeff();
      if (most > 1e-9 * A.diagonal().maxCoeff()) scale.segment(set[e].first_row + k, rows).setConstant(std::sqrt(most));
    }
  }
  const Eigen::VectorXd inverse = scale.unaryExpr([](double s) { return s > 0 ? 1 / s : 0; });
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> parts(inverse.asDiagonal() * A * inverse.asDiagonal());
  Eigen::VectorXd part = parts.eigenvectors().transpose() * inverse.cwiseProduct(miss);
  for (int i = 0; i < part.size(); ++i) part[i] *= parts.eigenvalues()[i] > 1e-9;
  const double all = miss.cwiseAbs().maxCoeff();
  return {all, scale.cwiseProduct(parts.eigenvectors() * part).cwiseAbs().maxCoeff(), all * largest * dt};
}

void run(unsigned seed, const Hardness& hardness, Tally& tally) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Model model = random_scene(random, hardness);
  const EqualitySet set = closed_loops(random, model);
  Data data(model);
  StepOptions options;
  options.dt = hardness.steps[random.index(int(hardness.steps.size()))];
  options.loops = random.chance(0.7) ? LoopMode::spook : LoopMode::shake;
  options.equalities = &set;
  options.rows.contacts = options.rows.joints = true;
  Stepper<double> stepper(model, data, options);
  const Drives drives = random_drives(random, model, hardness);
  AlignedVector<double> target(data.qpos);
  for (const Joint& joint : model.joints) {
    if (joint.nv() == 1) target[joint.qpos] += random.uniform(-0.5, 0.5);
  }
  for (double& v : data.qvel) v = random.uniform(-hardness.rate, hardness.rate);
  for (int step = 0; step < 60; ++step) {
    State before;
    before.qpos.assign(data.qpos.begin(), data.qpos.end()), before.qvel.assign(data.qvel.begin(), data.qvel.end());
    before.tau.assign(model.nv, 0);
    if (stepper.step(data, drives, target) > 0) {
      EXPECT_EQ(stepper.status(0), WorldStatus::open_loop) << "step " << step;  // SHAKE, links that turn by a radian
      return void(++tally.stopped);
    }
    for (const double x : data.qpos) ASSERT_TRUE(std::isfinite(x)) << "step " << step;
    ++tally.steps;
    const RowsReport& rows = stepper.rows()->report();
    tally.rows_open += rows.status != StepStatus::converged;
    tally.rows = std::max(tally.rows, rows.residual);
    if (!stepper.loops() || options.loops != LoopMode::spook) continue;
    const In<double> solved = stepper.solved_qvel(data);
    for (int v = 0; v < model.nv; ++v) before.qvel[v] = solved[v] - options.dt * data.qacc[v];
    const Miss miss = loops_missed(model, set, data, before, options.dt, *stepper.loops());
    const KktStatus status = stepper.loops()->status(0);
    tally.unsettled += status > (miss.speed > 0.9e-5 ? KktStatus::inconsistent : KktStatus::redundant);
    tally.unreported += miss.speed > 1.1e-5 && status < KktStatus::inconsistent;
    tally.contradict += status == KktStatus::inconsistent;
    ++tally.closed, tally.missed += miss.movable > 1e-10;
    tally.loops = std::max(tally.loops, miss.all), tally.movable = std::max(tally.movable, miss.movable);
  }
}

void laws_hold(int seeds, const Hardness& hardness) {
  Tally tally;
  for (int seed = 0; seed < seeds; ++seed) run(unsigned(seed), hardness, tally);
  std::printf(
      "%d steps, contacts, limits and drives missed by %.1e m/s at most; %d with loops, missed by %.1e of the largest "
      "term at most, %.1e where they can be met, by more than 1e-10 in %d, "
      "contradictory in %d; %d worlds stopped\n",
      tally.steps, tally.rows, tally.closed, tally.loops, tally.movable, tally.missed, tally.contradict, tally.stopped);
  EXPECT_EQ(tally.rows_open, 0);
  EXPECT_LE(tally.rows, 1e-6);
  EXPECT_EQ(tally.unsettled, 0);
  EXPECT_EQ(tally.unreported, 0);
  EXPECT_GT(tally.closed, 20 * seeds);
  EXPECT_LE(tally.missed, tally.closed / 500);
  EXPECT_LE(tally.movable, 1e-7);
  EXPECT_LE(tally.loops, 2e-3);  // contradicting rows
  EXPECT_LE(tally.stopped, seeds / 100);
}

TEST(RandomScenes, LawsHoldAtTheEndOfEveryStep) { laws_hold(400, {}); }
TEST(RandomScenes, LawsHoldWhereAllIsHard) { laws_hold(400, kHard); }

template <class R>
void lanes_hold(int seeds, double tolerance) {
  int steps = 0, unsolved = 0, stopped = 0;
  double residual = 0;
  for (int seed = 0; seed < seeds; ++seed) {
    Random random(1000 + unsigned(seed));
    const Model model = random_scene(random, kHard);
    const EqualitySet set = closed_loops(random, model);
    BatchOptions options;
    options.step.dt = kHard.steps[random.index(int(kHard.steps.size()))];
    options.step.equalities = &set, options.step.rows.contacts = options.step.rows.joints = true;
    options.drives = random_drives(random, model, kHard);
    Batch<R> batch(model, 3, options);
    for (R& q : batch.qpos_target()) q += R(random.uniform(-0.1, 0.1));
    for (R& v : batch.qvel()) v = R(random.uniform(-kHard.rate, kHard.rate));
    for (int step = 0; step < 60; ++step) {
      batch.step();
      for (int w = 0; w < 3; ++w, ++steps) {
        residual = std::max(residual, batch.reports()[w].residual), unsolved += batch.reports()[w].unsolved;
      }
    }
    for (int w = 0; w < 3; ++w) stopped += batch.status(w) != WorldStatus::ok;
  }
  std::printf("%d steps, %d not solved, missed by %.1e m/s at most; %d worlds stopped\n", steps, unsolved, residual,
              stopped);
  EXPECT_EQ(unsolved, 0);
  EXPECT_LE(residual, tolerance);
  EXPECT_EQ(stopped, 0);
}

TEST(RandomScenes, LawsHoldInLanesWhereAllIsHard) {
  lanes_hold<double>(200, 1e-6);
#ifndef TARSUS_DOUBLE_ONLY
  lanes_hold<float>(200, 1e-4);
#endif
}

}  // namespace
}  // namespace tarsus::test
