// Contacts of free bodies, solved in SIMD lanes and by row solvers, against dense Newton.
#include <gtest/gtest.h>

#include "tarsus/baselines/row_solvers.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/sim/rigid_scene.hpp"

namespace tarsus {
namespace {

/// Velocities after one step with this solver and very many iterations, of a scene that has run for `settle` seconds.
std::vector<Vec3d> velocities_after(const RigidScene& scene, const std::string& solver, double settle, int iterations) {
  RigidWorld<double> world = make_world<double>(scene);
  for (double t = 0; t < settle - 0.5 * scene.options.dt; t += scene.options.dt) world.step();
  world.options().solver = solver == "newton" ? "lanes" : solver;
  if (solver == "newton") world.solve_rows_by(make_any_row_solver(solver));
  world.options().iterations = iterations, world.options().tolerance = 1e-11;
  const RigidStepReport r = world.step();
  EXPECT_LT(r.residual, 3e-7) << solver;
  std::vector<Vec3d> out;
  for (const RigidBody& b : world.bodies()) out.push_back(b.velocity), out.push_back(b.angular_velocity);
  return out;
}

TEST(NewtonOracle, LanesAndRowsAgreeWithIt) {
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
      const auto lanes = velocities_after(*scene, "lanes", settle, 20000);
      const auto rows = velocities_after(*scene, "gauss_seidel", settle, 20000);
      const auto oracle = velocities_after(*scene, "newton", settle, 100);
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        EXPECT_LT(norm(lanes[i] - oracle[i]), 1e-6);
        EXPECT_LT(norm(rows[i] - oracle[i]), 1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace tarsus
