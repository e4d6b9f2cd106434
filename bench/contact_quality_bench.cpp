// Error against time for every row solver on every kind of scene, and the effect of mass ratios on Gauss-Seidel.
// JSON objects, one per line:
//   {"bench": "quality", scene, solver, iterations, us, residual}    cold start; natural residual [m/s] after this
//   number of iterations
//   {"bench": "mass_ratio", ratio, solver, iterations, relative_compliance, ...}   a heavy cube on a light one, after
//   5 s at 60 Hz; sinks_alone: penetration from the compliance under the weight, 4 contacts each of (1 + 3) times the
//   inverse mass
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "tarsus/baselines/row_solvers.hpp"
#include "tarsus/sim/rigid_scene.hpp"

namespace {

using namespace tarsus;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The rows of a scene after some simulated time, and the velocities before the solve.
struct Problem {
  RowProblem rows;
  std::vector<double> u;
};

Problem problem_of(RigidScene scene, double settle) {
  scene.options.solver = "gauss_seidel", scene.options.iterations = 30;
  RigidWorld<double> world = make_world<double>(scene);
  for (double t = 0; t < settle; t += scene.options.dt) world.step();
  // The rows of the next step belong to the poses and velocities before it.
  world.options().warm_start = false, world.options().iterations = 1;
  const std::vector<RigidBody> before = world.bodies();
  world.step();
  Problem p{*world.rows(), {}};
  const auto inverse = p.rows.inverse_mass();
  p.u.assign(inverse.size(), 0.0);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const RigidBody& b = before[i];
    const Vec3d spin = transpose_mul(rotation(b.orientation), b.angular_velocity);
    for (int k = 0; k < 3; ++k) {
      p.u[6 * i + std::size_t(k)] =
          b.velocity[k] / inverse[6 * i + std::size_t(k)] + b.mass * scene.options.gravity[k] * scene.options.dt;
      p.u[6 * i + 3 + std::size_t(k)] = spin[k] / inverse[6 * i + 3 + std::size_t(k)];
    }
  }
  return p;
}

void quality(const RigidScene& scene, double settle) {
  const Problem p = problem_of(scene, settle);
  for (std::string_view name : all_row_solver_names()) {
    const bool dense = name == "newton" || name == "pivoting";
    if (dense && p.rows.nrow() > 600) continue;
    for (int iterations : {1, 3, 10, 30, 100, 300, 1000}) {
      if (dense && iterations > 100) break;
      double best = 1e9;
      RowSolveReport report;
      for (int repeat = 0; repeat < (dense ? 1 : 3); ++repeat) {
        std::vector<double> u = p.u, x(std::size_t(p.rows.nrow()), 0.0);
        const auto solver = make_any_row_solver(name);
        const double start = seconds();
        report = solver->solve(p.rows, u, x, {.max_iterations = iterations, .tolerance = 1e-12});
        best = std::min(best, seconds() - start);
      }
      if (report.status == RowSolveStatus::unsupported) break;
      fmt::print(
          "{{\"bench\":\"quality\",\"scene\":\"{}\",\"rows\":{},\"solver\":\"{}\",\"iterations\":{},\"us\":{:.1f},"
          "\"residual\":{:.3g},\"status\":\"{}\"}}\n",
          scene.name, p.rows.nrow(), name, report.iterations, 1e6 * best, report.residual, tarsus::name(report.status));
      if (report.status == RowSolveStatus::converged) break;
    }
  }
}

void mass_ratio(double ratio, const std::string& solver, int iterations, double compliance) {
  RigidScene scene = box_stack(2);
  RigidBody& top = scene.bodies[1];
  top.mass *= ratio, top.inertia = top.inertia * ratio;
  scene.options.iterations = iterations, scene.options.relative_compliance = compliance;
  if (solver != "newton") scene.options.solver = solver;
  RigidWorld<double> world = make_world<double>(scene);
  if (solver == "newton") world.solve_rows_by(make_any_row_solver(solver));
  RigidStepReport r;
  double best = 1e9;
  for (int i = 0; i < 300; ++i) {
    const double start = seconds();
    r = world.step();
    best = std::min(best, seconds() - start);
  }
  fmt::print(
      "{{\"bench\":\"mass_ratio\",\"ratio\":{},\"solver\":\"{}\",\"iterations\":{},\"relative_compliance\":{},"
      "\"penetration_max_m\":{:.5f},\"kinetic_energy\":{:.3g},\"top_height_error_m\":{:.5f},\"us\":{:.1f}}}\n",
      ratio, solver, iterations, compliance, r.penetration_max, world.kinetic_energy(),
      world.bodies()[1].position.z - 1.5, 1e6 * best);
}

}  // namespace

int main() {
  quality(ball_drop(4, 4), 1.5);
  quality(ball_pyramid(4), 0.5);
  quality(box_stack(8), 0.5);
  quality(box_pyramid(6), 0.5);
  quality(card_house(2), 0.5);
  for (double ratio : {1.0, 10.0, 100.0, 1000.0}) {
    for (double compliance : {1e-5, 1e-8}) {
      for (int iterations : {10, 100, 1000}) {
        for (const char* solver : {"lanes", "gauss_seidel_nesterov"}) mass_ratio(ratio, solver, iterations, compliance);
      }
      mass_ratio(ratio, "newton", 100, compliance);
    }
  }
  return 0;
}
