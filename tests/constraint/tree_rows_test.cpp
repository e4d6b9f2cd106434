// Contacts, limits and dry friction on trees, judged by dense algebra made here from jacobian() and minv().
#include <gtest/gtest.h>

#include <cmath>

#include "support/contact_world.hpp"

namespace tarsus {
namespace {

using test::Random;

using test::as_vector, test::World;

TEST(TreeRows, SolvesContactsOnRandomTrees) {
  int touching = 0, sliding = 0, sticking = 0, unsolved = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    World w(random, test::random_tree(seed, {.bodies = 8}));
    const std::vector<LinkContact> contacts = test::random_contacts(random, w, 6);
    TreeRows<double> rows(w.model, {.limits = false,
                                    .friction_loss = false,
                                    .limit_spook = {},
                                    .solve = {.max_iterations = 100000, .tolerance = 1e-11}});
    rows.build(w.data, w.h, w.data.qpos, w.data.qvel, w.velocity, contacts);
    const AlignedVector<double> free = w.velocity;
    rows.solve(w.data, w.data.qpos, w.K, w.velocity, false);
    if (rows.report().status !=
        RowSolveStatus::converged) {  // Coulomb friction need not have a solution that sweeps find
      ++unsolved;
      continue;
    }

    // The change of velocity is that of the reported forces, through M̂⁻¹.
    Eigen::VectorXd impulse = Eigen::VectorXd::Zero(w.model.nv);
    const std::span<const LinkContact> used = rows.contacts();
    for (int i = 0; i < int(used.size()); ++i) {
      const Eigen::MatrixXd J =
          w.point_jacobian(used[i].a, used[i].point.position) - w.point_jacobian(used[i].b, used[i].point.position);
      impulse += w.h * J.transpose() * as_vector(rows.force(i));
    }
    AlignedVector<double> x(impulse.data(), impulse.data() + impulse.size()), sum(w.model.nv, 0.0);
    rows.add_force(w.data, sum);
    for (int k = 0; k < w.model.nv; ++k) ASSERT_NEAR(sum[k] * w.h, impulse[k], 1e-9 * (1 + impulse.norm()));
    factor<double>(w.model, w.data, w.data.qpos, w.K);
    minv<double>(w.model, w.data, x, x);
    for (int k = 0; k < w.model.nv; ++k) ASSERT_NEAR(w.velocity[k] - free[k], x[k], 1e-8);

    // Complementarity, contact by contact.
    for (int i = 0; i < int(used.size()); ++i) {
      const LinkContact& c = used[i];
      const Eigen::MatrixXd J = w.point_jacobian(c.a, c.point.position) - w.point_jacobian(c.b, c.point.position);
      const Eigen::Vector3d n = as_vector(c.point.normal), lambda = w.h * as_vector(rows.force(i));
      const Eigen::Vector3d speed = J * as_vector(w.velocity), before = J * as_vector(w.data.qvel);
      const double g = c.point.distance, share = 1 / (1 + 4 * kDampingSteps);
      const double b = g > 0 ? -g / w.h : share * (n.dot(before) - 4 / w.h * g);
      const double sigma = g > 0 ? 0 : 4 * c.spook.compliance * share / (w.h * w.h);
      const double normal = lambda.dot(n), gap = n.dot(speed) + sigma * normal - b;
      EXPECT_GE(normal, -1e-12);
      EXPECT_GE(gap, -1e-9);
      EXPECT_NEAR(normal * gap, 0, 1e-9);
      touching += normal > 0;
      const Eigen::Vector3d tangential = lambda - normal * n, slip = speed - n.dot(speed) * n;
      if (c.dimension == 1) {
        EXPECT_LT(tangential.norm(), 1e-12);
        continue;
      }
      EXPECT_LE(tangential.norm(), c.friction * normal + 1e-10);
      EXPECT_NEAR(slip.norm() * tangential.norm() + slip.dot(tangential), 0, 1e-8);  // friction opposes what slides
      if (slip.norm() > 1e-6) {
        EXPECT_NEAR(tangential.norm(), c.friction * normal, 1e-7);
        sliding += normal > 0;
      } else {
        sticking += normal > 0;
      }
    }
  }
  EXPECT_LE(unsolved, 3);
  EXPECT_GT(touching, 50);
  EXPECT_GT(sliding, 20);
  EXPECT_GT(sticking, 5);
}

TEST(TreeRows, NewtonAndGaussSeidelAgree) {
  // The second half with moments: torsion and rolling.
  int compared = 0, rounds = 0, unsolved = 0, turning = 0;
  for (unsigned seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    World w(random, test::random_tree(seed, {.bodies = 8}));
    std::vector<LinkContact> contacts = test::random_contacts(random, w, 6);
    for (LinkContact& c : contacts) c.b = random.chance(0.7) ? -1 : c.b, c.friction *= 0.5;
    for (LinkContact& c : contacts) {
      if (seed <= 200) continue;
      constexpr int kDimensions[] = {1, 3, 4, 6};
      c.dimension = kDimensions[random.index(4)];
      c.torsional = random.uniform(0, 0.2), c.rolling = random.chance(0.8) ? random.uniform(0, 0.1) : 0;
      turning += c.dimension > 3;
    }
    for (Joint& j : w.model.joints) {  // some joints beyond their ranges, some with dry friction
      if (j.type == JointType::free) continue;
      if (random.chance(0.4)) j.friction_loss = random.uniform(0, 20);
      if (random.chance(0.4)) j.limited = true, j.range = {0.005, 0.3};
    }
    const AlignedVector<double> free = w.velocity;
    AlignedVector<double> answer[2];
    RowsReport report[2];
    for (const RowsMethod method : {RowsMethod::newton, RowsMethod::gauss_seidel}) {
      const int m = method == RowsMethod::newton ? 0 : 1;
      TreeRows<double> rows(
          w.model, {.limit_spook = {}, .solve = {.max_iterations = 100000, .tolerance = 1e-10}, .method = method});
      answer[m] = free;
      w.advance_free();
      rows.build(w.data, w.h, w.data.qpos, w.data.qvel, free, contacts);
      rows.solve(w.data, w.data.qpos, w.K, answer[m], false);
      report[m] = rows.report();
      if (report[m].status == RowSolveStatus::converged) {
        EXPECT_LT(rows.residual(w.data, w.data.qpos, answer[m]), 1e-7);
      }
    }
    if (report[0].rows == 0) continue;
    if (report[0].status != RowSolveStatus::converged || report[0].method != RowsMethod::newton) {
      ++unsolved;
      continue;
    }
    if (report[1].status != RowSolveStatus::converged) continue;
    ++compared, rounds += report[0].iterations;
    EXPECT_EQ(report[0].method, RowsMethod::newton);
    EXPECT_LT(test::relative_error(answer[0], answer[1]), 1e-5);  // from residuals of 1e-10 m/s
  }
  EXPECT_LT(unsolved, 60);
  EXPECT_LT(double(rounds) / compared, 20);  // from nothing; the next step starts from this one's answer
  EXPECT_GT(compared, 300);
  EXPECT_GT(turning, 300);
  RecordProperty("compared", compared), RecordProperty("unsolved", unsolved);
}

TEST(TreeRows, OrderOfContactsDoesNotMatterAndWarmStartsSave) {
  const unsigned seed = 5;
  Random random(seed);
  World w(random, test::random_tree(seed, {.bodies = 8}));
  std::vector<LinkContact> contacts = test::random_contacts(random, w, 8);
  const RowsOptions options{.limits = false,
                            .friction_loss = false,
                            .limit_spook = {},
                            .solve = {.max_iterations = 100000, .tolerance = 1e-10}};
  TreeRows<double> rows(w.model, options), again(w.model, options);
  const AlignedVector<double> free = w.velocity;
  const auto solve = [&](TreeRows<double>& solver) {
    AlignedVector<double> v = free;
    kinematics<double>(w.model, w.data, w.data.qpos, w.data.qvel);
    solver.build(w.data, w.h, w.data.qpos, w.data.qvel, v, contacts);
    solver.solve(w.data, w.data.qpos, w.K, v, false);
    return v;
  };
  const AlignedVector<double> first = solve(rows);
  std::reverse(contacts.begin(), contacts.end());
  for (LinkContact& c : contacts) {
    if (c.b >= 0) std::swap(c.a, c.b), c.point.normal = -c.point.normal;
  }
  EXPECT_EQ(solve(again), first);
  const int cold = rows.report().iterations;
  const AlignedVector<double> warm = solve(rows);
  EXPECT_LT(rows.report().iterations, cold / 2 + 2);
  for (int k = 0; k < w.model.nv; ++k) EXPECT_NEAR(warm[k], first[k], 1e-7);
  for (LinkContact& c : contacts) c.identity += 1000;  // the same points on other features
  const AlignedVector<double> rolled = solve(rows);
  EXPECT_LT(rows.report().iterations, cold / 2 + 2);
  for (int k = 0; k < w.model.nv; ++k) EXPECT_NEAR(rolled[k], first[k], 1e-7);
}

/// One joint on a world body, of unit mass or inertia.
Model one_joint(JointSpec joint) {
  ModelSpec spec;
  BodySpec body("body");
  body.parent = 0;
  body.joints = {joint};
  body.inertial = InertialSpec{2, {0, 0, 0}, {0.5, 0, 0, 0.5, 0, 0.5}, {}};
  spec.bodies.push_back(body);
  spec.option.gravity = {0, 0, 0};
  return compile(spec);
}

/// Steps of v⁺ = v + h M⁻¹ (τ + Jᵀλ), q⁺ = q ⊞ h v⁺ of one joint under a constant force.
struct Simulation {
  Model model;
  Data data;
  TreeRows<double> rows;
  AlignedVector<double> force;
  double h;

  Simulation(const Model& m, double step)
      : model(m),
        data(model),
        rows(model, {.limit_spook = {}, .solve = {.max_iterations = 200, .tolerance = 1e-10}}),
        force(model.nv, 0.0),
        h(step) {}
  void step() {
    AlignedVector<double> v(data.qvel), qacc(model.nv);
    kinematics<double>(model, data, data.qpos, data.qvel);
    aba<double>(model, data, data.qpos, data.qvel, force, qacc);
    for (int k = 0; k < model.nv; ++k) v[k] += h * qacc[k];
    kinematics<double>(model, data, data.qpos, data.qvel);
    rows.build(data, h, data.qpos, data.qvel, v, {});
    rows.solve(data, data.qpos, model.armature, v, false);
    std::copy(v.begin(), v.end(), data.qvel.begin());
    integrate<double>(model, data, data.qpos, v, h, data.qpos);
  }
};

TEST(TreeRows, JointsStopAtTheirLimits) {
  JointSpec slide;
  slide.name = "rail", slide.type = JointType::slide, slide.limited = true, slide.range = {-0.4, 0.3};
  for (const double side : {1.0, -1.0}) {
    Simulation run(one_joint(slide), 0.01);
    run.force[0] = side * 5;
    double farthest = 0;
    for (int i = 0; i < 400; ++i) run.step(), farthest = std::max(farthest, side * run.data.qpos[0]);
    EXPECT_NEAR(run.data.qpos[0], side > 0 ? 0.3 : -0.4, 1e-8);
    const double limit = side > 0 ? 0.3 : 0.4;
    EXPECT_LT(farthest, limit + run.h * std::sqrt(2 * 2.5 * limit) / 17);  // SPOOK keeps 1/17 of the speed for one step
    EXPECT_EQ(run.rows.report().limits, 1);
    AlignedVector<double> holding(1, 0.0);
    run.rows.add_force(run.data, holding);
    EXPECT_NEAR(holding[0], -side * 5, 1e-6);
  }
  JointSpec ball;
  ball.name = "socket", ball.type = JointType::ball, ball.limited = true, ball.range = {0, 0.7};
  Simulation run(one_joint(ball), 0.01);
  run.force = {0.3, -0.2, 0.1};
  for (int i = 0; i < 2000; ++i) run.step();
  const Vec3d turn = log_map(Quatd{run.data.qpos[0], run.data.qpos[1], run.data.qpos[2], run.data.qpos[3]});
  EXPECT_NEAR(norm(turn), 0.7, 1e-6);
}

TEST(TreeRows, DryFrictionHoldsAndStops) {
  JointSpec slide;
  slide.name = "rail", slide.type = JointType::slide, slide.friction_loss = 3;
  Simulation held(one_joint(slide), 0.01);
  held.force[0] = 2.9;
  for (int i = 0; i < 100; ++i) held.step();
  EXPECT_NEAR(held.data.qvel[0], 0, 1e-9);
  held.force[0] = 5;  // (5 - 3) N on 2 kg
  for (int i = 0; i < 100; ++i) held.step();
  EXPECT_NEAR(held.data.qvel[0], 1, 1e-8);
  held.force[0] = 0;
  for (int i = 0; i < 66; ++i) held.step();
  EXPECT_NEAR(held.data.qvel[0], 0.01, 1e-9);
  for (int i = 0; i < 2; ++i) held.step();
  EXPECT_NEAR(held.data.qvel[0], 0, 1e-9);
}

}  // namespace
}  // namespace tarsus
