// Random trees with closed loops, joint limits, dry friction, contacts and drives at their force limits, stepped:
// whatever the report says is so. Nothing that is not finite comes out with status ok.
#include <gtest/gtest.h>

#include "support/dense_system.hpp"
#include "support/random_equalities.hpp"
#include "tarsus/sim/step.hpp"

namespace tarsus::test {
namespace {

/// Bodies with spheres above a floor.
Model random_scene(Random& random) {
  ModelSpec spec;
  spec.option.gravity = {0, 0, -9.81};
  GeomSpec floor;
  floor.type = GeomType::plane, floor.position = {0, 0, random.uniform(-1.2, -0.3)};
  spec.bodies[0].geoms.push_back(floor);
  const int bodies = 2 + random.index(10);
  for (int i = 1; i <= bodies; ++i) {
    BodySpec body("b" + std::to_string(i));
    body.parent = i == 1 ? 0 : random.chance(0.5) ? i - 1 : random.index(i);
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
    if (random.chance(0.6)) {
      GeomSpec ball;
      ball.size = {random.uniform(0.02, 0.08), 0, 0}, ball.position = random.vector(0.15);
      body.geoms.push_back(ball);
    }
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

/// Points and frames that coincide in the model's own posture.
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

Drives random_drives(Random& random, const Model& model, bool limited) {
  Drives drives = Drives::uniform(model, std::pow(10, random.uniform(0, 4)), std::pow(10, random.uniform(-1, 2)), 0, 0);
  if (!limited) return drives;
  drives.force_limit.assign(model.nv, kInfinity);
  for (const Joint& joint : model.joints) {
    const double most = joint.type == JointType::free ? kInfinity : std::pow(10, random.uniform(-1, 2));
    for (int i = 0; i < joint.nv(); ++i) drives.force_limit[joint.qvel + i] = most;
  }
  return drives;
}

struct Tally {
  int steps = 0, unsettled = 0, rows_open = 0, stopped = 0;
  double loops = 0, rows = 0;
};

/// The loops' rows at the end of the step, J q̈ - Σ x₂ = y₂ with q̈ = (v⁺ - v)/h, of the largest term; at least 1 m/s².
double loops_missed(const Model& model, const EqualitySet& set, const Data& data, const State& before, double dt,
                    const ConstrainedDynamics<double>& loops) {
  const DenseSystem system = dense_system(model, set, before, data.joint_inertia, dt, 0);
  const Eigen::VectorXd v0 = Eigen::Map<const Eigen::VectorXd>(before.qvel.data(), model.nv) / dt,
                        a = Eigen::Map<const Eigen::VectorXd>(data.qvel.data(), model.nv) / dt - v0,
                        x2 = Eigen::Map<const Eigen::VectorXd>(loops.multiplier().data(), set.rows());
  const double largest = (system.J.cwiseAbs() * (a.cwiseAbs() + v0.cwiseAbs()) + system.y2.cwiseAbs()).maxCoeff();
  return (system.J * a - system.sigma.cwiseProduct(x2) - system.y2).cwiseAbs().maxCoeff() / std::max(largest, 1.0);
}

double wildest(const Data& data) {
  double most = 0;
  for (const double v : data.qvel) most = std::max(most, std::abs(v));
  return most;
}

void run(unsigned seed, Tally& tally) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Model model = random_scene(random);
  const EqualitySet set = closed_loops(random, model);
  Data data(model);
  StepOptions options;
  options.dt = random.chance(0.5) ? 1e-3 : 0.01;
  options.loops = random.chance(0.7) ? LoopMode::spook : LoopMode::shake;
  options.equalities = &set;
  options.rows.contacts = options.rows.joints = true;
  Stepper<double> stepper(model, data, options);
  const Drives drives = random_drives(random, model, random.chance(0.5));
  AlignedVector<double> target(data.qpos);
  for (const Joint& joint : model.joints) {
    if (joint.nv() == 1) target[joint.qpos] += random.uniform(-0.5, 0.5);
  }
  for (double& v : data.qvel) v = random.uniform(-0.5, 0.5);
  for (int step = 0; step < 60; ++step) {
    State before;
    before.qpos.assign(data.qpos.begin(), data.qpos.end()), before.qvel.assign(data.qvel.begin(), data.qvel.end());
    before.tau.assign(model.nv, 0);
    const int bad = stepper.step(data, drives, target);
    for (const double x : data.qpos) ASSERT_TRUE(std::isfinite(x)) << "step " << step;
    tally.stopped += bad;
    if (bad || wildest(data) > 1e3) return;  // a collision that is not resolved: nothing to hold anybody to
    ++tally.steps;
    const RowsReport& rows = stepper.rows()->report();
    tally.rows_open += rows.status != StepStatus::converged;
    if (rows.status == StepStatus::converged) {
      EXPECT_LE(rows.residual, 3e-6) << "step " << step;
      tally.rows = std::max(tally.rows, rows.residual);
    }
    if (!stepper.loops() || options.loops != LoopMode::spook) continue;
    tally.unsettled += stepper.loops()->status(0) > KktStatus::redundant;
    if (stepper.loops()->status(0) > KktStatus::redundant || rows.status != StepStatus::converged) continue;
    const double missed = loops_missed(model, set, data, before, options.dt, *stepper.loops());
    EXPECT_LT(missed, 1e-3) << "step " << step;
    tally.loops = std::max(tally.loops, missed);
  }
}

TEST(RandomScenes, ReportsAreTrue) {
  Tally tally;
  for (unsigned seed = 0; seed < 300; ++seed) run(seed, tally);
  std::printf(
      "%d steps; loops missed by %.1e at most, contacts and limits by %.1e m/s; %d steps say that loops do not "
      "hold, %d that rows do not, %d worlds stopped\n",
      tally.steps, tally.loops, tally.rows, tally.unsettled, tally.rows_open, tally.stopped);
  EXPECT_GT(tally.steps, 15000);
  EXPECT_EQ(tally.rows_open, 0);
  EXPECT_LE(tally.unsettled, tally.steps / 50);
}

}  // namespace
}  // namespace tarsus::test
