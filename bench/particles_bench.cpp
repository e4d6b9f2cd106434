// Speed of constrained particle systems, one JSON object per line. Times are minima over repeats of processor time,
// microseconds per step, one core.
//   chain: whole step of a force-free freely jointed chain; newton at 1e-12, and the book's SHAKE at 1e-12 and 1e-4
//   water_constraints: both constraint stages of 216 waters;  water_step: the whole step, with steps per second
//   cages, nets and rings: whole steps
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "tarsus/io/md_system.hpp"
#include "tarsus/particles/builtin.hpp"
#include "tarsus/particles/verlet.hpp"

namespace {

using namespace tarsus;

// Processor time of this thread [s], unaffected by other programs.
double seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double g_budget = 0.3;  // [s] for each measurement

/// Minimum over repeats of the time of a call [us].
template <class F>
double microseconds(int calls, const F& call) {
  double best = 1e300;
  const double end = seconds() + g_budget;
  do {
    const double start = seconds();
    for (int k = 0; k < calls; ++k) call();
    best = std::min(best, (seconds() - start) / calls);
  } while (seconds() < end);
  return best * 1e6;
}

void must(const StepReport& report) {
  if (report.ok) return;
  fmt::print(stderr, "{}\n", report.message);
  std::exit(1);
}

struct Timing {
  double step = 0, rounds = 0, violation = 0;
};

Timing time_steps(ParticleSystem system, double dt, const std::string& solver, double tolerance, int calls) {
  VelocityVerlet verlet(system, {.timestep = dt, .solver = solver, .tolerance = tolerance});
  for (int k = 0; k < 10; ++k) must(verlet.step());
  double rounds = 0, steps = 0;
  Timing out;
  out.step = microseconds(calls, [&] {
    const StepReport report = verlet.step();
    must(report);
    rounds += report.position.iterations, steps += 1;
  });
  out.rounds = rounds / steps;
  out.violation = largest_violation_at(system.constraints, system.position).value;
  return out;
}

void print(const char* what, const std::string& system, const std::string& solver, double tolerance, const Timing& t,
           int rows) {
  fmt::print(
      "{{\"bench\":\"{}\",\"system\":\"{}\",\"solver\":\"{}\",\"tolerance\":{:g},\"rows\":{},\"us_per_step\":{:.2f},"
      "\"ns_per_row\":{:.1f},\"rounds\":{:.2f},\"violation\":{:.2g}}}\n",
      what, system, solver, tolerance, rows, t.step, 1e3 * t.step / std::max(rows, 1), t.rounds, t.violation);
  std::fflush(stdout);
}

void bench_chains() {
  std::vector<double> sizes, times;
  double newton_1024 = 0;
  for (const int beads : {32, 128, 1024, 10000, 100000}) {
    const std::string name = fmt::format("chain:{}", beads);
    const ParticleSystem system = make_builtin_system(name);
    const Timing t = time_steps(system, 0.002, "newton", 1e-12, std::max(1, 20000 / beads));
    print("chain", name, "newton", 1e-12, t, beads - 1);
    if (beads >= 1024) sizes.push_back(std::log(beads)), times.push_back(std::log(t.step));
    if (beads == 1024) newton_1024 = t.step;
  }
  double mx = 0, my = 0, xy = 0, xx = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) mx += sizes[k] / sizes.size(), my += times[k] / sizes.size();
  for (std::size_t k = 0; k < sizes.size(); ++k)
    xy += (sizes[k] - mx) * (times[k] - my), xx += (sizes[k] - mx) * (sizes[k] - mx);
  fmt::print("{{\"bench\":\"chain_exponent\",\"from\":1024,\"to\":100000,\"exponent\":{:.3f}}}\n", xy / xx);
  for (const double tolerance : {1e-12, 1e-4}) {
    const ParticleSystem system = make_builtin_system("chain:1024");
    const Timing t = time_steps(system, 0.002, "shake", tolerance, 2);
    print("chain", "chain:1024", "shake", tolerance, t, 1023);
    fmt::print("{{\"bench\":\"chain_ratio\",\"of\":\"shake {:g} over newton 1e-12\",\"ratio\":{:.2f}}}\n", tolerance,
               t.step / newton_1024);
  }
  print("chain", "chain:1024", "newton_general", 1e-12,
        time_steps(make_builtin_system("chain:1024"), 0.002, "newton_general", 1e-12, 5), 1023);
}

ParticleSystem equilibrated_water() {
  const std::string file = std::string(TARSUS_SOURCE_DIR) + "/../shared/reference/md/water216.sys";
  if (std::filesystem::exists(file)) {
    ParticleSystem system = converted(read_md_system(file), units_nm_ps());
    set_force_field(system, "spce-reaction-field");
    return system;
  }
  ParticleSystem system = make_builtin_system("water216");
  VelocityVerlet verlet(system, {.timestep = 1.0});
  const int degrees = degrees_of_freedom(system);
  verlet.set_thermostat(std::make_unique<Thermostat>(0.5 * degrees * system.units.boltzmann * 300, degrees, 50.0, 1));
  for (int k = 0; k < 3000; ++k) must(verlet.step());
  return system;
}

void bench_water() {
  ParticleSystem water = equilibrated_water();
  const double dt = water.units.timestep;
  // The constraint stages alone: x' and v' of an actual step are restored before each call.
  const auto inverse = water.inverse_masses();
  std::vector<double> thrice;
  for (const double w : inverse) thrice.insert(thrice.end(), 3, w);
  const DiagonalMass mass(thrice);
  for (const char* solver : {"newton", "newton_general", "shake"}) {
    const auto constraint = make_particle_solver(solver, water.constraints, inverse);
    std::vector<double> free_x = water.position, x, v, multiplier(water.constraints.nrow());
    for (std::size_t i = 0; i < free_x.size(); ++i) free_x[i] += dt * water.velocity[i];
    std::vector<double> free_v = water.velocity;
    for (std::size_t i = 0; i < free_v.size(); ++i) free_v[i] *= i % 2 ? 1.01 : 0.99;
    const SolveOptions options{.tolerance = 1e-12, .timestep = dt};
    SolveReport report;
    const double position = microseconds(50, [&] {
      x = free_x, report = constraint->solve_positions(water.constraints, mass, water.position, x, multiplier, options);
    });
    const double velocity = microseconds(50, [&] {
      v = free_v, constraint->solve_velocities(water.constraints, mass, water.position, v, multiplier, options);
    });
    fmt::print(
        "{{\"bench\":\"water_constraints\",\"waters\":216,\"solver\":\"{}\",\"tolerance\":1e-12,\"us_position\":{:.2f},"
        "\"us_velocity\":{:.2f},\"us_both\":{:.2f},\"rounds\":{},\"residual\":{:.2g}}}\n",
        solver, position, velocity, position + velocity, report.iterations, report.residual);
  }
  VelocityVerlet verlet(water, {.timestep = dt});
  const double step = microseconds(30, [&] { must(verlet.step()); });
  fmt::print(
      "{{\"bench\":\"water_step\",\"waters\":216,\"us_per_step\":{:.1f},\"steps_per_second\":{:.0f},\"list_pairs\":{},"
      "\"list_builds\":{}}}\n",
      step, 1e6 / step, verlet.forces().list_pairs(), verlet.forces().list_builds());
}

void bench_others() {
  for (const auto& [name, dt] : {std::pair{"c60", 0.001}, std::pair{"ring:1000", 0.002}, std::pair{"butane125", 0.002},
                                 std::pair{"cloth:50x50", 0.0005}}) {
    const ParticleSystem system = make_builtin_system(name);
    print("other", name, "newton", 1e-12, time_steps(system, dt, "newton", 1e-12, 20), system.constraints.nrow());
  }
}

}  // namespace

int main(int argc, char** argv) {
  for (int k = 1; k < argc; ++k) {
    if (std::strncmp(argv[k], "--seconds=", 10) == 0) g_budget = std::atof(argv[k] + 10);
  }
  try {
    bench_chains();
    bench_water();
    bench_others();
  } catch (const tarsus::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
