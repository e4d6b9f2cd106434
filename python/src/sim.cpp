// Stepping: tarsus/sim/step.hpp.
#include "tarsus/sim/step.hpp"

#include <nanobind/stl/string.h>

#include "bindings.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

StepOptions step_options(double dt, const std::string& integrator, double speed_limit,
                         const std::string& loops = "spook") {
  StepOptions options;
  options.dt = dt, options.speed_limit = speed_limit;
  if (integrator == "rk4")
    options.integrator = Integrator::rk4;
  else if (integrator != "semi_implicit_euler")
    throw ValueError("integrator", "\"" + integrator + "\"", "\"semi_implicit_euler\" or \"rk4\"");
  if (loops == "off")
    options.loops = LoopMode::off;
  else if (loops == "shake")
    options.loops = LoopMode::shake;
  else if (loops != "spook")
    throw ValueError("loops", "\"" + loops + "\"", "\"off\", \"spook\" or \"shake\"");
  return options;
}

template <class R>
int step(Stepper<R>& stepper, const Call<R>& call, const Drives* drives, handle qpos_target, handle qvel_target) {
  if (!drives) {
    if (!qpos_target.is_none() || !qvel_target.is_none())
      throw ValueError("drives", "None", "drives, since a target is given");
    int bad = 0;
    call.run([&] { bad = stepper.step(call.data); });
    return bad;
  }
  drives->check(call.model);
  if (qpos_target.is_none()) throw ValueError("qpos_target", "None", "a pose for the drives");
  const Input<R> q = call.in("qpos_target", qpos_target, {call.model.nq}),
                 v = call.optional("qvel_target", qvel_target, {call.model.nv});
  int bad = 0;
  call.run([&] { bad = stepper.step(call.data, *drives, q, v); });
  return bad;
}

template <class R>
nb::list statuses(const Stepper<R>& stepper, int worlds) {
  nb::list list;
  for (int world = 0; world < worlds; ++world) list.append(name(stepper.status(world)));
  return list;
}

/// Python's Stepper: one of either scalar type, and the data that it was made for.
class AnyStepper {
  template <class F>
  auto visit(F f) {
    return any_->visit(
        [&]<class R>(BasicData<R>& d) { return f(*std::get<std::unique_ptr<Stepper<R>>>(stepper_), d); });
  }

 public:
  AnyStepper(nb::object data, double dt, const std::string& integrator, double speed_limit, const std::string& loops)
      : owner_(std::move(data)), any_(&nb::cast<AnyData&>(owner_)) {
    const StepOptions options = step_options(dt, integrator, speed_limit, loops);
    any_->visit([&]<class R>(BasicData<R>& d) { stepper_ = std::make_unique<Stepper<R>>(any_->model(), d, options); });
  }

  int step(const Drives* drives, handle qpos_target, handle qvel_target) {
    return visit([&]<class R>(Stepper<R>& s, BasicData<R>& d) {
      return python::step<R>(s, Call<R>(any_->model(), *any_, d), drives, qpos_target, qvel_target);
    });
  }
  nb::list status() {
    return visit([&]<class R>(Stepper<R>& s, BasicData<R>& d) { return statuses(s, d.worlds()); });
  }
  nb::object limit_report(int world) {
    return visit([&]<class R>(Stepper<R>& s, BasicData<R>& d) -> nb::object {
      if (world < 0 || world >= d.worlds())
        throw ValueError("world", std::to_string(world), "an index below " + std::to_string(d.worlds()));
      if (!s.limiter()) return nb::none();
      const LimitReport report = s.limiter()->report(world);
      nb::dict out;
      out["rounds"] = report.rounds, out["residual"] = report.residual;
      out["converged"] = report.converged, out["saturated"] = report.saturated;
      return out;
    });
  }
  void revive(int world) {
    visit([&]<class R>(Stepper<R>& s, BasicData<R>& d) {
      if (world < 0 || world >= d.worlds())
        throw ValueError("world", std::to_string(world), "an index below " + std::to_string(d.worlds()));
      s.revive(world);
    });
  }
  nb::object data() const { return owner_; }
  double dt() {
    return visit([&]<class R>(Stepper<R>& s, BasicData<R>&) { return s.options().dt; });
  }

 private:
  nb::object owner_;
  AnyData* any_;
  std::variant<std::unique_ptr<Stepper<double>>, std::unique_ptr<Stepper<float>>> stepper_;
};

nb::object py_step(const Model& model, AnyData& any, const Drives* drives, handle qpos_target, handle qvel_target,
                   handle dt, const std::string& integrator) {
  const StepOptions options =
      step_options(dt.is_none() ? model.timestep : nb::cast<double>(dt), integrator, StepOptions().speed_limit);
  return any.visit([&]<class R>(BasicData<R>& data) -> nb::object {
    const Call<R> call(model, any, data);
    Stepper<R> stepper(model, data, options);
    step<R>(stepper, call, drives, qpos_target, qvel_target);
    return statuses(stepper, data.worlds());
  });
}

nb::object py_state_hash(AnyData& any) {
  return any.visit([](auto& data) -> nb::object { return nb::int_(state_hash(data)); });
}

}  // namespace

void bind_sim(nb::module_& m) {
  nb::class_<AnyStepper> c(m, "Stepper",
                           "Advances the worlds of a Data, again and again, and remembers which of them went bad.\n\n"
                           "A world that goes bad freezes at its last good state; its neighbours go on.");
  c.def(nb::init<nb::object, double, const std::string&, double, const std::string&>(), "data"_a,
        "dt"_a = StepOptions().dt, "integrator"_a = "semi_implicit_euler", "speed_limit"_a = StepOptions().speed_limit,
        "loops"_a = "spook",
        nb::sig("def __init__(self, data: Data, dt: float = 1/60, integrator: str = 'semi_implicit_euler', "
                "speed_limit: float = 1e6, loops: str = 'spook') -> None"),
        "dt [s]; integrator 'semi_implicit_euler' (drives, springs and damping implicit) or 'rk4' (all explicit);\n"
        "speed_limit [rad/s | m/s] beyond which a world counts as diverged;\n"
        "loops: the model's equality constraints, 'spook' (softened, stabilised), 'shake' (no drift) or 'off'.");
  c.def(
      "step", &AnyStepper::step, "drives"_a = nb::none(), "qpos_target"_a = nb::none(), "qvel_target"_a = nb::none(),
      nb::sig("def step(self, drives: Drives | None = None, qpos_target: numpy.ndarray | None = None, qvel_target: "
              "numpy.ndarray | "
              "None = None) -> int"),
      "One step of all worlds that are ok, under data.tau and the drives; targets [nq], [nv] at the end of the step.\n"
      "Returns the number of worlds that are not ok.");
  c.def_prop_ro("status", &AnyStepper::status, nb::sig("def status(self) -> list[str]"),
                "[worlds] 'ok', 'bad_input' (not finite), 'singular', 'too_fast' or 'open_loop'.");
  c.def("limit_report", &AnyStepper::limit_report, "world"_a = 0,
        nb::sig("def limit_report(self, world: int = 0) -> dict[str, float] | None"),
        "How the last step kept force limits: rounds, residual (relative to the limit), converged, saturated. None: no limits yet.");
  c.def("revive", &AnyStepper::revive, "world"_a, "Lets a frozen world go again, after its state was set anew.");
  c.def_prop_ro("data", &AnyStepper::data, nb::sig("def data(self) -> Data"), "The data that it advances.");
  c.def_prop_ro("dt", &AnyStepper::dt, "[s].");
  m.def("step", &py_step, "model"_a, "data"_a, "drives"_a = nb::none(), "qpos_target"_a = nb::none(),
        "qvel_target"_a = nb::none(), "dt"_a = nb::none(), "integrator"_a = "semi_implicit_euler",
        nb::sig("def step(model: Model, data: Data, drives: Drives | None = None, qpos_target: numpy.ndarray | None = "
                "None, qvel_target: "
                "numpy.ndarray | None = None, dt: float | None = None, integrator: str = 'semi_implicit_euler') -> "
                "list[str]"),
        "One step of all worlds; dt None is the model's own. Returns each world's status: 'ok', or why it stayed where "
        "it was.\n\n"
        "For loops make a Stepper, which keeps its scratch and remembers which worlds went bad.");
  m.def("state_hash", &py_state_hash, "data"_a, nb::sig("def state_hash(data: Data) -> int"),
        "64-bit hash of the bits of a state: equal hashes, equal runs.");
}

}  // namespace tarsus::python
