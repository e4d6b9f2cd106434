// tarsus scene: simulates free rigid bodies with contact, from a model file or a built-in scene.
#include <fmt/core.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>

#include "command.hpp"
#include "tarsus/io/recording.hpp"
#include "tarsus/sim/rigid_model.hpp"

namespace tarsus::app {

namespace {

struct SceneRun {
  std::string scene, out;
  double duration = 5, tolerance = 0;
  std::optional<double> dt, restitution, friction, compliance, damping_time;
  std::optional<long> iterations;
  int threads = 1;
  bool use_float = false, sleep = false, json = false, quiet = false, list = false, profile = false;
  ReadOptions options;
};

void apply(const SceneRun& run, RigidScene& scene) {
  RigidWorldOptions& o = scene.options;
  if (run.dt) o.dt = *run.dt;
  if (run.iterations) {
    o.iterations = int(*run.iterations);
    if (o.iterations != *run.iterations)
      throw ValueError("--iterations", std::to_string(*run.iterations), "1 to 1,000,000");
  }
  o.tolerance = run.tolerance, o.threads = run.threads, o.sleep = run.sleep;
  if (run.damping_time) o.damping_time = *run.damping_time;
  scene.set_surfaces(run.friction, run.restitution, run.compliance);
  check(o);
  check_duration(run.duration, o.dt);
}

struct SceneOutcome {
  WorldStatus status = WorldStatus::ok;
  int steps = 0, contacts_max = 0, touching = 0, contacts = 0;
  double seconds = 0, penetration_max = 0, penetration_now = 0, penetration_mean = 0, residual = 0;
  double kinetic = 0, potential = 0, top_speed = 0;
  std::uint64_t hash = 0;
  std::array<double, kStages> stage_seconds{};
};

template <class R>
SceneOutcome simulate(const SceneRun& run, const RigidModel& model, RecordingWriter* recording) {
  const RigidScene& scene = model.scene;
  RigidWorld<R> world = make_world<R>(scene);
  if (world.threads() < run.threads) {
    tell("warning: --threads {}: using {}, at most one for each core and for every {} bodies\n", run.threads,
         world.threads(), kBodiesEach);
  }
  SceneOutcome out;
  const double count = std::round(run.duration / scene.options.dt);
  Progress progress(scene.name, run.quiet || run.json);
  std::vector<double> qpos(std::size_t(model.nq)), qvel(std::size_t(model.nv));
  const auto record = [&] {
    if (!recording) return;
    model.state(world, qpos, qvel);
    recording->frame(world.time(), qpos, qvel);
  };
  for (int i = 0; i < int(count) && !interrupted(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    const RigidStepReport r = world.step();
    out.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    out.status = r.status;
    if (r.status != WorldStatus::ok) break;
    ++out.steps;
    for (int k = 0; k < kStages; ++k) out.stage_seconds[std::size_t(k)] += r.seconds[std::size_t(k)];
    out.contacts_max = std::max(out.contacts_max, r.contacts), out.contacts = r.contacts, out.touching = r.touching;
    out.penetration_max = std::max(out.penetration_max, r.penetration_max);
    out.penetration_now = r.penetration_max, out.penetration_mean = r.penetration_mean, out.residual = r.residual;
    record();
    progress.update((i + 1) / count, fmt::format("t = {:6.2f} s  {} contacts", world.time(), r.contacts));
  }
  progress.finish();
  out.kinetic = world.kinetic_energy(), out.potential = world.potential_energy(), out.hash = world.state_hash();
  for (const RigidBody& b : world.bodies()) out.top_speed = std::max(out.top_speed, norm(b.velocity));
  return out;
}

void print(const SceneRun& run, const RigidScene& scene, const SceneOutcome& o) {
  if (run.json) {
    nlohmann::json json{
        {"scene", scene.name},
        {"bodies", scene.bodies.size()},
        {"status", name(o.status)},
        {"steps", o.steps},
        {"dt", scene.options.dt},
        {"seconds", o.seconds},
        {"ms_per_step", o.steps ? 1e3 * o.seconds / o.steps : 0.0},
        {"contacts", {{"now", o.contacts}, {"touching", o.touching}, {"max", o.contacts_max}}},
        {"penetration_m", {{"max", o.penetration_max}, {"now", o.penetration_now}, {"mean_now", o.penetration_mean}}},
        {"residual", o.residual},
        {"energy", {{"kinetic", o.kinetic}, {"potential", o.potential}}},
        {"top_speed", o.top_speed},
        {"state_hash", fmt::format("{:016x}", o.hash)}};
    if (run.profile) json["stage_seconds"] = stages_json(o.stage_seconds);
    if (interrupted()) json["interrupted"] = true;
    print_json(json);
    return;
  }
  const auto row = [](const char* what, const std::string& value) { fmt::print("  {:<22}{}\n", what, value); };
  row("status", name(o.status));
  row("bodies", fmt::format("{}", scene.bodies.size()));
  row("steps", fmt::format("{} of {:.6g} s, {:.3f} ms each", o.steps, scene.options.dt,
                           o.steps ? 1e3 * o.seconds / o.steps : 0));
  row("contacts", fmt::format("{} now, of which {} touch; at most {}", o.contacts, o.touching, o.contacts_max));
  row("penetration", fmt::format("{:.3g} m at most, {:.3g} m now, {:.3g} m on average now", o.penetration_max,
                                 o.penetration_now, o.penetration_mean));
  row("residual", fmt::format("{:.3g} m/s in the last step", o.residual));
  row("energy", fmt::format("kinetic {:.4g} J, potential {:.4g} J", o.kinetic, o.potential));
  row("fastest body", fmt::format("{:.3g} m/s", o.top_speed));
  row("state hash", fmt::format("{:016x}", o.hash));
  if (run.profile) print_stages(o.stage_seconds, o.steps);
}

void execute(const SceneRun& run) {
  if (run.list) return print_lists({{"scenes", named_scenes()}}, run.json);
  if (run.scene.empty()) throw ValueError("scene", "nothing", "a model file or one of " + scene_names());
  std::error_code failed;
  const bool file = std::filesystem::path(run.scene).has_extension() || std::filesystem::exists(run.scene, failed);
  if (!file && !named_scene(run.scene)) throw ValueError("scene", run.scene, "a model file or one of " + scene_names());
  const Model model = load_model(run.scene, run.options, run.quiet || run.json);
  RigidModel rigid = rigid_model(model);
  RigidScene& scene = rigid.scene;
  if (scene.name.empty()) scene.name = std::filesystem::path(run.scene).stem().string();
  std::optional<RecordingWriter> recording;
  if (!run.out.empty()) {
    if (std::filesystem::path(run.out).extension() != ".npz")
      throw ValueError("--out", run.out, "a file that ends in .npz");
    check_apart({{"--out", run.out}}, {{"the scene", run.scene}});
  }
  apply(run, scene);
  if (!run.out.empty()) {
    check_recording(model, run.duration, scene.options.dt);
    recording.emplace(run.out, model);
  }
  RecordingWriter* to = recording ? &*recording : nullptr;
  const std::string what =
      fmt::format("{} bodies{}", scene.bodies.size(), recording ? " and the recording of their motion" : "");
  const auto meta = [&](WorldStatus status) {
    return MetaPairs{{"dt", scene.options.dt}, {"model_file", run.scene}, {"status", name(status)}};
  };
  const SceneOutcome outcome = within_memory(
      what, [&] { return run.use_float ? simulate<float>(run, rigid, to) : simulate<double>(run, rigid, to); },
      [&] { return keep_recording(to, run.out, meta(WorldStatus::ok)); });
  if (recording) recording->finish(meta(outcome.status));
  print(run, scene, outcome);
  if (outcome.status != WorldStatus::ok) {
    tell("the simulation stopped after step {}: {}\n", outcome.steps, name(outcome.status));
    throw CLI::RuntimeError(3);
  }
  report_interrupt(outcome.steps * scene.options.dt, "s");
}

}  // namespace

void add_scene_command(CLI::App& app) {
  auto run = std::make_shared<SceneRun>();
  CLI::App* command = app.add_subcommand("scene", "Simulate free rigid bodies with contact: piles, stacks, dominoes");
  command->add_option("scene", run->scene,
                      "MJCF or URDF file in which every joint is free, or a built-in scene (--list)");
  command->add_flag("--list", run->list, "List the built-in scenes");
  command->add_option("--duration", run->duration, "Simulated time [s], rounded to a whole number of steps")
      ->capture_default_str();
  command->add_option("--dt", run->dt, "Time step [s]; default: the file's, or 1/60 for a built-in scene");
  command->add_option("--iterations", run->iterations,
                      "Number of sweeps over the contacts per step; default 10, or the file's");
  command->add_option("--tolerance", run->tolerance,
                      "Stop sweeping when no contact changes a velocity by more than this [m/s]");
  command->add_option("--friction", run->friction, "Friction coefficient of all surfaces, replacing their own")
      ->check(number_from(0));
  command->add_option("--restitution", run->restitution, "Coefficient of restitution of all contacts")
      ->check(number_from(0, 1));
  command->add_option("--compliance", run->compliance, "Compliance of all contacts [m/N]; 0: the default of the step")
      ->check(number_from(0));
  command
      ->add_option("--damping-time", run->damping_time,
                   "Time constant with which penetrations decay [s]; default four steps")
      ->check(number_from(0));
  command
      ->add_option(
          "--threads", run->threads,
          fmt::format("Threads, at most one for each core and for every {} bodies; the result does not depend on them",
                      kBodiesEach))
      ->capture_default_str();
  command->add_flag("--float", run->use_float, "Solve contacts in single precision (poses stay double)");
  command->add_flag("--sleep", run->sleep, "Put groups of bodies that have come to rest to sleep");
  command->add_option("--out", run->out, "Recording to write (.npz: time, qpos, qvel)");
  command->add_flag("--profile", run->profile, "Report the wall time of each stage of the steps");
  command->add_flag("--json", run->json, "Print one JSON object instead of the table");
  command->add_flag("--quiet", run->quiet, "Print neither progress nor warnings");
  add_read_options(*command, run->options);
  command->footer(
      "Penetrations are in metres, at the start of a step. Exit status 3: the simulation failed.\n"
      "\n"
      "  tarsus scene balls:20:20 --duration 10 --float --threads 2\n"
      "  tarsus scene models/scenes/card_house.xml --iterations 50 --duration 60\n"
      "  tarsus scene slope:25 --friction 0.5\n"
      "\n"
      "More: docs/contact.md.");
  command->callback([run] { within_memory("the scene " + run->scene, [&] { execute(*run); }); });
}

}  // namespace tarsus::app
