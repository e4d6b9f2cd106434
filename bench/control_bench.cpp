// Stable PD by every method: whole frames, growth with the size of the tree, tracking, and force limits. JSON objects
// on standard output, one per line; experiments/ makes tables and plots of them.
//   control_bench [PART ...] [--quick]     parts as below; default: frames growth limits fidelity steps
//   frames    nanoseconds of a whole frame (sample the clip, solve, integrate) for ten motions and all methods, and of
//             the same frame with ABA alone; the difference is the cost of stable PD
//   growth    one solve on chains and balanced binary trees of hinges; a method stops where a call would take too long
//   tracking  end effector to root, simulated minus reference, over time: dense and MABA, double and float, by step
//   toes      the cantering dog with paws of decreasing mass: where rounding separates dense and MABA in float
//   steps     nanoseconds of the simulator's whole step
//   limits    time of the limited solve over that of the unlimited one, along recorded runs, and its iterations
//   fidelity  limited tracking against itself with steps of 1/4,800 s
// Times are processor time of this thread, pinned to one core; methods alternate.
#include <cmath>
#include <memory>
#include <random>
#include <set>

#include "support/limit_run.hpp"
#include "tarsus/baselines/spd_solver.hpp"
#include "tarsus/control/clip.hpp"
#include "tarsus/control/force_limit.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/clip_mapping.hpp"
#include "tarsus/sim/step.hpp"
#include "timing.hpp"

namespace {

using namespace tarsus;
using namespace tarsus::bench;
using test::LimitRun;

bool g_quick = false;

template <class R>
const char* scalar_name() {
  return sizeof(R) == 8 ? "double" : "float";
}

/// A number, or null in place of nan and infinity, which JSON does not have.
std::string number(double x) { return std::isfinite(x) ? fmt::format("{:.5g}", x) : "null"; }

ClipBinding built_in_clip(const Model& model, const std::string& name) {
  const auto file = std::filesystem::path(TARSUS_SOURCE_DIR) / "models" / "clips" / (name + ".json");
  const MotionClip clip = read_clip(file);
  return bind(model, clip, choose_clip_mapping(model, clip));
}

// -- a character that tracks a clip ---------------------------------------------------------------------------------

/// State of one character, advanced frame by frame by one of the methods. Gains and control law are those of the paper.
template <class R>
class Tracker {
 public:
  Tracker(const Model& model, const ClipBinding& clip, double dt)
      : model_(model),
        clip_(clip),
        dt_(dt),
        data_(model),
        workspace_(model),
        drives_(Drives::uniform(model)),
        sample_q_(model.nq),
        sample_v_(model.nv),
        target_q_(model.nq),
        target_v_(model.nv) {
    drives_.plain = true;
    restart();
  }

  void restart() {
    time_ = 0;
    sample();
    data_.qpos = target_q_, data_.qvel = target_v_;
  }

  void frame(const SpdMethod<R>& method) {
    time_ += dt_;
    sample();
    method.solve(model_, data_, drives_, {data_.qpos, data_.qvel, target_q_, target_v_, {}, dt_}, workspace_,
                 data_.qacc, {});
    advance();
  }

  /// The same frame without drives: ABA at the sampled state.
  void frame_without_control() {
    time_ += dt_;
    sample();
    data_.qpos = target_q_, data_.qvel = target_v_;
    aba<R>(model_, data_, data_.qpos, data_.qvel, data_.tau, data_.qacc);
    advance();
  }

  double time() const { return time_; }
  bool finite() const {
    return std::all_of(data_.qpos.begin(), data_.qpos.end(), [](R x) { return std::isfinite(x); });
  }
  BasicData<R>& data() { return data_; }
  std::span<const R> target() const { return target_q_; }

 private:
  void sample() {
    clip_.sample(time_, sample_q_, sample_v_);
    std::copy(sample_q_.begin(), sample_q_.end(), target_q_.begin());
    std::copy(sample_v_.begin(), sample_v_.end(), target_v_.begin());
  }
  void advance() {
    for (int i = 0; i < model_.nv; ++i) data_.qvel[i] += R(dt_) * data_.qacc[i];
    integrate<R>(model_, data_, data_.qpos, data_.qvel, R(dt_), data_.qpos);
  }

  const Model& model_;
  const ClipBinding& clip_;
  double dt_, time_ = 0;
  BasicData<R> data_;
  SpdWorkspace<R> workspace_;
  Drives drives_;
  std::vector<double> sample_q_, sample_v_;
  AlignedVector<R> target_q_, target_v_;
};

// -- frames ---------------------------------------------------------------------------------------------------------

struct Motion {
  const char *model, *clip;
  double dt;  ///< [s], as in the paper
};
constexpr Motion kMotions[] = {{"humanoid", "walk", 1.0 / 30},      {"humanoid", "run", 1.0 / 30},
                               {"humanoid", "cartwheel", 1.0 / 30}, {"humanoid", "backflip", 1.0 / 30},
                               {"dog", "pace", 1.0 / 240},          {"dog", "trot", 1.0 / 240},
                               {"dog", "canter", 1.0 / 240},        {"snake36", "slither", 1.0 / 30},
                               {"snake72", "slither", 1.0 / 30},    {"snake195", "slither", 1.0 / 30}};

template <class R>
void bench_frames(const Motion& motion) {
  const Model model = built_in(motion.model);
  const ClipBinding clip = built_in_clip(model, std::string(motion.model) + "_" + motion.clip);
  std::vector<std::unique_ptr<Tracker<R>>> trackers;
  std::vector<std::function<void()>> calls;
  for (const SpdMethod<R>& method : spd_methods<R>()) {
    trackers.push_back(std::make_unique<Tracker<R>>(model, clip, motion.dt));
    calls.push_back([t = trackers.back().get(), &method] { t->frame(method); });
  }
  trackers.push_back(std::make_unique<Tracker<R>>(model, clip, motion.dt));
  calls.push_back([t = trackers.back().get()] { t->frame_without_control(); });
  const std::vector<Timing> t = time_in_turn(calls, {.rounds = g_quick ? 2 : 12, .repeats = g_quick ? 7 : 15});
  for (std::size_t i = 0; i < t.size(); ++i) {
    const bool control = i < spd_methods<R>().size();
    fmt::print(
        "{{\"bench\": \"frames\", \"model\": \"{}\", \"motion\": \"{}\", \"dt\": {}, \"nv\": {}, \"depth\": {}, "
        "\"scalar\": \"{}\", \"isa\": \"{}\", \"solver\": \"{}\", \"label\": \"{}\", \"ns\": {:.1f}, \"ns_median\": "
        "{:.1f}, \"finite\": {}}}\n",
        motion.model, motion.clip, motion.dt, model.nv, model.depth, scalar_name<R>(), name(isa_level()),
        control ? spd_methods<R>()[i].name : "none", control ? spd_methods<R>()[i].label : "ABA alone", t[i].best,
        t[i].median, trackers[i]->finite());
  }
  std::fflush(stdout);
}

// -- growth ---------------------------------------------------------------------------------------------------------

/// A chain or a balanced binary tree of hinges, attached to the world: the parent of body i is i - 1 or (i - 1) / 2.
Model hinge_tree(int links, bool chain) {
  std::mt19937 engine(1);
  std::uniform_real_distribution<double> uniform(-1, 1);
  ModelSpec spec;
  spec.name = chain ? "chain" : "tree";
  for (int i = 1; i <= links; ++i) {
    BodySpec body(fmt::format("link{}", i));
    body.parent = chain ? i - 1 : i / 2;
    body.orientation = axis_angle({1, 0, 0}, uniform(engine));
    body.position = {0.03 * uniform(engine), 0.03 * uniform(engine), 0.1};
    JointSpec joint;
    joint.name = fmt::format("joint{}", i);
    body.joints.push_back(joint);
    body.inertial = InertialSpec{0.5, {0.01, 0.02, 0.05}, diagonal3(0.0014, 0.0016, 0.001), {}};
    spec.bodies.push_back(body);
  }
  return compile(std::move(spec));
}

/// Times each method [ns] over growing trees. A method stops at the size at which a call would take too long.
void bench_growth(bool chain) {
  const double longest = g_quick ? 0.1 : 6;  // time limit of one call [s]
  std::set<SpdSolver> out;
  for (int n = 8; n <= 4096; n *= 2) {
    const Model model = hinge_tree(n, chain);
    Data data(model);
    SpdWorkspace<double> workspace(model);
    const Drives drives = Drives::uniform(model);
    std::mt19937 engine(5);
    std::uniform_real_distribution<double> uniform(-1, 1);
    std::vector<double> qpos(model.nq), qvel(model.nv), target(model.nq), qacc(model.nv), reference(model.nv);
    for (auto* v : {&qpos, &qvel, &target}) {
      for (double& x : *v) x = uniform(engine);
    }
    const SpdInput<double> input{qpos, qvel, target, {}, {}, 1.0 / 30};
    spd_method<double>(SpdSolver::maba).solve(model, data, drives, input, workspace, reference, {});
    for (const SpdMethod<double>& method : spd_methods<double>()) {
      if (out.contains(method.solver)) continue;
      const double start = seconds();
      method.solve(model, data, drives, input, workspace, qacc, {});
      const double first = seconds() - start;
      double difference = 0, scale = 0;
      for (int k = 0; k < model.nv; ++k) {
        difference = std::max(difference, std::abs(qacc[k] - reference[k])),
        scale = std::max(scale, std::abs(reference[k]));
      }
      const auto call = [&] { method.solve(model, data, drives, input, workspace, qacc, {}); };
      const double ns =
          first > 0.3 ? first * 1e9 : time_in_turn({call}, {.rounds = 3, .repeats = first > 0.02 ? 2 : 7})[0].best;
      fmt::print(
          "{{\"bench\": \"growth\", \"tree\": \"{}\", \"nv\": {}, \"depth\": {}, \"solver\": \"{}\", \"label\": "
          "\"{}\", "
          "\"ns\": {:.1f}, \"difference\": {:.2g}, \"pcg_iterations\": {}}}\n",
          model.name, n, model.depth, method.name, method.label, ns, difference / scale,
          method.solver == SpdSolver::pcg ? workspace.pcg_iterations : 0);
      std::fflush(stdout);
      if (ns * 9e-9 > longest) out.insert(method.solver);  // twice the size takes up to 8 times as long, with a margin
    }
  }
}

// -- steps ----------------------------------------------------------------------------------------------------------

/// Whole steps of the simulator, with drives that hold the file's pose, for comparison with steps of other engines.
void bench_steps() {
  for (const char* model_name : {"humanoid", "dog", "snake36", "snake72", "snake195"}) {
    const Model model = built_in(model_name);
    Data data(model);
    Stepper<double> stepper(model, data, {.dt = 1.0 / 60});
    const Drives drives = Drives::uniform(model);
    const std::vector<double> target = model.qpos0;
    const double ns = time_in_turn({[&] { stepper.step(data, drives, target); }}, {.rounds = 6})[0].best;
    fmt::print(
        "{{\"bench\": \"steps\", \"engine\": \"tarsus\", \"model\": \"{}\", \"nv\": {}, \"ns\": {:.1f}, \"status\": "
        "\"{}\"}}\n",
        model_name, model.nv, ns, name(stepper.status(0)));
  }
}

// -- tracking -------------------------------------------------------------------------------------------------------

/// Distance between (end effector - root) of two poses.
template <class R>
double effector_error(const Model& model, Data& work, int body, int root, std::span<const R> pose,
                      std::span<const R> target) {
  const auto arm = [&](std::span<const R> q) {
    kinematics<double>(model, work, std::vector<double>(q.begin(), q.end()));
    return body_pose(model, work, body).p - body_pose(model, work, root).p;
  };
  return norm(arm(pose) - arm(target));
}

struct TrackOutcome {
  double mean = 0, worst = 0;  ///< error [m]
  double diverged_at = -1;     ///< time of divergence [s], which ends the run; -1: none
  std::string times, errors;   ///< at 60 Hz, as JSON lists without their brackets
};

template <class R>
TrackOutcome track_effector(const Model& model, const ClipBinding& clip, const char* effector, double rate,
                            const SpdMethod<R>& method, double duration) {
  Tracker<R> tracker(model, clip, 1 / rate);
  Data work(model);
  const int body = model.body_id(effector), steps = int(std::lround(duration * rate));
  TrackOutcome out;
  for (int i = 1; i <= steps; ++i) {
    tracker.frame(method);
    const double error =
        tracker.finite() ? effector_error<R>(model, work, body, 1, tracker.data().qpos, tracker.target()) : kInfinity;
    if (!(error < 10)) {
      out.diverged_at = tracker.time();
      break;
    }
    out.worst = std::max(out.worst, error), out.mean += (error - out.mean) / i;
    if (i % std::max(1, int(std::lround(rate / 60))) != 0) continue;
    out.times += fmt::format("{}{:.5f}", out.times.empty() ? "" : ", ", tracker.time());
    out.errors += fmt::format("{}{:.4e}", out.errors.empty() ? "" : ", ", error);
  }
  return out;
}

void bench_tracking() {
  const struct {
    const char *model, *motion, *effector;
  } cases[] = {{"humanoid", "run", "right_foot"}, {"dog", "canter", "right_front_paw"}};
  for (const auto& c : cases) {
    const Model model = built_in(c.model);
    const ClipBinding clip = built_in_clip(model, std::string(c.model) + "_" + c.motion);
    for (const double rate : {30.0, 60.0, 120.0, 300.0, 600.0}) {
      for (const SpdSolver solver : {SpdSolver::dense, SpdSolver::maba}) {
        const auto track = [&]<class R>(const SpdMethod<R>& method) {
          const TrackOutcome t = track_effector<R>(model, clip, c.effector, rate, method, g_quick ? 2 : 5);
          fmt::print(
              "{{\"bench\": \"tracking\", \"model\": \"{}\", \"motion\": \"{}\", \"effector\": \"{}\", \"rate\": {}, "
              "\"solver\": \"{}\", \"label\": \"{}\", \"scalar\": \"{}\", \"diverged_at\": {:.4f}, \"mean\": {:.6e}, "
              "\"max\": "
              "{:.6e}, \"time\": [{}], \"error\": [{}]}}\n",
              model.name, c.motion, c.effector, rate, method.name, method.label, scalar_name<R>(), t.diverged_at,
              t.mean, t.worst, t.times, t.errors);
        };
        track(spd_method<double>(solver)), track(spd_method<float>(solver));
      }
    }
    std::fflush(stdout);
  }
}

/// The dog with paws of `scale` times their mass and inertia.
Model light_footed(double scale) {
  ModelSpec spec = built_in("dog").spec;
  for (BodySpec& body : spec.bodies) {
    if (body.name.find("paw") == std::string::npos || !body.inertial) continue;
    body.inertial->mass *= scale, body.inertial->inertia = body.inertial->inertia * scale;
  }
  Model model = compile(std::move(spec));
  model.name = "dog";
  return model;
}

void bench_light_toes() {
  for (double scale = 1; scale > 1e-5; scale /= 10) {
    const Model model = light_footed(scale);
    MotionClip clip = read_clip(std::filesystem::path(TARSUS_SOURCE_DIR) / "models" / "clips" / "dog_canter.json");
    const ClipBinding binding = bind(model, clip, identity_mapping(model, clip));
    for (const SpdSolver solver :
         {SpdSolver::dense, SpdSolver::maba_standalone, SpdSolver::maba, SpdSolver::dense_direct}) {
      const auto track = [&]<class R>(const SpdMethod<R>& method) {
        const TrackOutcome t = track_effector<R>(model, binding, "right_front_paw", 60, method, g_quick ? 2 : 5);
        fmt::print(
            "{{\"bench\": \"toes\", \"mass\": {:g}, \"solver\": \"{}\", \"label\": \"{}\", \"scalar\": \"{}\", "
            "\"diverged_at\": {:.4f}, \"mean\": {:.6e}, \"max\": {:.6e}}}\n",
            scale, method.name, method.label, scalar_name<R>(), t.diverged_at, t.mean, t.worst);
      };
      track(spd_method<double>(solver)), track(spd_method<float>(solver));
    }
  }
}

// -- force limits ---------------------------------------------------------------------------------------------------

/// States and targets of a run under force limits, for repeated solves.
struct Recording {
  std::vector<std::vector<double>> qpos, qvel, target;
  WorldStatus status = WorldStatus::ok;
  double iterations = 0, residual = 0, saturated = 0, top_speed = 0;
  int most_iterations = 0;
};

constexpr double kLimitStep = 1.0 / 60;

Recording record_limited(const Model& model, const LimitRun& run) {
  Recording recording;
  Data data(model);
  Stepper<double> stepper(model, data, {.dt = kLimitStep});
  const Drives drives = test::limited_drives(model, run);
  test::Random random(run.seed);
  std::vector<double> target;
  const int steps = int(std::lround(run.seconds / kLimitStep));
  for (int i = 0; i < steps; ++i) {
    if (i % 2 == 0) test::random_target(random, model, run.reach, target);
    recording.qpos.emplace_back(data.qpos.begin(), data.qpos.end());
    recording.qvel.emplace_back(data.qvel.begin(), data.qvel.end());
    recording.target.push_back(target);
    stepper.step(data, drives, target);
    recording.status = stepper.status(0);
    if (recording.status != WorldStatus::ok) break;
    const LimitReport report = *stepper.limit_report(0);
    recording.iterations += report.iterations,
        recording.most_iterations = std::max(recording.most_iterations, report.iterations);
    recording.residual = std::max(recording.residual, report.residual), recording.saturated += report.saturated;
    for (int k = has_rotation(model.joints[0].type) ? scalar_count(model.joints[0].type) : 0; k < model.nv; ++k) {
      recording.top_speed = std::max(recording.top_speed, std::abs(data.qvel[k]));
    }
  }
  return recording;
}

void bench_limits() {
  for (const char* name : {"humanoid", "dog", "snake36"}) {
    const Model model = built_in(name);
    for (double kp = 1e2; kp < 2e6; kp *= 10) {
      for (double limit = 1; limit < 2e4; limit *= 10) {
        const LimitRun run{
            .kp = kp, .kd = kp / 10, .limit = limit, .root_driven = false, .seconds = g_quick ? 1.0 : 5.0, .seed = 1};
        const Recording r = record_limited(model, run);
        const double steps = double(r.qpos.size());
        const Drives drives = test::limited_drives(model, run);
        Data data(model);
        DriveLimiter<double> limiter(model, data);
        const auto limited = [&] {
          std::fill(limiter.guess().begin(), limiter.guess().end(), 0.0);
          for (std::size_t i = 0; i < r.qpos.size(); ++i) {
            limiter.solve(data, drives, kLimitStep, r.qpos[i], r.qvel[i], r.target[i], {}, data.tau, data.qacc);
          }
        };
        const auto unlimited = [&] {
          for (std::size_t i = 0; i < r.qpos.size(); ++i) {
            drive_terms<double>(model, data, drives, kLimitStep, r.qpos[i], r.qvel[i], r.target[i], {}, data.tau,
                                data.joint_force, data.joint_inertia);
            maba<double>(model, data, r.qpos[i], r.qvel[i], data.joint_force, data.joint_inertia, data.qacc);
          }
        };
        const std::vector<Timing> t = time_in_turn({limited, unlimited}, {.rounds = 1, .repeats = g_quick ? 2 : 5});
        fmt::print(
            "{{\"bench\": \"limits\", \"model\": \"{}\", \"kp\": {:g}, \"limit\": {:g}, \"status\": \"{}\", \"steps\": "
            "{}, "
            "\"iterations\": {:.3f}, \"most_iterations\": {}, \"residual\": {:.2g}, \"saturated\": {:.2f}, "
            "\"top_speed\": "
            "{:.4g}, "
            "\"ns_limited\": {:.1f}, \"ns_unlimited\": {:.1f}, \"ratio\": {:.3f}}}\n",
            name, kp, limit, tarsus::name(r.status), r.qpos.size(), r.iterations / steps, r.most_iterations, r.residual,
            r.saturated / steps, r.top_speed, t[0].best / steps, t[1].best / steps, t[0].best / t[1].best);
        std::fflush(stdout);
      }
    }
  }
}

// -- fidelity -------------------------------------------------------------------------------------------------------

/// Ways to limit a drive's force.
enum class Law { implicit_clamp, clamp_afterwards, explicit_clamp };
constexpr const char* kLawNames[] = {"implicit_clamp", "clamp_afterwards", "explicit_clamp"};

/// Clips each joint's force to its limit: the torque of a ball joint by its length; free joints are not limited.
void clamp_forces(const Model& model, double limit, std::vector<double>& force) {
  for (const Joint& joint : model.joints) {
    if (moves_freely(joint.type)) continue;
    double square = 0;
    for (int k = 0; k < joint.nv(); ++k) square += force[joint.qvel + k] * force[joint.qvel + k];
    const double scale = square > limit * limit ? limit / std::sqrt(square) : 1;
    for (int k = 0; k < joint.nv(); ++k) force[joint.qvel + k] *= scale;
  }
}

struct Path {
  std::vector<std::vector<double>> qpos;  ///< at multiples of 1/60 s
  double kinetic = 0;                     ///< mean over `qpos` [J]
  double lost_at = -1;                    ///< time at which the run was abandoned [s]; -1: none
};

/// Tracks a clip for `duration` seconds with force limits on all joints except the root, whose drive is unlimited.
Path track_limited(const Model& model, const ClipBinding& clip, Law law, double kp, double kd, double limit,
                   int substeps, double duration) {
  const double h = kLimitStep / substeps;
  Data data(model), work(model);
  Drives drives = Drives::uniform(model, kp, kd, 20000, 2000);
  drives.plain = law == Law::explicit_clamp;
  Drives limited = drives;
  limited.force_limit.assign(model.nv, limit);
  for (const Joint& joint : model.joints) {
    for (int k = 0; moves_freely(joint.type) && k < 6; ++k) limited.force_limit[joint.qvel + k] = kInfinity;
  }
  DriveLimiter<double> limiter(model, data);
  std::vector<double> target(model.nq), velocity(model.nv), force(model.nv);
  clip.sample(0, target, velocity);
  data.qpos.assign(target.begin(), target.end()), data.qvel.assign(velocity.begin(), velocity.end());
  Path path;
  const int frames = int(std::lround(duration / kLimitStep));
  for (int i = 1; i <= frames * substeps; ++i) {
    clip.sample(i * h, target, velocity);
    if (law == Law::implicit_clamp) {
      limiter.solve(data, limited, h, data.qpos, data.qvel, target, velocity, data.tau, data.qacc);
    } else {
      const double dt = law == Law::explicit_clamp ? 0 : h;
      drive_terms<double>(model, data, drives, dt, data.qpos, data.qvel, target, velocity, data.tau, data.joint_force,
                          data.joint_inertia);
      maba<double>(model, data, data.qpos, data.qvel, data.joint_force, data.joint_inertia, data.qacc);
      drive_force<double>(model, data, drives, dt, data.qpos, data.qvel, target, velocity, data.qacc, force);
      clamp_forces(model, limit, force);
      aba<double>(model, data, data.qpos, data.qvel, force, data.qacc);
    }
    for (int k = 0; k < model.nv; ++k) data.qvel[k] += h * data.qacc[k];
    integrate<double>(model, data, data.qpos, data.qvel, h, data.qpos);
    const auto fast = [](double v) { return !(std::abs(v) < 1e5); };
    if (std::any_of(data.qvel.begin(), data.qvel.end(), fast)) {
      path.lost_at = i * h, path.kinetic = kInfinity;
      return path;
    }
    if (i % substeps) continue;
    path.qpos.emplace_back(data.qpos.begin(), data.qpos.end());
    kinematics<double>(model, work, data.qpos, data.qvel);
    path.kinetic += energy<double>(model, work, data.qpos, data.qvel).kinetic / frames;
  }
  return path;
}

/// Root mean square over joints (a ball counts as one) and frames of the rotation between two paths [rad].
double path_distance(const Model& model, const Path& a, const Path& b) {
  double sum = 0, count = 0;
  std::vector<double> turn(model.nv);
  for (std::size_t i = 0; i < std::min(a.qpos.size(), b.qpos.size()); ++i) {
    difference(model, a.qpos[i], b.qpos[i], turn);
    for (const Joint& joint : model.joints) {
      if (moves_freely(joint.type)) continue;
      for (int k = 0; k < joint.nv(); ++k) sum += turn[joint.qvel + k] * turn[joint.qvel + k];
      ++count;
    }
  }
  return std::sqrt(sum / count);
}

void bench_fidelity() {
  constexpr double kReference = 80;  // number of steps in 1/60 s
  const double duration = g_quick ? 1 : 3;
  const struct {
    const char *model, *motion;
  } cases[] = {{"humanoid", "run"}, {"dog", "canter"}, {"snake36", "slither"}};
  for (const auto& c : cases) {
    const Model model = built_in(c.model);
    const ClipBinding clip = built_in_clip(model, std::string(c.model) + "_" + c.motion);
    for (const double kp : {300.0, 3000.0}) {
      for (const double limit : {10.0, 50.0, 200.0, 1e9}) {
        const double kd = kp / 10;
        const Path reference =
            track_limited(model, clip, Law::implicit_clamp, kp, kd, limit, int(kReference), duration);
        for (const Law law : {Law::implicit_clamp, Law::clamp_afterwards, Law::explicit_clamp}) {
          for (const int substeps : {1, 2, 4, 8, 16}) {
            const Path path = track_limited(model, clip, law, kp, kd, limit, substeps, duration);
            fmt::print(
                "{{\"bench\": \"fidelity\", \"model\": \"{}\", \"motion\": \"{}\", \"kp\": {:g}, \"kd\": {:g}, "
                "\"limit\": "
                "{:g}, \"law\": \"{}\", \"rate\": {}, \"lost_at\": {:.4f}, \"rms_rad\": {}, \"kinetic\": {}}}\n",
                c.model, c.motion, kp, kd, limit, kLawNames[int(law)], 60 * substeps, path.lost_at,
                number(path_distance(model, path, reference)), number(path.kinetic / reference.kinetic));
          }
        }
        std::fflush(stdout);
      }
    }
  }
}

const std::set<std::string> kParts{"frames", "growth", "tracking", "toes", "steps", "limits", "fidelity"};

int run(const std::vector<std::string>& arguments) {
  std::set<std::string> parts;
  for (const std::string& argument : arguments) {
    if (argument == "--quick")
      g_quick = true;
    else
      parts.insert(argument);
  }
  if (parts.empty()) parts = {"frames", "growth", "limits", "fidelity", "steps"};
  for (const std::string& part : parts) {
    if (kParts.contains(part)) continue;
    fmt::print(stderr, "usage: control_bench [{} ...] [--quick]\n", fmt::join(kParts, " | "));
    return 2;
  }
  pin_to_one_core();
  if (parts.contains("frames")) {
    for (const Motion& motion : kMotions) bench_frames<double>(motion), bench_frames<float>(motion);
  }
  if (parts.contains("growth")) bench_growth(true), bench_growth(false);
  if (parts.contains("tracking")) bench_tracking();
  if (parts.contains("toes")) bench_light_toes();
  if (parts.contains("steps")) bench_steps();
  if (parts.contains("limits")) bench_limits();
  if (parts.contains("fidelity")) bench_fidelity();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& e) {
    fmt::print(stderr, "control_bench: {}\n", e.what());
    return 1;
  }
}
