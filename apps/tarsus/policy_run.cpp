#include "policy_run.hpp"

#include <chrono>
#include <cmath>

#include "command.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/io/npz.hpp"
#include "tarsus/learn/motion_task.hpp"
#include "tarsus/learn/policy.hpp"
#include "tarsus/learn/vector_task.hpp"

namespace tarsus::app {
namespace {

constexpr std::size_t kAny = NpzReader::kAny;

[[noreturn]] void refuse(const PolicyRun& run, const std::string& what, const std::string& expected) {
  throw InputError(Location{run.file, 0, 0, {}}, what + ", expected " + expected);
}

DensePolicy read_policy(NpzReader& file, const PolicyRun& run) {
  const auto finite = [&](const std::string& name, const NpzShape& shape) {
    std::vector<double> values = file.read_real(name, shape);
    for (double x : values)
      if (!std::isfinite(x)) refuse(run, name + " is " + number_text(x), "finite numbers");
    return values;
  };
  if (!file.has("mean") || !file.has("weight0"))
    refuse(run, "is not a policy: no \"mean\" or no \"weight0\"", "a file saved by tarsus.learn");
  DensePolicy policy;
  policy.mean = finite("mean", {kAny}), policy.scale = finite("scale", {policy.mean.size()});
  for (double x : policy.scale)
    if (!(x > 0)) refuse(run, "scale is " + number_text(x), "positive numbers");
  std::size_t inputs = policy.mean.size();
  for (int i = 0; i == 0 || file.has("weight" + std::to_string(i)) || file.has("bias" + std::to_string(i)); ++i) {
    std::vector<double> bias = finite("bias" + std::to_string(i), {kAny});
    const std::size_t outputs = bias.size();
    policy.layers.push_back({finite("weight" + std::to_string(i), {outputs, inputs}), std::move(bias)});
    inputs = outputs;
  }
  policy.offset = finite("action_offset", {inputs}), policy.gain = finite("action_scale", {inputs});
  policy.check();
  return policy;
}

/// The task of the policy's training, except for start, time limit and (if run.dt is set) number of substeps.
MotionTask read_task(NpzReader& file, const Model& model, const ClipBinding& clip, const PolicyRun& run) {
  const auto numbers = [&](const char* name) { return file.read_real(std::string("task_") + name, {kAny}); };
  const auto number = [&](const char* name) { return file.read_real(std::string("task_") + name, {1})[0]; };
  const auto whole = [&](const char* name, double x) {
    if (!(std::abs(x) < 1e9) || x != std::floor(x))
      refuse(run, std::string("task_") + name + " is " + number_text(x), "a whole number");
    return int(x);
  };
  const auto flag = [&](const char* name) { return whole(name, number(name)) != 0; };
  if (!file.has("task_kp"))
    refuse(run, "is a policy without a task's gains", "a policy that was trained to follow a clip");
  Drives drives{numbers("kp"), numbers("kd")};
  drives.force_limit = numbers("force_limit");
  if (drives.kp.size() != std::size_t(model.nv))
    refuse(run, std::to_string(drives.kp.size()) + " degrees of freedom",
           std::to_string(model.nv) + ", as in the model");
  MotionTaskOptions options;
  options.joint_weight = numbers("joint_weight");
  const std::vector<double> points = file.read_real("task_end_effectors", {kAny, 4}), weights = numbers("weights");
  for (std::size_t i = 0; i + 3 < points.size(); i += 4)
    options.end_effectors.push_back({whole("end_effectors", points[i]), {points[i + 1], points[i + 2], points[i + 3]}});
  for (double foot : numbers("feet")) options.feet.push_back(whole("feet", foot));
  options.weights = weights;
  if (file.has("task_reward") && flag("reward")) options.reward = ImitationReward::mimickit;
  options.control_dt = number("control_dt"), options.substeps = whole("substeps", number("substeps"));
  if (run.dt) {
    options.substeps = int(std::lround(options.control_dt / *run.dt));
    if (options.substeps < 1 || std::abs(options.substeps * *run.dt - options.control_dt) > 1e-4)
      throw ValueError("--dt", number_text(*run.dt),
                       "an integer fraction of the policy's control step, " + number_text(options.control_dt));
  }
  options.phase = flag("phase"), options.follow_root = flag("follow_root");
  options.relative_action = flag("relative_action");
  options.start = run.start, options.time_limit = run.duration;
  return about_file(run.file, [&] { return MotionTask(model, clip, std::move(drives), std::move(options)); });
}

/// Repeats each control step of the batch with a Stepper, which provides the force of each contact.
class Contacts {
 public:
  Contacts(const Model& model, const BatchOptions& options)
      : drives_(*options.drives), data_(model), stepper_(model, data_, options.step) {}
  void begin(Batch<double>& batch) {
    std::ranges::copy(batch.qpos(), data_.qpos.begin()), std::ranges::copy(batch.qvel(), data_.qvel.begin());
  }
  void step(Batch<double>& batch, int substeps) {
    for (int i = 0; i < substeps; ++i) stepper_.step(data_, drives_, batch.qpos_target(), batch.qvel_target());
  }
  void show(TrackFrame& frame) {
    const RowStage<double>& rows = *stepper_.rows();
    frame.contacts = rows.contacts(), frame.rows = &rows.report();
    force_.clear();
    for (std::size_t k = 0; k < frame.contacts.size(); ++k) force_.push_back(rows.terms().force(int(k)));
    frame.contact_force = force_;
  }

 private:
  Drives drives_;
  Data data_;
  Stepper<double> stepper_;
  std::vector<Vec3d> force_;
};

}  // namespace

PolicyReport run_policy(const Model& model, const ClipBinding& clip, const PolicyRun& run,
                        const std::function<void(const TrackFrame&)>& on_frame) {
  NpzReader file{std::filesystem::path(run.file)};
  const DensePolicy policy = read_policy(file, run);
  const MotionTask task = read_task(file, model, clip, run);
  if (policy.mean.size() != std::size_t(task.observation_size()))
    refuse(run, std::to_string(policy.mean.size()) + " observed numbers",
           std::to_string(task.observation_size()) + ", as in the task");
  if (policy.offset.size() != std::size_t(task.action_size()))
    refuse(run, std::to_string(policy.offset.size()) + " actions",
           std::to_string(task.action_size()) + ", as in the task");

  const auto began = std::chrono::steady_clock::now();
  VectorTask<double> world(task, {.autoreset = Autoreset::disabled});
  world.reset();
  PolicyReport report{.control_dt = task.control_dt(), .dt = task.control_dt() / task.substeps()};
  const int steps = std::max(1, int(std::lround(run.duration / task.control_dt())));
  std::vector<double> action(task.action_size()), low(action), high(action), target(model.nq),
      target_velocity(model.nv);
  task.action_bounds(low, high);
  std::optional<Contacts> contacts;
  if (run.contacts) contacts.emplace(model, world.batch().options());
  ErrorMeter meter(model, *task.drives());
  double largest = 0;
  const auto show = [&] {
    task.reference(world.memory(), target, target_velocity);
    const std::span<const double> qpos = world.batch().qpos();
    TrackFrame frame{report.steps, steps, report.steps * task.control_dt(), qpos, world.batch().qvel(), target};
    frame.error_mean = meter.measure(qpos, target, largest);
    if (contacts && report.steps > 0) contacts->show(frame);
    on_frame(frame);
  };
  show();
  while (!world.terminated()[0] && !world.truncated()[0] && !interrupted()) {
    policy.act(world.observation(), action);
    for (std::size_t i = 0; i < action.size(); ++i) action[i] = std::min(std::max(action[i], low[i]), high[i]);
    if (contacts) contacts->begin(world.batch());
    world.step(action);
    report.status = world.batch().status(0);
    if (report.status != WorldStatus::ok) break;
    if (contacts) contacts->step(world.batch(), task.substeps());
    ++report.steps;
    report.reward += (world.reward()[0] - report.reward) / report.steps;
    show();
  }
  report.fell = report.status == WorldStatus::ok && world.terminated()[0];
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return report;
}

}  // namespace tarsus::app
