// Learning tasks and vectors of their worlds: tarsus/learn.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/baselines/spd_solver.hpp"
#include "tarsus/learn/cart_pole_task.hpp"
#include "tarsus/learn/locomotion_task.hpp"
#include "tarsus/learn/motion_task.hpp"
#include "tarsus/learn/vector_task.hpp"
#include "tarsus/learn/velocity_task.hpp"
#include "world_parameters.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

Autoreset autoreset_mode(const std::string& name) {
  if (name == "next_step") return Autoreset::next_step;
  if (name == "same_step") return Autoreset::same_step;
  if (name == "disabled") return Autoreset::disabled;
  throw ValueError("autoreset", name, "next_step, same_step or disabled");
}

ImitationReward imitation_reward(const std::string& name) {
  if (name == "deepmimic") return ImitationReward::deepmimic;
  if (name == "mimickit") return ImitationReward::mimickit;
  throw ValueError("reward", name, "deepmimic or mimickit");
}

/// Factory of the named drive law, one for each thread; null for MABA, which the simulation uses by default.
template <class R>
std::function<DriveLaw<R>()> drive_law(const Task& task, const std::string& name) {
  if (name == "maba") return {};
  if (name != "dense") throw ValueError("drives", name, "maba or dense");
  if (!task.drives()) throw ValueError("drives", name, "maba, because the task has no drives");
  return [&task] {
    return spd_law<R>(task.model(), *task.drives(), task.control_dt() / task.substeps(), SpdSolver::dense_direct);
  };
}

/// Python's VectorTask: a VectorTask of either scalar type, and its task.
class AnyVectorTask {
 public:
  AnyVectorTask(nb::object task, int worlds, int threads, std::uint64_t seed, const std::string& autoreset,
                handle dtype, const std::string& drives)
      : owner_(std::move(task)) {
    const Task& t = expect<const Task>(owner_, "task");
    const VectorTaskOptions options{
        .worlds = worlds, .threads = threads, .seed = seed, .autoreset = autoreset_mode(autoreset)};
    const bool single = wants_float(dtype);
    fitting_into_memory(worlds, [&] {
      if (single)
        vector_ = std::make_unique<VectorTask<float>>(t, options, drive_law<float>(t, drives));
      else
        vector_ = std::make_unique<VectorTask<double>>(t, options, drive_law<double>(t, drives));
    });
  }

  template <class F>
  auto visit(F f) {
    return std::visit([&](auto& vector) { return f(*vector); }, vector_);
  }
  /// f(vector). @throws ValueError while another thread uses it
  template <class F>
  auto alone(F f) {
    const Taken taken(busy_, "vector task");
    return visit(f);
  }
  nb::object task() const { return owner_; }

  void reset(handle mask, handle seeds) {
    alone([&]<class R>(VectorTask<R>& v) {
      const Shape shape{std::size_t(v.worlds())};
      std::span<const std::uint8_t> chosen;
      if (!mask.is_none())
        chosen = {static_cast<const std::uint8_t*>(checked_array("mask", mask, '?', shape, false)), shape[0]};
      if (seeds.is_none()) {
        nb::gil_scoped_release release;
        v.reset(chosen);
      } else {
        const std::span<const std::uint64_t> numbers{
            static_cast<const std::uint64_t*>(checked_array("seeds", seeds, 'L', shape, false)), shape[0]};
        nb::gil_scoped_release release;
        v.reset(numbers, chosen);
      }
    });
  }
  void step(handle action) {
    alone([&]<class R>(VectorTask<R>& v) {
      const Input<R> in("action", action, {std::size_t(v.worlds()), std::size_t(v.task().action_size())}, sizeof(R));
      nb::gil_scoped_release release;
      v.step(in);
    });
  }

 private:
  nb::object owner_;
  bool busy_ = false;
  std::variant<std::unique_ptr<VectorTask<double>>, std::unique_ptr<VectorTask<float>>> vector_;
};

AnyVectorTask& any(handle self) { return nb::cast<AnyVectorTask&>(self); }

/// A view of the worlds' memory as an array [worlds][n], or [worlds] for negative n.
template <class E>
nb::object rows(std::span<E> values, handle self, int worlds, int n) {
  Shape shape{std::size_t(worlds)};
  if (n >= 0) shape.push_back(std::size_t(n));
  return view_array(values.data(), shape, self);
}

nb::object truth(std::span<const char> values, handle self) {
  static_assert(sizeof(bool) == 1);
  return view_array(reinterpret_cast<const bool*>(values.data()), {values.size()}, self);
}

std::vector<MotionTaskOptions::Point> points_of(const Model& model, const nb::list& list) {
  std::vector<MotionTaskOptions::Point> out;
  for (handle item : list) {
    std::tuple<nb::object, double, double, double> one;
    if (!nb::try_cast(item, one))
      throw nb::type_error(
          ("end_effectors: has " + nb::cast<std::string>(nb::repr(item)) + ", expected (body, x, y, z)").c_str());
    const auto& [body, x, y, z] = one;
    out.push_back({body_index(model, body, "end_effectors"), {x, y, z}});
  }
  return out;
}

/// A state outside any VectorTask, with a copy of the task's memory for it.
class Moment {
 public:
  Moment(const Task& t, handle qpos, handle qvel, handle memory)
      : qpos_(numbers("qpos", qpos, {std::size_t(t.model().nq)})),
        qvel_(numbers("qvel", qvel, {std::size_t(t.model().nv)})),
        memory_(numbers("memory", memory, {std::size_t(t.memory_size())})) {}
  Task::World world() { return {qpos_, qvel_, memory_}; }

 private:
  std::vector<double> qpos_, qvel_, memory_;
};

std::array<double, 3> triple(const Vec3d& v) { return {v.x, v.y, v.z}; }

void bind_tasks(nb::module_& m) {
  nb::class_<Task> task(m, "Task", "A learning task. Immutable, so threads share it.");
  copies_are_itself(task);
  task.def("__repr__", [](nb::handle self) {
    const Task& t = nb::cast<const Task&>(self);
    return "<tarsus." + nb::cast<std::string>(self.type().attr("__name__")) + " of '" + t.model().name +
           "' observation_size=" + std::to_string(t.observation_size()) +
           " action_size=" + std::to_string(t.action_size()) + " control_dt=" + number_text(t.control_dt()) + ">";
  });
  task.def_prop_ro(
      "model", [](const Task& t) -> const Model& { return t.model(); }, nb::rv_policy::reference_internal,
      nb::sig("def model(self) -> Model"), "The model whose worlds are stepped.");
  task.def_prop_ro("observation_size", &Task::observation_size);
  task.def_prop_ro("action_size", &Task::action_size);
  task.def_prop_ro("terms", &Task::terms, "Names of the terms of the reward.");
  task.def_prop_ro("control_dt", &Task::control_dt, "Duration of one action [s].");
  task.def_prop_ro("substeps", &Task::substeps, "Number of simulation steps per action.");
  task.def_prop_ro(
      "action_bounds",
      [](const Task& t) {
        const std::size_t n = std::size_t(t.action_size());
        std::vector<double> low(n), high(n);
        t.action_bounds(low, high);
        return nb::make_tuple(new_array(low, {n}), new_array(high, {n}));
      },
      nb::sig("def action_bounds(self) -> tuple[numpy.ndarray, numpy.ndarray]"), "(low, high) bounds of actions.");
  // One state outside any VectorTask, for policies in a viewer or on a robot.
  task.def(
      "observe",
      [](const Task& t, handle qpos, handle qvel, handle memory) {
        Moment m(t, qpos, qvel, memory);
        std::vector<double> out(t.observation_size());
        t.observe(m.world(), out, *t.scratch());
        return new_array(out, {out.size()});
      },
      "qpos"_a, "qvel"_a, "memory"_a,
      nb::sig("def observe(self, qpos: numpy.ndarray, qvel: numpy.ndarray, memory: numpy.ndarray) -> numpy.ndarray"),
      "Observation of a state in a world with this memory.");
  task.def(
      "targets",
      [](const Task& t, handle qpos, handle qvel, handle memory, handle action) {
        Moment m(t, qpos, qvel, memory);
        const std::vector<double> a = numbers("action", action, {std::size_t(t.action_size())});
        std::vector<double> out(t.drives() ? t.model().nq : t.model().nu);
        t.act(m.world(), a, out, *t.scratch());
        return new_array(out, {out.size()});
      },
      "qpos"_a, "qvel"_a, "memory"_a, "action"_a,
      nb::sig(
          "def targets(self, qpos: numpy.ndarray, qvel: numpy.ndarray, memory: numpy.ndarray, action: numpy.ndarray) "
          "-> numpy.ndarray"),
      "Controls that an action sets: target positions of the drives [nq], or ctrl [nu].");

  nb::class_<MotionTask, Task> motion(m, "MotionTask",
                                      "Motion tracking as DeepMimic defines it; see tarsus/learn/motion_task.hpp.");
  const MotionTaskOptions d;
  motion.def(
      "__init__",
      [](MotionTask* self, const Model& model, const ClipBinding& clip, const Drives& drives,
         std::vector<double> joint_weight, nb::list end_effectors, const Bodies& feet, const std::string& reward,
         std::vector<double> weights, double control_dt, int substeps, double time_limit, double tilt_limit,
         double distance_limit, double start, bool phase, bool follow_root, bool relative_action) {
        MotionTaskOptions o;
        o.joint_weight = std::move(joint_weight), o.end_effectors = points_of(model, end_effectors),
        o.feet = feet.of("feet", model);
        o.reward = imitation_reward(reward), o.weights = std::move(weights);
        o.control_dt = control_dt, o.substeps = substeps, o.time_limit = time_limit, o.tilt_limit = tilt_limit;
        o.distance_limit = distance_limit;
        o.start = start;
        o.phase = phase, o.follow_root = follow_root, o.relative_action = relative_action;
        new (self) MotionTask(model, clip, drives, std::move(o));
      },
      nb::keep_alive<1, 2>(), "model"_a, "clip"_a, "drives"_a, nb::kw_only(), "joint_weight"_a = std::vector<double>(),
      "end_effectors"_a = nb::list(), "feet"_a = nb::list(), "reward"_a = "deepmimic",
      "weights"_a = std::vector<double>(), "control_dt"_a = d.control_dt, "substeps"_a = d.substeps,
      "time_limit"_a = d.time_limit, "tilt_limit"_a = d.tilt_limit, "distance_limit"_a = d.distance_limit,
      "start"_a = d.start, "phase"_a = d.phase, "follow_root"_a = d.follow_root,
      "relative_action"_a = d.relative_action,
      "drives: gains and force limits, none on the root. joint_weight [njoint], the root's first. "
      "end_effectors: (body, x, y, z),\n"
      "points in the body's frame [m]. feet: names or indices of bodies that may touch the ground. reward: 'deepmimic' "
      "or "
      "'mimickit'. weights: those of\n"
      "the reward's terms; empty: the published ones. control_dt, time_limit, start (time in the clip; "
      "negative: random) [s];\n"
      "tilt_limit [rad]; distance_limit [m].");
  motion.def_prop_ro(
      "settings",
      [](const MotionTask& t) {
        const MotionTaskOptions& o = t.options();
        const auto array = [](const std::vector<double>& values) { return new_array(values, {values.size()}); };
        std::vector<double> points;
        for (const auto& p : o.end_effectors)
          points.insert(points.end(), {double(p.body), p.position.x, p.position.y, p.position.z});
        nb::dict out;
        out["kp"] = array(t.drives()->kp), out["kd"] = array(t.drives()->kd);
        out["force_limit"] = array(t.drives()->force_limit), out["joint_weight"] = array(o.joint_weight);
        out["end_effectors"] = new_array(points, {o.end_effectors.size(), 4});
        out["feet"] = array({o.feet.begin(), o.feet.end()});
        out["reward"] = array({double(o.reward)}), out["weights"] = array(t.weights());
        out["control_dt"] = array({o.control_dt}), out["substeps"] = array({double(o.substeps)});
        out["phase"] = array({double(o.phase)}), out["follow_root"] = array({double(o.follow_root)});
        out["relative_action"] = array({double(o.relative_action)});
        return out;
      },
      nb::sig("def settings(self) -> dict[str, numpy.ndarray]"),
      "The task's settings as a policy file stores them: all but the limits of time and tilt.");
  motion.def_prop_ro(
      "time_limit", [](const MotionTask& t) { return t.options().time_limit; }, "[s].");
  motion.def_prop_ro(
      "clip_duration", [](const MotionTask& t) { return t.clip().duration(); }, "[s].");
  motion.def_prop_ro(
      "loops", [](const MotionTask& t) { return t.clip().loop(); },
      "Whether the clip repeats from its start after its end.");
  motion.def_prop_ro(
      "drives", [](const MotionTask& t) { return *t.drives(); }, "A copy of the drives: gains and force limits.");
  motion.def(
      "reference",
      [](const MotionTask& t, handle memory) {
        const std::vector<double> numbers_of = numbers("memory", memory, {std::size_t(t.memory_size())});
        std::vector<double> q(t.model().nq), v(t.model().nv);
        t.reference(numbers_of, q, v);
        return nb::make_tuple(new_array(q, {q.size()}), new_array(v, {v.size()}));
      },
      "memory"_a, nb::sig("def reference(self, memory: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]"),
      "(qpos, qvel) of the clip with which a world with this memory is compared.");

  nb::class_<CartPoleTask, Task> cart(m, "CartPoleTask", "Balancing a pole on a cart, as in Gymnasium's CartPole-v1.");
  cart.def(nb::init<const Model&>(), "model"_a, nb::keep_alive<1, 2>());
  cart.def_prop_ro(
      "time_limit", [](const CartPoleTask&) { return CartPoleTask::kTimeLimit; }, "[s].");

  nb::class_<LocomotionTask, Task> locomotion(
      m, "LocomotionTask",
      "Forward locomotion with motors, as in Gymnasium's tasks; see tarsus/learn/locomotion_task.hpp.");
  const LocomotionTaskOptions l;
  locomotion.def(
      "__init__",
      [](LocomotionTask* self, const Model& model, int hidden, bool observe_bodies, bool speed_of_centre,
         double forward_weight, double control_weight, double healthy_reward, double low, double high, double noise,
         bool normal_velocity, double control_dt, int substeps, double time_limit) {
        new (self) LocomotionTask(
            model, {hidden, observe_bodies, speed_of_centre, forward_weight, control_weight, healthy_reward, low, high,
                    noise, normal_velocity, control_dt, substeps, time_limit});
      },
      nb::keep_alive<1, 2>(), "model"_a, nb::kw_only(), "hidden"_a = l.hidden, "observe_bodies"_a = l.observe_bodies,
      "speed_of_centre"_a = l.speed_of_centre, "forward_weight"_a = l.forward_weight,
      "control_weight"_a = l.control_weight, "healthy_reward"_a = l.healthy_reward, "low"_a = l.low, "high"_a = l.high,
      "noise"_a = l.noise, "normal_velocity"_a = l.normal_velocity, "control_dt"_a = l.control_dt,
      "substeps"_a = l.substeps, "time_limit"_a = l.time_limit,
      "hidden: number of coordinates left out of the observation. low, high: bounds of the third "
      "coordinate [m], outside which an\n"
      "episode ends. noise: perturbation of initial states. control_dt, time_limit [s].");
  locomotion.def_prop_ro(
      "time_limit", [](const LocomotionTask& t) { return t.options().time_limit; }, "[s].");

  nb::class_<VelocityTask, Task> velocity(
      m, "VelocityTask", "A robot with servos follows a velocity command; see tarsus/learn/velocity_task.hpp.");
  const VelocityTaskOptions w;
  velocity.def(
      "__init__",
      [](VelocityTask* self, const Model& model, const Bodies& feet, const Numbers<3>& command_low,
         const Numbers<3>& command_high, double command_interval, double standing, const std::string& keyframe,
         double action_scale, const Numbers<8>& weights, double noise, double tilt_limit, double control_dt,
         int substeps, double time_limit) {
        VelocityTaskOptions o;
        o.command_low = vec("command_low", command_low), o.command_high = vec("command_high", command_high);
        o.command_interval = command_interval, o.standing = standing, o.keyframe = keyframe,
        o.feet = feet.of("feet", model);
        o.action_scale = action_scale, o.weights = weights.of("weights"), o.noise = noise, o.tilt_limit = tilt_limit;
        o.control_dt = control_dt, o.substeps = substeps, o.time_limit = time_limit;
        new (self) VelocityTask(model, std::move(o));
      },
      nb::keep_alive<1, 2>(), "model"_a, nb::kw_only(), "feet"_a = nb::list(), "command_low"_a = triple(w.command_low),
      "command_high"_a = triple(w.command_high), "command_interval"_a = w.command_interval, "standing"_a = w.standing,
      "keyframe"_a = w.keyframe, "action_scale"_a = w.action_scale, "weights"_a = w.weights, "noise"_a = w.noise,
      "tilt_limit"_a = w.tilt_limit, "control_dt"_a = w.control_dt, "substeps"_a = w.substeps,
      "time_limit"_a = w.time_limit,
      "feet: names or indices of bodies. command_low, command_high: bounds of the command: forward and left [m/s], "
      "turning "
      "[rad/s]. command_interval [s]:\n"
      "time between commands. standing: fraction of commands that are zero. keyframe: the stance. weights: "
      "those of the reward's terms.\n"
      "tilt_limit [rad]. control_dt, time_limit [s].");
  velocity.def_prop_ro(
      "time_limit", [](const VelocityTask& t) { return t.options().time_limit; }, "[s].");
}

}  // namespace

void bind_learn(nb::module_& m) {
  bind_tasks(m);
  nb::class_<AnyVectorTask> c(m, "VectorTask",
                              "Many worlds of one task, stepped together. Arrays are views [worlds, n] of its memory.");
  c.def(nb::init<nb::object, int, int, std::uint64_t, const std::string&, handle, const std::string&>(), "task"_a,
        "worlds"_a = 1, "threads"_a = 1, "seed"_a = 0, "autoreset"_a = "next_step", "dtype"_a = "float64",
        "drives"_a = "maba",
        nb::sig("def __init__(self, task: Task, worlds: int = 1, threads: int = 1, seed: int = 0, autoreset: str = "
                "'next_step', dtype: numpy.typing.DTypeLike = 'float64', drives: str = 'maba') -> None"),
        "autoreset: 'next_step', 'same_step' or 'disabled', as Gymnasium's AutoresetMode. drives: 'maba' "
        "steps with the task's implicit\n"
        "drives; 'dense' applies joint forces by stable PD with a dense factorization, clamped to the "
        "limits, before each simulation step.");
  c.def_prop_ro("task", &AnyVectorTask::task, nb::sig("def task(self) -> Task"), "The task.");
  c.def_prop_ro("worlds", [](AnyVectorTask& a) { return a.visit([](auto& v) { return v.worlds(); }); });
  c.def("reset", &AnyVectorTask::reset, "mask"_a = nb::none(), "seeds"_a = nb::none(),
        nb::sig("def reset(self, mask: numpy.ndarray | None = None, seeds: numpy.ndarray | None = None) -> None"),
        "Restarts the worlds of mask [worlds] (bool; None: all). With seeds [worlds] (uint64), their episode "
        "counts restart at 0 under\n"
        "these seeds.");
  c.def("step", &AnyVectorTask::step, "action"_a, nb::sig("def step(self, action: numpy.ndarray) -> None"),
        "Makes one control step. action [worlds, action_size].");
  bind_parameters(c);
  c.def("__repr__", [](handle self) {
    return any(self).visit([&]<class R>(VectorTask<R>& v) {
      return "<tarsus.VectorTask of '" + v.task().model().name + "' worlds=" + std::to_string(v.worlds()) + " " +
             kScalarName<R> + ">";
    });
  });
  const auto array = [&](const char* name, auto get, const char* doc) {
    c.def_prop_ro(
        name, [get](handle self) { return any(self).visit([&](auto& v) { return get(v, self); }); },
        nb::sig(("def " + std::string(name) + "(self) -> numpy.ndarray").c_str()), doc);
  };
  array(
      "observation",
      [](auto& v, handle s) { return rows(v.observation(), s, v.worlds(), v.task().observation_size()); },
      "[worlds, observation_size].");
  array(
      "final_observation",
      [](auto& v, handle s) { return rows(v.final_observation(), s, v.worlds(), v.task().observation_size()); },
      "[worlds, observation_size] last observations of the episodes that ended (same_step).");
  array(
      "reward", [](auto& v, handle s) { return rows(v.reward(), s, v.worlds(), -1); }, "[worlds].");
  array(
      "terms", [](auto& v, handle s) { return rows(v.terms(), s, v.worlds(), int(v.task().terms().size())); },
      "[worlds, terms] terms of the reward.");
  array(
      "terminated", [](auto& v, handle s) { return truth(v.terminated(), s); }, "[worlds] bool.");
  array(
      "truncated", [](auto& v, handle s) { return truth(v.truncated(), s); }, "[worlds] bool.");
  array(
      "bad", [](auto& v, handle s) { return truth(v.bad(), s); },
      "[worlds] bool: the state failed in this step (not finite, too fast). Such an episode is truncated, "
      "with the last good observation.");
  array(
      "steps", [](auto& v, handle s) { return rows(v.steps(), s, v.worlds(), -1); },
      "[worlds] number of control steps in the present episode.");
  array(
      "memory", [](auto& v, handle s) { return rows(v.memory(), s, v.worlds(), v.task().memory_size()); },
      "[worlds, memory_size] the task's stored numbers of each world.");
  array(
      "qpos", [](auto& v, handle s) { return rows(v.batch().qpos(), s, v.worlds(), v.task().model().nq); },
      "[worlds, nq]; may be written between steps.");
  array(
      "qvel", [](auto& v, handle s) { return rows(v.batch().qvel(), s, v.worlds(), v.task().model().nv); },
      "[worlds, nv]; may be written between steps.");
  array(
      "qpos_target",
      [](auto& v, handle s) { return rows(v.batch().qpos_target(), s, v.worlds(), v.task().model().nq); },
      "[worlds, nq] target positions of the drives in the last step.");
  array(
      "ground_force",
      [](auto& v, handle s) {
        return view_array(v.batch().ground_force().data(), {std::size_t(v.worlds()), v.task().model().joints.size(), 3},
                          s);
      },
      "[worlds, nlink, 3] ground force on each link in the last simulation step, world axes [N].");
  c.def_prop_ro(
      "bad_worlds", [](AnyVectorTask& a) { return a.alone([](auto& v) { return v.bad_worlds(); }); },
      "Number of episodes so far that ended because the state failed (not finite, too fast).");
  c.def_prop_ro(
      "seconds",
      [](AnyVectorTask& a) {
        return a.alone([](auto& v) {
          const auto s = v.seconds();
          nb::dict out;
          out["simulation"] = s.simulation, out["action"] = s.action, out["reward"] = s.reward;
          out["observation"] = s.observation, out["start"] = s.start;
          return out;
        });
      },
      nb::sig("def seconds(self) -> dict[str, float]"),
      "Time spent in step() so far, in the simulation and in the task's parts, summed over threads.");
}

}  // namespace tarsus::python
