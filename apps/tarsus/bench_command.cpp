// tarsus bench: measures how fast and how accurately this machine steps many worlds.
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>

#include "command.hpp"
#include "tarsus/io/gains_text.hpp"
#include "tarsus/math/cpu.hpp"
#include "tarsus/sim/batch.hpp"

namespace tarsus::app {

namespace {

struct BatchBench {
  std::string model = "models/humanoid.xml", keyframe, gains = "300,30,0,0", force_limit = "150";
  std::vector<int> worlds{1024}, threads;
  std::vector<std::string> precisions{"double", "float"}, sets;
  double dt = 1.0 / 60, targets = 0.8, hold = 0.1;
  int steps = 200, settle = 60;
  bool no_contacts = false, json = false;
  ReadOptions options;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Sets all worlds' targets: the start pose with each joint moved by up to `size`, drawn separately for each world.
template <class R>
void aim(Batch<R>& batch, std::span<const double> start, double size, std::mt19937& random) {
  const Model& model = batch.model();
  Data data(model);
  std::vector<double> turn(model.nv), pose(model.nq);
  for (int world = 0; world < batch.worlds(); ++world) {
    for (double& x : turn) x = size * (2 * double(random()) / double(std::mt19937::max()) - 1);
    for (const Joint& joint : model.joints) {
      if (moves_freely(joint.type)) std::fill_n(turn.begin() + joint.qvel, 6, 0.0);
    }
    integrate<double>(model, data, start, turn, 1, pose);
    std::copy(pose.begin(), pose.end(), batch.qpos_target().begin() + std::ptrdiff_t(world) * model.nq);
  }
}

/// Sum of the kinetic, potential and spring energies, mean over the worlds [J].
template <class R>
double mean_energy(Batch<R>& batch) {
  AlignedVector<R> energy(3 * std::size_t(batch.worlds()));
  batch.measure({.energy = energy});
  double sum = 0;
  for (const R e : energy) sum += double(e);
  return sum / batch.worlds();
}

/// Measures one row of the table: makes a batch, lets it settle and times its steps.
template <class R>
nlohmann::json measure(const BatchBench& bench, const Model& model, const Drives& drives, int worlds, int threads) {
  BatchOptions options;
  options.step.dt = bench.dt, options.threads = threads, options.drives = drives;
  options.step.rows.contacts = options.step.rows.joints = !bench.no_contacts;
  const double began = now();
  Batch<R> batch(model, worlds, options);
  const double make = now() - began;
  const std::vector<double> start = keyframe_pose(model, bench.keyframe);
  const KeyframeSpec* key = find_keyframe(model, bench.keyframe);
  if (key) batch.reset_to(*key);

  std::mt19937 random(1);
  const int hold = int(std::clamp(std::round(bench.hold / bench.dt), 1.0, 1e9));
  std::vector<double> times;  // [s], each of one step of all worlds
  double residual = 0, penetration = 0, contacts = 0, touching = 0, iterations = 0, unsolved = 0, energy = 0;
  for (int step = 0; step < bench.settle + bench.steps; ++step) {
    if (interrupted()) throw CLI::RuntimeError(interrupt_status());
    if (step % hold == 0 && bench.targets > 0) aim(batch, start, bench.targets, random);
    if (step == bench.settle) energy = mean_energy(batch);
    const double before = now();
    batch.step();
    if (step < bench.settle) continue;
    times.push_back(now() - before);
    for (const WorldReport& r : batch.reports()) {
      residual = std::max(residual, r.residual), penetration = std::max(penetration, r.penetration);
      contacts += r.contacts, touching += r.touching, iterations += r.iterations, unsolved += r.unsolved;
    }
  }
  double total = 0;
  for (const double t : times) total += t;
  std::sort(times.begin(), times.end());
  const auto percentile = [&](double p) { return times[std::min(times.size() - 1, std::size_t(p * times.size()))]; };
  const double world_steps = double(worlds) * bench.steps;
  return {{"isa", name(isa_level())},
          {"precision", sizeof(R) == 8 ? "double" : "float"},
          {"worlds", worlds},
          {"threads", threads},
          {"worlds_a_call", batch.pack_width()},
          {"one_at_a_time_because", lanes_refusal<R>(model, options.step, &drives)},
          {"make_s", make},
          {"us_per_world_step", 1e6 * total / world_steps},
          {"world_steps_per_s", world_steps / total},
          {"step_ms", {{"p50", 1e3 * percentile(0.5)}, {"p99", 1e3 * percentile(0.99)}, {"max", 1e3 * times.back()}}},
          {"residual_max_m_per_s", residual},
          {"unsolved_share", unsolved / world_steps},
          {"penetration_max_m", penetration},
          {"energy_mean_j", {{"before", energy}, {"after", mean_energy(batch)}}},
          {"contacts_mean", contacts / world_steps},
          {"touching_mean", touching / world_steps},
          {"iterations_mean", iterations / world_steps},
          {"bad_worlds", batch.bad_worlds()}};
}

void print_head(const BatchBench& bench, const nlohmann::json& first) {
  fmt::print("{}, steps of {:.6g} s, gains {}, force limit {}, new targets within {} rad of the start every {} s, {}\n",
             bench.model, bench.dt, bench.gains, bench.force_limit, bench.targets, bench.hold,
             bench.no_contacts ? "no contacts" : "contacts with the ground and between links, joint limits");
  if (first["worlds_a_call"] == 1)
    fmt::print("worlds are stepped individually: {}\n", first["one_at_a_time_because"].get<std::string>());
  fmt::print("\n{:<9}{:<7}{:>7}{:>8}{:>6}{:>10}{:>12}{:>18}{:>10}{:>9}{:>9}{:>18}{:>9}{:>8}{:>5}\n", "", "", "", "",
             "worlds", "us per", "world", "ms per step", "residual", "un-", "deepest", "energy J", "touch-", "itera-",
             "");
  fmt::print("{:<9}{:<7}{:>7}{:>8}{:>6}{:>10}{:>12}{:>9}{:>9}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>8}{:>5}\n", "isa", "",
             "worlds", "threads", "/call", "world", "steps/s", "p50", "p99", "m/s", "solved", "mm", "before", "after",
             "ing", "tions", "bad");
}

void print_row(const nlohmann::json& r) {
  const auto number = [&](const char* key) { return r[key].get<double>(); };
  fmt::print(
      "{:<9}{:<7}{:>7}{:>8}{:>6}{:>10.2f}{:>12.0f}{:>9.2f}{:>9.2f}{:>10.1e}{:>9.1e}{:>9.1f}{:>9.0f}{:>9.0f}{:>9.1f}"
      "{:>8.1f}{:>5}\n",
      r["isa"].get<std::string>(), r["precision"].get<std::string>(), r["worlds"].get<int>(), r["threads"].get<int>(),
      r["worlds_a_call"].get<int>(), number("us_per_world_step"), number("world_steps_per_s"),
      r["step_ms"]["p50"].get<double>(), r["step_ms"]["p99"].get<double>(), number("residual_max_m_per_s"),
      number("unsolved_share"), 1e3 * number("penetration_max_m"), r["energy_mean_j"]["before"].get<double>(),
      r["energy_mean_j"]["after"].get<double>(), number("touching_mean"), number("iterations_mean"),
      r["bad_worlds"].get<int>());
  std::fflush(stdout);
}

/// Measures all rows with this process's instruction set. Calls on_row with each row as soon as it is measured.
void run_rows(const BatchBench& bench, const std::function<void(const nlohmann::json&)>& on_row) {
  const Model model = load_model(find_built_in(bench.model), bench.options, bench.json);
  Drives drives = read_gains(model, bench.gains);
  if (bench.force_limit != "none") limit_forces(bench.force_limit, model, drives);
  for (const std::string& precision : bench.precisions) {
    for (const int worlds : bench.worlds) {
      for (const int threads : bench.threads) {
        on_row(within_memory(fmt::format("{} worlds of {}", worlds, bench.model), [&] {
          return precision == "double" ? measure<double>(bench, model, drives, worlds, threads)
                                       : measure<float>(bench, model, drives, worlds, threads);
        }));
      }
    }
  }
}

/// Does the same in a child process, because a process chooses its instruction set only once.
void run_rows_with(const std::string& set, const BatchBench& bench,
                   const std::function<void(const nlohmann::json&)>& on_row) {
  int ends[2];
  if (pipe(ends) != 0) throw Error("--isa: cannot open a pipe to a child process");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw Error("--isa: cannot start a child process");
  if (child == 0) {
    close(ends[0]);
    int code = 0;
    try {
      setenv("TARSUS_ISA_LEVEL", set.c_str(), 1);
      if (name(isa_level()) != set)
        throw ValueError("--isa", set,
                         "an instruction set of this build and processor, such as " + std::string(name(isa_level())));
      FILE* out = fdopen(ends[1], "w");
      run_rows(bench, [&](const nlohmann::json& row) { fmt::print(out, "{}\n", row.dump()), std::fflush(out); });
    } catch (const CLI::RuntimeError& stopped) {
      code = stopped.get_exit_code();
    } catch (const InputError& e) {
      tell("{}\n", e.what());
      code = 1;
    } catch (const std::exception& e) {
      tell("error: {}\n", e.what());
      code = status_of(e);
    }
    _exit(code);
  }
  pass_interrupts_to(child);
  close(ends[1]);
  FILE* in = fdopen(ends[0], "r");
  char* line = nullptr;
  std::size_t room = 0;
  while (getline(&line, &room, in) > 0) on_row(nlohmann::json::parse(line));
  std::free(line);
  std::fclose(in);
  int status = 0;
  const bool ended = waitpid(child, &status, 0) == child && WIFEXITED(status);
  pass_interrupts_to(0);
  if (interrupted()) throw CLI::RuntimeError(interrupt_status());
  if (const int code = ended ? WEXITSTATUS(status) : 1; code != 0)
    throw CLI::RuntimeError(in_json(bench.json, "--isa: the process with " + set + " failed", code));
}

void execute(BatchBench bench) {
  if (bench.threads.empty()) {
    bench.threads.push_back(1);
    const int cores = int(std::thread::hardware_concurrency());
    if (cores > 1) bench.threads.push_back(std::min(cores, 256));
  }
  nlohmann::json rows = nlohmann::json::array();
  const auto on_row = [&](const nlohmann::json& row) {
    rows.push_back(row);
    if (bench.json) return;
    if (rows.size() == 1) print_head(bench, row);
    print_row(row);
  };
  try {
    if (bench.sets.empty()) run_rows(bench, on_row);
    for (const std::string& set : bench.sets) run_rows_with(set, bench, on_row);
  } catch (const CLI::RuntimeError&) {
    if (!interrupted()) throw;
  }
  if (bench.json) {
    nlohmann::json json = {{"model", bench.model},           {"dt", bench.dt},
                           {"gains", bench.gains},           {"force_limit", bench.force_limit},
                           {"targets_rad", bench.targets},   {"hold_s", bench.hold},
                           {"contacts", !bench.no_contacts}, {"settle", bench.settle},
                           {"steps", bench.steps},           {"rows", rows}};
    if (interrupted()) json["interrupted"] = true;
    print_json(json);
  }
  if (interrupted()) throw CLI::RuntimeError(interrupt_status());
  if (std::ranges::any_of(rows, [](const nlohmann::json& row) { return row["bad_worlds"] == row["worlds"]; })) {
    tell("the simulation failed in every world: what was measured is no step's time\n");
    throw CLI::RuntimeError(3);
  }
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand("bench", "Measure how fast and how accurately this machine steps many worlds");
  bench->require_subcommand(1);
  auto options = std::make_shared<BatchBench>();
  CLI::App* command = bench->add_subcommand(
      "batch", "Step many worlds together, for each combination of worlds, threads, precision and instruction set");
  command->add_option("model", options->model, "MJCF or URDF file")->capture_default_str();
  const auto list = [&]<class T>(const char* name, std::vector<T>& values, const char* text) {
    return command->add_option(name, values, text)->delimiter(',');
  };
  list("--worlds", options->worlds, "Numbers of worlds, separated by commas")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  list("--threads", options->threads, "Numbers of threads; default: 1 and the number of cores")
      ->check(CLI::Range(1, 256));
  list("--precision", options->precisions, "double, float")
      ->check(CLI::IsMember({"double", "float"}))
      ->capture_default_str();
  list("--isa", options->sets, "Instruction sets: baseline, avx2, avx512; default: the best of this machine")
      ->check(CLI::IsMember({"baseline", "avx2", "avx512"}));
  command->add_option("--keyframe", options->keyframe, "Keyframe of the model to start from, about which targets vary");
  command->add_option("--gains", options->gains, "KP,KD or KP,KD,ROOT_KP,ROOT_KD or a JSON file")
      ->capture_default_str();
  command
      ->add_option("--force-limit", options->force_limit,
                   "Largest drive force in N m (N), \"model\" for the file's limits, or \"none\"")
      ->capture_default_str();
  command
      ->add_option("--targets", options->targets,
                   "Largest deviation of a target from the start [rad]; 0: constant targets")
      ->check(number_from(0))
      ->capture_default_str();
  command->add_option("--hold", options->hold, "Time between new targets [s]")
      ->check(number_from(0))
      ->capture_default_str();
  command->add_option("--dt", options->dt, "Time step [s]")->check(number_from(1e-9))->capture_default_str();
  command->add_option("--steps", options->steps, "Number of timed steps")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("--settle", options->settle, "Number of untimed steps before them")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  command->add_flag("--no-contacts", options->no_contacts, "Leave out contacts and joint limits");
  command->add_flag("--json", options->json, "Print one JSON object instead of the table");
  add_read_options(*command, options->options);
  command->footer(
      "Drives with a force limit move every joint to targets that differ from world to world. The time is "
      "the wall time of steps of the\n"
      "whole batch, without setting targets: mean per world, and p50 and p99, within which half and 99 of "
      "100 steps stay. Accuracy is\n"
      "measured over the same steps and all worlds: largest residual of contacts, limits and drives, share "
      "of steps above the tolerance,\n"
      "deepest penetration, mean energy of a world before and after, mean numbers of contacts with a force "
      "and of iterations, and number\n"
      "of failed worlds.\n"
      "\n"
      "  tarsus bench batch\n"
      "  tarsus bench batch models/dog.xml --worlds 256,4096 --threads 1 --targets 0 --isa baseline,avx2\n"
      "\n"
      "More: docs/many_worlds.md.");
  command->callback([options] { execute(*options); });
}

}  // namespace tarsus::app
