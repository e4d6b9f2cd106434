// Contacts of free bodies, solved in SIMD lanes, against dense Newton on rows that are built from the world's contacts.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "support/contact_rows.hpp"
#include "tarsus/baselines/row_solver.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/rigid_model.hpp"

namespace tarsus {
namespace {

/// The rows of a step of `iterations` sweeps that starts without impulses, after `settle` seconds of the scene.
test::ContactRows rows_after(RigidScene scene, double settle, int iterations) {
  RigidWorld<double> world = make_world<double>(scene);
  for (double t = 0; t < settle - 0.5 * scene.options.dt; t += scene.options.dt) world.step();
  world.options().iterations = iterations, world.options().tolerance = 1e-11, world.options().warm_start = false;
  // Spins are slow, so that bodies do not respond to the contacts (decision 417): the rows know the forces alone.
  for (RigidBody& b : world.bodies()) {
    if (!b.isotropic()) b.angular_velocity = b.angular_velocity * (0.1 / std::max(norm(b.angular_velocity), 0.1));
  }
  scene.bodies = world.bodies();
  EXPECT_EQ(world.step().status, WorldStatus::ok);
  return test::contact_rows(scene, world);
}

TEST(NewtonOracle, LanesAgreeWithIt) {
  RigidScene balls = ball_drop(3, 3);
  RigidScene boxes = box_pyramid(3);  // 30 contacts, which converge slowly to nine digits with any solver
  RigidScene mixed = ball_drop(2, 2);
  mixed.add({ShapeType::box, {0.4, 0.5, 0.6}}, 2, {0.1, 0.2, 3.2}, axis_angle({1, 1, 0}, 0.4));
  mixed.add({ShapeType::capsule, {0.2, 0.5, 0}}, 1, {0.1, -0.3, 4.2}, axis_angle({1, 0, 0}, 1.4));
  RigidScene turning = mixed;
  turning.surfaces[0].torsional = 0.03, turning.surfaces[0].rolling = 0.02;
  const char* names[] = {"balls", "boxes", "mixed", "turning"};
  int which = 0;
  for (RigidScene* scene : {&balls, &boxes, &mixed, &turning}) {
    SCOPED_TRACE(names[which++]);
    scene->options.relative_compliance = 1e-4;  // Σ > 0: velocities are unique
    for (double settle : {0.35, 0.8}) {
      const test::ContactRows rows = rows_after(*scene, settle, 20000);
      ASSERT_GT(rows.problem.nrow(), 10);
      EXPECT_LT(natural_residual(rows.problem, rows.reached, rows.multiplier), 1e-7);
      std::vector<double> u = rows.u, multiplier(rows.multiplier.size(), 0.0);
      const RowSolveReport r =
          make_row_solver("newton")->solve(rows.problem, u, multiplier, {.max_iterations = 100, .tolerance = 1e-11});
      EXPECT_LT(r.residual, 3e-7);
      for (std::size_t k = 0; k < u.size(); ++k)
        EXPECT_LT(std::abs(rows.reached[k] - u[k]) * rows.problem.inverse_mass()[k], 1e-6);
    }
  }
}

TEST(NewtonOracle, ResidualOfLanesFallsWithSweepsOnEveryScene) {
  std::vector<RigidScene> scenes = {ball_drop(4, 4), ball_pyramid(4), box_stack(5), box_pyramid(5),
                                    domino_row(8),   slope(0.3, 0.5), card_house(2)};
  for (RigidScene& scene : scenes) scene.options.relative_compliance = 1e-5;
  for (const auto& entry : std::filesystem::directory_iterator(TARSUS_SOURCE_DIR "/models/scenes")) {
    const Model model = compile(read_mjcf(entry.path()));
    if (model.spec.equalities.empty()) scenes.push_back(rigid_model(model).scene);
  }
  EXPECT_GE(scenes.size(), 14u);
  for (RigidScene& scene : scenes) {
    scene.options.iterations = 20;
    double last = 0;
    for (int iterations : {5, 50, 500}) {
      const test::ContactRows rows = rows_after(scene, 0.5, iterations);
      const double residual = natural_residual(rows.problem, rows.reached, rows.multiplier);
      if (last > 0) {
        EXPECT_LT(residual, std::max(0.8 * last, 1e-9)) << scene.name << " " << iterations;
      }
      last = residual;
    }
  }
}

}  // namespace
}  // namespace tarsus
