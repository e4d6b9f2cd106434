// tarsus md: simulates particles with constraints.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>

#include "command.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/io/dcd.hpp"
#include "tarsus/io/md_system.hpp"
#include "tarsus/io/output_file.hpp"
#include "tarsus/io/particle_source.hpp"
#include "tarsus/io/xyz.hpp"
#include "tarsus/particles/builtin.hpp"
#include "tarsus/particles/verlet.hpp"

namespace tarsus::app {
namespace {

constexpr int kSimulationFailed = 3;

struct MdOptions {
  ParticleSource source;
  double dt = 0, tolerance = 1e-12, relaxation = 0, skin = 0;  // dt, relaxation: filled in when not given
  std::optional<double> given_dt, given_relaxation, temperature, thermostat;
  long steps = 1000;
  std::optional<long> every;
  int max_iterations = 0, threads = 1;
  std::string solver = "newton", out, final_file, energies;
  bool json = false, quiet = false, list = false, seeded = false;

  /// Number of steps between frames, and between rows of the table.
  long interval() const { return every.value_or(std::max(1L, steps / 10)); }
};

struct Record {
  long step;
  double time, potential, kinetic, total, temperature, violation;
  double shadow = NAN;  ///< total plus VelocityVerlet::shadow_shift(), known one step later
};

/// Writes frames in the format of the file's extension, which check_options() has checked.
class FrameWriter {
 public:
  FrameWriter(const std::string& path, const ParticleSystem& system, long every, double timestep) : path_(path) {
    const std::string extension = std::filesystem::path(path).extension().string();
    frames_ = extension == ".frames";
    const bool dcd = extension == ".dcd";
    if (dcd) DcdWriter::angstroms(system.units);  // throws for unsuitable units, before the file is created
    stream_.open(path, dcd ? std::ios::binary | std::ios::out : std::ios::out);
    check();
    if (dcd) dcd_ = std::make_unique<DcdWriter>(stream_, system, every, timestep);
  }
  void write(long step, double time, const ParticleSystem& system) {
    if (dcd_)
      dcd_->frame(system);
    else if (frames_)
      write_md_frame(stream_, step, system);
    else
      write_xyz_frame(stream_, system, fmt::format("step={} time={:.17g}", step, time));
    ++count_;
    check();
  }
  void finish() {
    stream_.flush();
    check();
  }
  long count() const { return count_; }

 private:
  void check() {
    if (!stream_) throw Error(fmt::format("{}: cannot be written", path_));
  }
  std::string path_;
  std::ofstream stream_;
  bool frames_;
  std::unique_ptr<DcdWriter> dcd_;
  long count_ = 0;
};

/// All files of a run. Those that grow with it are opened right before the first step: a file that cannot be written
/// fails before the simulation, and a run that is refused leaves existing files unchanged.
struct Outputs {
  std::unique_ptr<FrameWriter> frames;
  std::ofstream energies;

  Outputs(const MdOptions& o, const ParticleSystem& system) {
    if (!o.out.empty()) frames = std::make_unique<FrameWriter>(o.out, system, o.interval(), o.dt);
    if (!o.final_file.empty()) check_md_system(system);
    const Units& u = system.units;
    if (!o.energies.empty()) {
      energies.open(o.energies);
      if (!energies) throw Error(fmt::format("{}: cannot be written: {}", o.energies, std::strerror(errno)));
      energies << fmt::format("step,time [{0}],potential [{1}],kinetic [{1}],total [{1}],temperature [K],violation\n",
                              u.time, u.energy);
    }
  }
  void energy(const Record& r) {
    if (!energies.is_open()) return;
    energies << fmt::format("{},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g},{:.17g}\n", r.step, r.time, r.potential,
                            r.kinetic, r.total, r.temperature, r.violation);
  }
  void finish(const MdOptions& o, const ParticleSystem& system) {
    if (frames) frames->finish();
    if (energies.is_open() && !energies.flush()) throw Error(fmt::format("{}: cannot be written", o.energies));
    if (o.final_file.empty()) return;
    OutputFile final_state(o.final_file);
    write_md_system(final_state.stream(), system);
    final_state.finish();
  }
};

struct Outcome {
  std::vector<Record> records;
  StepReport last;
  long steps = 0;
  double seconds = 0, mean_iterations = 0, stability = 0;
  std::string heated;  ///< why the run was stopped although every step was solved, or empty
  int most_iterations = 0;
  long wrong_roots = 0;    ///< number of steps in which a row converged to its mirrored solution
  double pivot_ratio = 1;  ///< minimum over all steps
};

void check_options(const MdOptions& o) {
  check_apart({{"--out", o.out}, {"--energies", o.energies}, {"--final", o.final_file}},
              {{"the system", o.source.system}, {"--setup", o.source.setup}});
  const auto check = [](const char* name, double value, bool good, const char* expected) {
    if (!std::isfinite(value) || !good) throw ValueError(name, number_text(value), expected);
  };
  if (o.given_dt) check("--dt", *o.given_dt, *o.given_dt > 0, "a positive time");
  if (o.temperature) check("--temperature", *o.temperature, *o.temperature >= 0, "0 or more");
  if (o.thermostat) check("--thermostat", *o.thermostat, *o.thermostat > 0, "a positive temperature");
  if (o.given_relaxation) check("--tau", *o.given_relaxation, *o.given_relaxation > 0, "a positive time");
  if (o.given_relaxation && !o.thermostat) throw ValueError("--tau", "given", "a run with --thermostat");
  check("--tol", o.tolerance, o.tolerance > 0 && o.tolerance < 1, "a number between 0 and 1");
  for (const auto& [name, count, least] : {std::tuple("--steps", o.steps, 0L), {"--every", o.interval(), 1L}}) {
    const bool beyond = count == std::numeric_limits<long>::max();  // CLI11 reads larger numbers as this value
    if (count < least || beyond) {
      throw ValueError(name, beyond ? "2^63 - 1 or more" : std::to_string(count),
                       fmt::format("a whole number from {} to below 2^63 - 1", least));
    }
  }
  check("--max-iterations", o.max_iterations, o.max_iterations >= 0, "0 or more");
  check("--skin", o.skin, o.skin >= 0, "0 or more");
  check("--cutoff", o.source.cutoff, o.source.cutoff >= 0, "0 or more");
  const std::string ending = std::filesystem::path(o.out).extension().string();
  if (!o.out.empty() && ending != ".xyz" && ending != ".extxyz" && ending != ".frames" && ending != ".dcd")
    throw ValueError("--out", o.out, "a file that ends in .xyz, .extxyz, .frames or .dcd");
  if (!o.final_file.empty() && std::filesystem::path(o.final_file).extension() != ".sys")
    throw ValueError("--final", o.final_file, "a file that ends in .sys; --out writes the other formats");
  for (const std::string& file : {o.out, o.energies, o.final_file}) {
    if (!file.empty()) check_output(file);
  }
}

Record record_of(long step, const VelocityVerlet& verlet, const ParticleSystem& system) {
  Record r{step, verlet.time(), verlet.energies().potential(), kinetic_energy(system), 0, 0, 0, NAN};
  r.total = r.potential + r.kinetic + (verlet.thermostat() ? verlet.thermostat()->exchanged() : 0.0);
  r.temperature = temperature(system);
  r.violation = largest_violation_at(system.constraints, system.position).value;
  return r;
}

/// Slope of the shadow energy (conserved by the discrete equations) over time by least squares, from the records that
/// have it.
double drift_per_time(const std::vector<Record>& records) {
  const auto known = [](const Record& r) { return std::isfinite(r.shadow); };
  double t = 0, e = 0, tt = 0, te = 0;
  const auto count = static_cast<double>(std::count_if(records.begin(), records.end(), known));
  for (const Record& r : records) t += known(r) ? r.time / count : 0, e += known(r) ? r.shadow / count : 0;
  for (const Record& r : records) {
    if (known(r)) tt += (r.time - t) * (r.time - t), te += (r.time - t) * (r.shadow - e);
  }
  return tt > 0 ? te / tt : 0.0;
}

void print_header(const ParticleSystem& system, bool thermostat) {
  const Units& u = system.units;
  fmt::print("{:>10} {:>12} {:>16} {:>16} {:>16} {:>10} {:>10}\n", "step", "time/" + u.time, "potential", "kinetic",
             thermostat ? "conserved" : "total", "T", "violation");
  fmt::print("{:>10} {:>12} {:>16} {:>16} {:>16} {:>10} {:>10}\n", "", "", u.energy, u.energy, u.energy, "", "");
}

void print_record(const Record& r, const ParticleSystem& system) {
  const std::string t =
      system.units.name == "si" ? "-" : fmt::format("{:.5g}", r.temperature);  // meaningless for ropes and the like
  fmt::print("{:>10} {:>12.6g} {:>16.9g} {:>16.9g} {:>16.9g} {:>10} {:>10.2e}\n", r.step, r.time, r.potential,
             r.kinetic, r.total, t, r.violation);
  std::fflush(stdout);
}

// Message that ends a run whose temperature exceeds 1,000 times the initial one (1 K from rest), or empty.
std::string heated(const MdOptions& o, const ParticleSystem& system, const Record& first, const Record& now) {
  const bool kelvin = system.units.name == "nm_ps" || system.units.name == "angstrom_fs";
  const double scale = std::max({first.temperature, o.thermostat.value_or(0), kelvin ? 1.0 : 0.0});
  if (system.units.name == "si" || !(scale > 0) || !(now.temperature > 1000 * scale)) return "";
  return fmt::format(
      "step {}: the temperature is {:.4g}, more than a thousand times that of the start ({:.4g}): check for "
      "overlapping particles, too large a timestep (--dt) or wrong units (--units)",
      now.step, now.temperature, first.temperature);
}

Outcome simulate(const MdOptions& o, VelocityVerlet& verlet, ParticleSystem& system, Outputs& outputs) {
  const bool quiet = o.quiet || o.json;
  const long every = o.interval();
  constexpr long kBetweenSamples = 20;  // evaluating energies and virials costs a third of a step
  const long sample = std::min(every, std::max(kBetweenSamples, o.steps / 200));
  FrameWriter* const writer = outputs.frames.get();
  Outcome done;
  done.records.push_back(record_of(0, verlet, system));
  if (writer) writer->write(0, 0, system);
  outputs.energy(done.records.back());
  if (!quiet) print_header(system, verlet.thermostat() != nullptr), print_record(done.records.back(), system);
  Progress progress("md", quiet);
  double iterations = 0;
  using Clock = std::chrono::steady_clock;
  Clock::duration spent{};
  bool last = false;  // a run that is interrupted ends with a full step, which is recorded like any other
  for (long step = 1; step <= o.steps && !last; ++step) {
    last = step == o.steps || interrupted();
    const bool written = step % every == 0 || last;
    const bool sampled = step % sample == 0 || written;
    const auto start = Clock::now();
    done.last = verlet.step(sampled);
    spent += Clock::now() - start;
    if (!done.last.ok) break;
    if (done.records.back().step == step - 1 && step > 1) {
      // The shadow shift is known only for the equations of motion without a thermostat.
      done.records.back().shadow = done.records.back().total + (verlet.thermostat() ? 0.0 : verlet.shadow_shift());
    }
    done.steps = step;
    iterations += done.last.position.iterations;
    done.wrong_roots += done.last.position.wrong_root ? 1 : 0;
    done.pivot_ratio = std::min(done.pivot_ratio, done.last.position.pivot_ratio);
    done.most_iterations = std::max(done.most_iterations, done.last.position.iterations);
    if (sampled) done.records.push_back(record_of(step, verlet, system));
    if (written) {
      if (writer) writer->write(step, verlet.time(), system);
      outputs.energy(done.records.back());
      if (!quiet) print_record(done.records.back(), system);
    }
    if (sampled) done.heated = heated(o, system, done.records.front(), done.records.back());
    if (!done.heated.empty()) break;
    if (sampled) progress.update(static_cast<double>(step) / o.steps, fmt::format("step {} of {}", step, o.steps));
  }
  progress.finish();
  done.seconds = std::chrono::duration<double>(spent).count();
  done.mean_iterations = done.steps > 0 ? iterations / done.steps : 0;
  done.stability = done.last.ok ? verlet.stability() : done.last.stability;
  return done;
}

/// Energy drift per degree of freedom [kT/ns]; 0 for units without nanoseconds.
double drift_kt(const Outcome& done, const ParticleSystem& system) {
  const double per_ns = system.units.name == "nm_ps" ? 1e3 : system.units.name == "angstrom_fs" ? 1e6 : 0;
  const int degrees = degrees_of_freedom(system);
  const double kt = system.units.boltzmann * done.records.back().temperature;
  return degrees > 0 && kt > 0 ? drift_per_time(done.records) * per_ns / (kt * degrees) : 0.0;
}

void print_summary(const MdOptions& o, const Outcome& done, const ParticleSystem& system,
                   const VelocityVerlet& verlet) {
  double worst = 0, low = INFINITY, high = -INFINITY;
  for (const Record& r : done.records)
    worst = std::max(worst, r.violation), low = std::min(low, r.total), high = std::max(high, r.total);
  fmt::print("\n{} steps of {:g} {} in {:.3g} s: {:.0f} steps/s\n", done.steps, o.dt, system.units.time, done.seconds,
             done.seconds > 0 ? done.steps / done.seconds : 0);
  fmt::print("constraints: {} by {}, {:.2f} iterations per step (at most {}), violation at most {:.2g}\n",
             system.constraints.nrow(), verlet.solver().name(), done.mean_iterations, done.most_iterations, worst);
  if (done.records.size() > 1) {
    fmt::print("energy: spread {:.3g} {}", high - low, system.units.energy);
    if (const double drift = drift_kt(done, system); drift != 0)
      fmt::print(", drift {:.2g} kT/ns per degree of freedom ({} degrees)", drift, degrees_of_freedom(system));
    fmt::print("\n");
  }
  fmt::print("dt*omega_max of the constraint forces: {:.3g} (unstable above 2)\n", done.stability);
  if (done.wrong_roots > 0) {
    fmt::print("warning: in {} steps a constraint converged to its mirrored solution: the timestep is too large\n",
               done.wrong_roots);
  }
  if (!o.out.empty()) fmt::print("frames: {}\n", o.out);
  if (!o.energies.empty()) fmt::print("energies: {}\n", o.energies);
  if (!o.final_file.empty()) fmt::print("last state: {}\n", o.final_file);
}

void print_outcome(const MdOptions& o, const Outcome& done, const ParticleSystem& system, const Preparation& prepared) {
  nlohmann::ordered_json j;
  double worst = 0;
  for (const Record& r : done.records) worst = std::max(worst, r.violation);
  j["status"] = done.last.ok && done.heated.empty() ? "ok" : "failed";
  if (!done.last.ok || !done.heated.empty()) j["message"] = done.last.ok ? done.heated : done.last.message;
  j["system"] = o.source.system;
  j["particles"] = system.particles();
  j["constraints"] = system.constraints.nrow();
  j["degrees_of_freedom"] = degrees_of_freedom(system);
  j["units"] = system.units.name;
  j["solver"] = o.solver;
  j["dt"] = o.dt;
  j["steps"] = done.steps;
  j["seconds"] = done.seconds;
  j["steps_per_second"] = done.seconds > 0 ? done.steps / done.seconds : 0.0;
  j["start"] = {{"violation", prepared.start_violation},
                {"iterations", prepared.iterations},
                {"moved_max", prepared.moved_max},
                {"moved_rms", prepared.moved_rms},
                {"velocity_changed_max", prepared.velocity_changed_max},
                {"redundant", prepared.redundant}};
  const auto energy = [](const Record& r) {
    return nlohmann::ordered_json{{"step", r.step},          {"time", r.time},   {"potential", r.potential},
                                  {"kinetic", r.kinetic},    {"total", r.total}, {"temperature", r.temperature},
                                  {"violation", r.violation}};
  };
  j["energy"] = {{"first", energy(done.records.front())}, {"last", energy(done.records.back())}};
  j["drift_per_time"] = drift_per_time(done.records);
  j["drift_kT_per_ns_per_dof"] = drift_kt(done, system);
  j["violation_max"] = worst;
  j["iterations"] = {{"mean", done.mean_iterations}, {"max", done.most_iterations}};
  j["pivot_ratio"] = done.pivot_ratio;
  j["wrong_root_steps"] = done.wrong_roots;
  j["stability"] = done.stability;
  if (!o.out.empty()) j["out"] = o.out;
  if (!o.energies.empty()) j["energies"] = o.energies;
  if (!o.final_file.empty()) j["final"] = o.final_file;
  if (interrupted()) j["interrupted"] = true;
  fmt::print("{}\n", j.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::vector<std::pair<std::string, std::string>> md_solvers() {
  return {{"newton", "Newton's method on all rows, with a sparse factorization"},
          {"newton_general", "newton without its fast paths"},
          {"m_shake", "Newton's method with a dense factorization"},
          {"shake", "rows one after the other, for positions and velocities"},
          {"shake_matrix", "positions by rows one after the other, velocities by a dense factorization"}};
}

void run(MdOptions o) {
  if (o.list)
    return print_lists({{"systems", builtin_systems()}, {"forces", force_field_names()}, {"solvers", md_solvers()}},
                       o.json);
  if (o.source.system.empty())
    throw ValueError("SYSTEM", "nothing", "a file or a built-in name; tarsus md --list shows them");
  check_options(o);
  const bool quiet = o.quiet || o.json;
  Diagnostics notes;
  Progress settling("md", quiet);
  const auto began = std::chrono::steady_clock::now();
  o.source.on_settling = [&](double fraction) {  // shown only for large fluids: small ones settle within 0.5 s
    report_interrupt(0, "s");
    if (std::chrono::steady_clock::now() - began > std::chrono::milliseconds(500))
      settling.update(fraction, "settling");
  };
  ParticleSystem system = load_particles(o.source, notes);
  settling.finish();
  for (const Diagnostic& note : notes) {
    if (!quiet) tell("{}\n", note.text());
  }
  o.dt = o.given_dt.value_or(system.units.timestep), o.relaxation = o.given_relaxation.value_or(100 * o.dt);
  if (o.steps > 0 && system.force_field.empty() && o.source.forces != "none" && !is_builtin_system(o.source.system)) {
    throw Error(
        "no forces act on this system; expected --forces NAME, --setup FILE, --cutoff for LAMMPS data, or "
        "--forces none: constraints alone");
  }
  if (o.skin > 0 && !system.force_field.has_pairs())
    throw ValueError("--skin", number_text(o.skin), "0, or a system with pair forces");
  if (o.seeded && !is_builtin_system(o.source.system) && !o.temperature && !o.thermostat)
    throw ValueError("--seed", "given",
                     "--temperature or --thermostat: only these use random numbers for a system from a file");
  system.force_field.skin = o.skin;
  const Preparation prepared = about_file(o.source.system, [&] { return prepare(system, o.tolerance, o.dt); });
  if (o.temperature) set_temperature(system, *o.temperature, o.source.seed);
  if (o.thermostat && system.force_field.empty() && kinetic_energy(system) == 0)
    throw ValueError("--thermostat", number_text(*o.thermostat), "nonzero velocities, e.g. from --temperature");
  if (!quiet)
    fmt::print("{}: {} particles, {} constraints, {} degrees of freedom, {}units {}\n{}", o.source.system,
               system.particles(), system.constraints.nrow(), degrees_of_freedom(system),
               system.force_field.empty() ? "no forces, " : "", system.units.name, prepared.text(system.units));
  VelocityVerlet verlet(system, {o.dt, o.solver, o.tolerance, o.max_iterations, o.threads});
  if (verlet.threads() < o.threads)
    tell("warning: --threads {}: using {}, at most one for each core and for every {} particles\n", o.threads,
         verlet.threads(), kParticlesEach);
  if (o.thermostat) {
    const int degrees = degrees_of_freedom(system);
    verlet.set_thermostat(std::make_unique<Thermostat>(0.5 * degrees * system.units.boltzmann * *o.thermostat, degrees,
                                                       o.relaxation, o.source.seed));
  }
  if (const auto pins = std::count(system.pinned.begin(), system.pinned.end(), 1);
      pins > 0 && !o.final_file.empty() && !o.quiet) {
    tell("warning: --final {}: the .sys format does not store pins: {} pinned particles are free in it\n", o.final_file,
         pins);
  }
  Outputs outputs(o, system);
  const Outcome done = simulate(o, verlet, system, outputs);
  outputs.finish(o, system);
  if (o.json)
    print_outcome(o, done, system, prepared);
  else if (!o.quiet)
    print_summary(o, done, system, verlet);
  if (done.last.ok && done.heated.empty()) return report_interrupt(verlet.time(), system.units.time);
  if (!o.json && done.last.ok)
    tell("failed at {}\n", done.heated);
  else if (!o.json)
    tell("failed after {} steps (the state is that after the last successful step): {}\n", done.steps,
         done.last.message);
  throw CLI::RuntimeError(kSimulationFailed);
}

constexpr const char* kHelp =
    "  tarsus md water216 --steps 5000 --thermostat 300     216 rigid waters at 300 K\n"
    "  tarsus md chain:1024 --json                           a chain of 1,024 beads, results as JSON\n"
    "  tarsus md system.sys --dt 0.002 --out run.frames      a file, with plain frames to compare\n"
    "  tarsus md water.data --rigid-bonds 1 --rigid-angles 1 --cutoff 8.5    LAMMPS data, as fix rattle "
    "b 1 a 1\n"
    "  tarsus md water216 --units nm_ps --setup water.json   user-defined forces\n"
    "\n"
    "An initial state that violates its constraints is projected onto them, and the displacement is "
    "reported. Times, lengths and\n"
    "energies are in the system's units: nm, ps, kJ/mol or A, fs, kcal/mol, or SI for rope and cloth. "
    "More: docs/particles.md.";

}  // namespace

void add_md_command(CLI::App& app) {
  auto options = std::make_shared<MdOptions>();
  CLI::App* command =
      app.add_subcommand("md", "Simulate particles with constraints: velocity Verlet with SHAKE and RATTLE, converged");
  command->footer(kHelp);
  MdOptions& o = *options;
  command->add_option("SYSTEM", o.source.system, "A file (.sys, .xyz, .extxyz, .data) or a built-in name (--list)");
  command->add_flag("--list", o.list, "List the built-in systems, forces and solvers");
  command->add_option("--dt", o.given_dt,
                      "Time step; default 2 fs, 1 ms in SI, and for rope and cloth less with many links");
  command->add_option("--steps", o.steps, "Number of steps; 0 only projects the initial state")->capture_default_str();
  command
      ->add_option("--solver", o.solver,
                   "Constraint solver: newton, newton_general (without the fast paths), m_shake, shake (the book's) or "
                   "shake_matrix")
      ->check(CLI::IsMember({"newton", "newton_general", "m_shake", "shake", "shake_matrix"}))
      ->capture_default_str();
  command
      ->add_option("--tol", o.tolerance, "Largest violation |sigma|/(2 d^2) left by the solver; the floor is rounding")
      ->capture_default_str();
  command->add_option("--max-iterations", o.max_iterations,
                      "Largest number of iterations or sweeps; 0: the solver's own limit");
  command->add_option("--out", o.out,
                      "Write frames: .xyz or .extxyz (extended XYZ), .frames (plain rows x y z vx vy vz) or .dcd");
  command->add_option("--energies", o.energies, "Write the rows of the table as CSV, with all digits");
  command->add_option("--every", o.every,
                      "Number of steps between frames and table rows; default a tenth of the steps");
  command->add_option("--final", o.final_file, "Write the last state to a .sys file");
  command->add_option("--forces", o.source.forces,
                      "Built-in force field (--list); .sys and .xyz files contain none; none: constraints alone");
  command->add_option("--setup", o.source.setup,
                      "JSON file of forces, pins and further constraints (example in docs/particles.md)");
  command->add_option(
      "--units", o.source.units,
      "Convert to nm_ps or angstrom_fs; for .xyz and .data: the units of the numbers where the file does "
      "not name them (default angstrom_fs)");
  command->add_option("--temperature", o.temperature, "Start from random velocities of this temperature");
  command->add_option("--thermostat", o.thermostat, "Hold this temperature by stochastic velocity rescaling");
  command->add_option("--tau", o.given_relaxation, "Time constant of the thermostat; default 100 steps");
  command->add_option("--seed", o.source.seed, "Random seed of velocities, built-in initial states and the thermostat")
      ->check(number_from(0, 1.8e19))  // a uint64
      ->capture_default_str();
  command->add_option("--cutoff", o.source.cutoff, "LAMMPS data: cutoff of pair forces; default: no pair forces");
  command->add_flag("--reaction-field", o.source.reaction_field,
                    "LAMMPS data: Coulomb forces by reaction field instead of shifted force");
  command->add_option("--rigid-bonds", o.source.rigid_bonds, "LAMMPS data: bond types to constrain")->delimiter(',');
  command->add_option("--rigid-angles", o.source.rigid_angles, "LAMMPS data: angle types to constrain")->delimiter(',');
  command->add_option("--skin", o.skin, "Extra radius of the Verlet list; 0: 7 or 8 % of the cutoff");
  command
      ->add_option("--threads", o.threads,
                   fmt::format("Threads for forces and constraints, at most one for each core and for every {} "
                               "particles; results are the "
                               "same for any number",
                               kParticlesEach))
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_flag("--json", o.json, "Print one JSON object and nothing else");
  command->add_flag("--quiet", o.quiet, "Print nothing but errors");
  command->callback([options, command] {
    options->seeded = command->count("--seed") > 0;
    within_memory(options->source.system, [&] { run(*options); });
  });
}

}  // namespace tarsus::app
