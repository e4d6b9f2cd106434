// Whole steps of characters and robots on the ground with all kinds of constraints active: how often the residual
// exceeds the tolerance, numbers of iterations, energy, and times. One JSON object per scene on standard output.
//   step_bench [SCENE ...] [--seeds N] [--seconds S]     default: all scenes, 3 seeds of 4 s
//     --compliance C    relative compliance of rows without one (TermOptions)
//     --products off|auto|on
//     --no-contacts
//     --gains KP,LIMIT  of scenes whose drives have a force limit
// iterations   factorisations per step: mean, p99, maximum
// missed       share of the steps whose natural residual is above 1e-6 m/s; `over`: above 1e-3; `worst`: the largest
// torque       largest ratio of a limited drive's force to its limit, minus 1
// rise         highest energy above the initial energy [J]; `start`: energy available to a fall, lowest point at 0
// us           microseconds per step of this thread: p50, p99, maximum
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "support/limit_run.hpp"
#include "timing.hpp"

namespace {

using namespace tarsus;
using namespace tarsus::bench;

struct Scene {
  const char* name;
  const char* model;     ///< built in, or a path in shared/data
  double kp, kd, limit;  ///< of every joint except the root; limit 0: none
  bool targets;          ///< random targets at 30 Hz, else the model's default pose
  double thrown;         ///< largest component of the initial velocity
  double drop;           ///< initial height above that of the file [m]
};

const Scene kScenes[] = {
    {"humanoid_stands", "humanoid", 1000, 100, 0, false, 0, 0},
    {"humanoid_falls_damped", "humanoid", 0, 0.3, 0, false, 1, 0},
    {"humanoid_falls", "humanoid", 0, 0, 0, false, 1, 0},
    {"dog_falls_damped", "dog", 0, 0.3, 0, false, 1, 0},
    {"dog_falls", "dog", 0, 0, 0, false, 1, 0},
    {"humanoid_limits", "humanoid", 300, 30, 60, true, 0, 0},
    {"humanoid_stiff", "humanoid", 1e6, 1e5, 50, true, 0, 0},
    {"dog_stiff", "dog", 1e6, 1e5, 50, true, 0, 0},
    {"cassie_falls", "menagerie/agility_cassie/scene.xml", 0, 0, 0, false, 1, 0.1},
    {"cassie_limits", "menagerie/agility_cassie/scene.xml", 300, 30, 50, true, 0, 0},
    {"toddlerbot_falls", "menagerie/toddlerbot_2xc/scene.xml", 0, 0, 0, false, 1, 0.1},
    {"g1_falls", "menagerie/unitree_g1/scene.xml", 0, 0, 0, false, 1, 0.1},
    {"g1_limits", "menagerie/unitree_g1/scene.xml", 1e4, 1e3, 100, true, 0, 0},
    {"spot_falls", "menagerie/boston_dynamics_spot/scene.xml", 0, 0, 0, false, 1, 0.1},
    {"go2_falls", "menagerie/unitree_go2/scene.xml", 0, 0, 0, false, 1, 0.1},
    {"a1_falls", "menagerie/unitree_a1/scene.xml", 0, 0, 0, false, 1, 0.1},
    {"berkeley_falls", "menagerie/berkeley_humanoid/scene.xml", 0, 0, 0, false, 1, 0.1},
};

struct Settings {
  int seeds = 3;
  double seconds = 4;
  double kp = -1, limit = -1;
  StepOptions options;
};

std::filesystem::path path_of(const Scene& scene) {
  const std::filesystem::path root(TARSUS_SOURCE_DIR);
  if (std::strchr(scene.model, '/')) return root / "../shared/data" / scene.model;
  return root / "models" / (std::string(scene.model) + ".xml");
}

double total_energy(const Model& model, Data& workspace, const Data& data) {
  kinematics<double>(model, workspace, data.qpos, data.qvel);
  return energy<double>(model, workspace, data.qpos, data.qvel).total();
}

double percentile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[std::min(values.size() - 1, std::size_t(share * double(values.size())))];
}

void run(const Scene& scene, const Settings& settings) {
  if (!std::filesystem::exists(path_of(scene))) {
    fmt::print(stderr, "{}: no {}\n", scene.name, path_of(scene).string());
    return;
  }
  ReadOptions load;
  load.lenient = true;
  const Model model = compile(read_model(path_of(scene), load));
  const double kp = scene.limit > 0 && settings.kp >= 0 ? settings.kp : scene.kp;
  const double limit = scene.limit > 0 && settings.limit >= 0 ? settings.limit : scene.limit;
  const Drives drives = test::joint_drives(model, kp, scene.limit > 0 && settings.kp >= 0 ? kp / 10 : scene.kd, limit);
  std::vector<double> times, iterations, misses;
  long steps = 0, missed = 0, over = 0, stopped = 0, said_ok = 0;
  double worst = 0, torque = -1, rise = -1e300, end = -1e300, loops = 0;
  for (int seed = 0; seed < settings.seeds; ++seed) {
    Data data(model), workspace(model);
    Stepper<double> stepper(model, data, settings.options);
    test::Random random(seed);
    if (!model.spec.keyframes.empty() && int(model.spec.keyframes[0].qpos.size()) == model.nq)
      std::copy_n(model.spec.keyframes[0].qpos.begin(), model.nq, data.qpos.begin());
    if (moves_freely(model.joints[0].type)) data.qpos[2] += scene.drop;
    for (double& v : data.qvel) v = scene.thrown * random.uniform(-1, 1);
    std::vector<double> target(data.qpos.begin(), data.qpos.end());
    const double before = total_energy(model, workspace, data);
    for (int i = 0; i < int(settings.seconds / settings.options.dt); ++i) {
      if (scene.targets && i % 2 == 0) test::random_target(random, model, 1, target);
      const double start = seconds();
      const int bad = stepper.step(data, drives, target);
      times.push_back((seconds() - start) * 1e6);
      if (bad) {
        ++stopped;
        break;
      }
      ++steps;
      const RowsReport& report = stepper.rows()->report();
      iterations.push_back(report.iterations);
      missed += !(report.residual <= 1e-6), over += !(report.residual <= 1e-3);
      worst = std::max(worst, report.residual);
      if (stepper.loops()) {
        misses.push_back(stepper.rows()->terms().mass().bilateral().miss);
        said_ok += stepper.loops()->status(0) <= KktStatus::redundant;
        loops = std::max(loops, stepper.loops()->error(0).position);
      }
      if (limit > 0) {
        for (const Joint& j : model.joints) {
          if (moves_freely(j.type)) continue;
          double length = 0;
          for (int k = 0; k < j.nv(); ++k) length = std::hypot(length, stepper.drive_force()[j.qvel + k]);
          torque = std::max(torque, length / limit - 1);
        }
      }
      const double now = total_energy(model, workspace, data);
      rise = std::max(rise, now - before), end = now - before;
    }
  }
  double mean = 0;
  for (const double n : iterations) mean += n / double(iterations.size());
  const double n = double(std::max(1L, steps));
  fmt::print(
      "{{\"scene\":\"{}\",\"steps\":{},\"stopped\":{},\"iterations\":{{\"mean\":{:.2f},\"p99\":{:.0f},\"most\":{:.0f}}}"
      ","
      "\"missed\":{:.2g},\"over\":{:.2g},\"worst\":{:.2g},\"loops_ok\":{:.4f},\"loop_error\":{:.1g},\"loop_miss\":[{:."
      "1g},{:.1g},{:.1g}],\"torque\":{:.1g},"
      "\"rise\":{:.3g},\"end\":{:.3g},\"us\":{{\"p50\":{:.1f},\"p99\":{:.1f},\"most\":{:.0f}}}}}\n",
      scene.name, steps, stopped, mean, percentile(iterations, 0.99), percentile(iterations, 1), double(missed) / n,
      double(over) / n, worst, double(said_ok) / n, loops, percentile(misses, 0.5), percentile(misses, 0.99),
      percentile(misses, 1), torque, rise, end, percentile(times, 0.5), percentile(times, 0.99), percentile(times, 1));
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  pin_to_one_core();
  Settings settings;
  settings.options.dt = 1.0 / 60;
  settings.options.rows.contacts = settings.options.rows.joints = true;
  std::vector<std::string> wanted;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const auto value = [&] { return i + 1 < argc ? std::string(argv[++i]) : std::string(); };
    if (arg == "--seeds") {
      settings.seeds = std::stoi(value());
    } else if (arg == "--seconds") {
      settings.seconds = std::stod(value());
    } else if (arg == "--products") {
      const std::string mode = value();
      settings.options.velocity_products = mode == "on"     ? VelocityProductMode::on
                                           : mode == "auto" ? VelocityProductMode::automatic
                                                            : VelocityProductMode::off;
    } else if (arg == "--no-contacts") {
      settings.options.rows.contacts = false;
    } else if (arg == "--gains") {
      const std::string both = value();
      settings.kp = std::stod(both), settings.limit = std::stod(both.substr(both.find(',') + 1));
    } else {
      wanted.push_back(arg);
    }
  }
  for (const Scene& scene : kScenes) {
    bool run_it = wanted.empty();
    for (const std::string& w : wanted) run_it = run_it || std::string(scene.name).find(w) != std::string::npos;
    if (run_it) run(scene, settings);
  }
}
