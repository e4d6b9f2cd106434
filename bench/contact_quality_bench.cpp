// Error against time for the contacts of free bodies: the lanes of RigidWorld, and the baselines on the same contacts
// as rows. And a heavy body on a light one, in RigidWorld and in Stepper. JSON objects, one per line:
//   {"bench": "quality", scene, rows, solver, iterations, us, residual, status}   cold start; natural residual [m/s]
//   after this number of iterations. us: the solve; of lanes their stages prepare and terms
//   {"bench": "mass_ratio", ratio, solver, iterations, relative_compliance, ...}   a heavy cube on a light one, after
//   5 s at 60 Hz. Stepper (its default compliance, 0.0144 h²) iterates to its tolerance
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "support/contact_rows.hpp"
#include "tarsus/baselines/row_solver.hpp"
#include "tarsus/sim/rigid_model.hpp"
#include "tarsus/sim/step.hpp"

namespace {

using namespace tarsus;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void print(const RigidScene& scene, const RowProblem& rows, std::string_view solver, int iterations, double time,
           double residual, const char* status) {
  fmt::print(
      "{{\"bench\":\"quality\",\"scene\":\"{}\",\"rows\":{},\"solver\":\"{}\",\"iterations\":{},\"us\":{:.1f},"
      "\"residual\":{:.3g},\"status\":\"{}\"}}\n",
      scene.name, rows.nrow(), solver, iterations, 1e6 * time, residual, status);
}

void quality(RigidScene scene, double settle) {
  scene.options.iterations = 30;
  RigidWorld<double> settled = make_world<double>(scene);
  for (double t = 0; t < settle; t += scene.options.dt) settled.step();
  scene.bodies = settled.bodies();
  test::ContactRows rows;
  for (int iterations : {1, 3, 10, 30, 100, 300, 1000}) {
    double best = 1e9;
    scene.options.iterations = iterations;
    for (int repeat = 0; repeat < 3; ++repeat) {
      RigidWorld<double> world = make_world<double>(scene);
      const RigidStepReport r = world.step();
      best = std::min(best, r.seconds[std::size_t(Stage::prepare)] + r.seconds[std::size_t(Stage::terms)]);
      if (repeat == 0) rows = test::contact_rows(scene, world);
    }
    print(scene, rows.problem, "lanes", iterations, best, natural_residual(rows.problem, rows.reached, rows.multiplier),
          "");
  }
  for (std::string_view name : row_solver_names()) {
    const bool dense = name == "newton" || name == "pivoting";
    if (dense && rows.problem.nrow() > 600) continue;
    for (int iterations : {1, 3, 10, 30, 100, 300, 1000}) {
      if (dense && iterations > 100) break;
      double best = 1e9;
      RowSolveReport report;
      for (int repeat = 0; repeat < (dense ? 1 : 3); ++repeat) {
        std::vector<double> u = rows.u, x(rows.multiplier.size(), 0.0);
        const auto solver = make_row_solver(name);
        const double start = seconds();
        report = solver->solve(rows.problem, u, x, {.max_iterations = iterations, .tolerance = 1e-12});
        best = std::min(best, seconds() - start);
      }
      if (report.status == RowSolveStatus::unsupported) break;
      print(scene, rows.problem, name, report.iterations, best, report.residual, tarsus::name(report.status));
      if (report.status == RowSolveStatus::converged) break;
    }
  }
}

constexpr int kSteps = 300;

void print(double ratio, const char* solver, int iterations, double compliance, double kinetic, double height,
           double time) {
  fmt::print(
      "{{\"bench\":\"mass_ratio\",\"ratio\":{},\"solver\":\"{}\",\"iterations\":{},\"relative_compliance\":{},"
      "\"kinetic_energy\":{:.3g},\"top_height_error_m\":{:.5f},\"us\":{:.1f}}}\n",
      ratio, solver, iterations, compliance, kinetic, height - 1.5, 1e6 * time);
}

void mass_ratio(double ratio) {
  RigidScene scene = box_stack(2);
  RigidBody& top = scene.bodies[1];
  top.mass *= ratio, top.inertia = top.inertia * ratio;
  for (double compliance : {1e-5, 1e-8}) {
    for (int iterations : {10, 100, 1000}) {
      scene.options.iterations = iterations, scene.options.relative_compliance = compliance;
      RigidWorld<double> world = make_world<double>(scene);
      double best = 1e9;
      for (int i = 0; i < kSteps; ++i) {
        const double start = seconds();
        world.step();
        best = std::min(best, seconds() - start);
      }
      print(ratio, "lanes", iterations, compliance, world.kinetic_energy(), world.bodies()[1].position.z, best);
    }
  }
  const Model model = compile(scene_spec(scene));
  Data data(model);
  StepOptions options;
  options.dt = scene.options.dt, options.rows.contacts = true;
  Stepper<double> stepper(model, data, options);
  double best = 1e9;
  int most = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double start = seconds();
    stepper.step(data);
    best = std::min(best, seconds() - start);
    most = std::max(most, stepper.rows_report(0)->iterations);
  }
  print(ratio, "Stepper", most, 0.0144 * options.dt * options.dt, energy(model, data, data.qpos, data.qvel).kinetic,
        data.qpos[9], best);
}

}  // namespace

int main() {
  quality(ball_drop(4, 4), 1.5);
  quality(ball_pyramid(4), 0.5);
  quality(box_stack(8), 0.5);
  quality(box_pyramid(6), 0.5);
  quality(card_house(2), 0.5);
  for (double ratio : {1.0, 10.0, 100.0, 1000.0}) mass_ratio(ratio);
  return 0;
}
