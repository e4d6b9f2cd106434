// Stepping: tarsus/sim/step.hpp.
#include "tarsus/sim/step.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "equalities.hpp"
#include "step_arguments.hpp"
#include "tarsus/base/check_index.hpp"
#include "tarsus/base/number_text.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

StepOptions step_options(const Model& model, std::optional<double> dt, const StepperArguments& a) {
  StepOptions options;
  options.dt = dt.value_or(model.timestep), options.speed_limit = a.speed_limit;
  if (a.integrator == "rk4")
    options.integrator = Integrator::rk4;
  else if (a.integrator != "semi_implicit_euler")
    throw ValueError("integrator", "\"" + a.integrator + "\"", "\"semi_implicit_euler\" or \"rk4\"");
  if (a.loops == "off")
    options.loops = LoopMode::off;
  else if (a.loops == "shake")
    options.loops = LoopMode::shake;
  else if (a.loops != "spook")
    throw ValueError("loops", "\"" + a.loops + "\"", "\"off\", \"spook\" or \"shake\"");
  if (a.velocity_products == "off")
    options.velocity_products = VelocityProductMode::off;
  else if (a.velocity_products == "on")
    options.velocity_products = VelocityProductMode::on;
  else if (a.velocity_products != "auto")
    throw ValueError("velocity_products", "\"" + a.velocity_products + "\"", "\"off\", \"auto\" or \"on\"");
  const std::optional<ActuationMode> actuation = actuation_mode(a.actuation);
  if (!actuation) throw ValueError("actuation", "\"" + a.actuation + "\"", "\"implicit\", \"explicit\" or \"off\"");
  options.actuation = *actuation;
  const bool has_rows = options.integrator == Integrator::semi_implicit_euler;
  options.rows.contacts = a.contacts.value_or(has_rows), options.rows.joints = a.joint_limits.value_or(has_rows);
  options.rows.restitution = a.restitution, options.rows.solve.tolerance = a.tolerance;
  options.rows.solve.max_iterations = a.max_iterations;
  return options;
}

namespace {

template <class R>
int step(Stepper<R>& stepper, const Call<R>& call, const Drives* drives, handle qpos_target, handle qvel_target) {
  if (!drives) {
    if (!qpos_target.is_none() || !qvel_target.is_none())
      throw ValueError("drives", "None", "drives, because a target is given");
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

/// Contacts and joint limits of the last step, as Python sees them.
nb::dict rows_report(const RowsReport& r) {
  nb::dict report;
  report["status"] = name(r.status);
  report["rows"] = r.rows, report["contacts"] = r.contacts, report["touching"] = r.touching,
  report["limits"] = r.limits;
  report["piled"] = r.piled, report["sweeps"] = r.sweeps;
  report["iterations"] = r.iterations, report["residual"] = r.residual, report["penetration"] = r.penetration;
  return report;
}

nb::tuple triple(const Vec3d& v) { return nb::make_tuple(v.x, v.y, v.z); }

}  // namespace

nb::dict contact_dict(const Model& model, std::span<const ContactShape> shapes, const LinkContact& contact,
                      double distance) {
  auto [a, b] = ContactGeometry::shapes_of(contact);
  if (shapes[std::size_t(a)].link != contact.a) std::swap(a, b);
  const ContactShape &first = shapes[std::size_t(a)], &second = shapes[std::size_t(b)];
  const auto name = [&](const ContactShape& s) {
    return model.spec.bodies[std::size_t(s.body)].geoms[std::size_t(s.geom)].name;
  };
  nb::dict one;
  one["links"] = nb::make_tuple(contact.a, contact.b);
  one["bodies"] = nb::make_tuple(first.body, second.body), one["geoms"] = nb::make_tuple(name(first), name(second));
  one["position"] = triple(contact.point.position), one["normal"] = triple(contact.point.normal);
  one["distance"] = distance;
  return one;
}

namespace {

template <class R>
nb::list contact_list(const Model& model, const Stepper<R>& stepper) {
  nb::list list;
  if (!stepper.rows()) return list;
  const std::span<const LinkContact> contacts = stepper.rows()->contacts();
  for (std::size_t i = 0; i < contacts.size(); ++i) {
    const LinkContact& c = contacts[i];
    const ContactGeometry& geometry = stepper.rows()->geometry();
    nb::dict one = contact_dict(model, geometry.shapes(), c, geometry.separation(c));
    one["force"] = triple(stepper.rows()->terms().force(int(i)));
    one["torque"] = triple(stepper.rows()->terms().torque(int(i)));
    one["friction"] = c.dimension < 3 ? 0.0 : c.friction;
    one["dimension"] = c.dimension;
    list.append(one);
  }
  return list;
}

template <class R>
nb::list statuses(const Stepper<R>& stepper, int worlds) {
  nb::list list;
  for (int world = 0; world < worlds; ++world) list.append(name(stepper.status(world)));
  return list;
}

/// Stores the forces of a step for the worlds' sensors, if these need them or some worlds are not ok.
template <class R>
void feel(AnyData& any, const Stepper<R>& stepper, const BasicData<R>& data, int bad) {
  if (!any.feels_contact() && (bad == 0 || any.model().spec.sensors.empty())) return any.forces.clear();
  any.forces.resize(std::size_t(data.worlds()));
  for (int world = 0; world < data.worlds(); ++world)
    any.forces[std::size_t(world)] = step_forces(any.model(), stepper, data, world);
}

/// The state before a step with user-defined functions. It is restored if a function raises an exception.
template <class R>
struct Before {
  double time;
  AlignedVector<R> qpos, qvel, qacc, act;
  std::vector<WorldStatus> status;

  Before(const Stepper<R>& s, const BasicData<R>& d)
      : time(d.time), qpos(d.qpos), qvel(d.qvel), qacc(d.qacc), act(d.act) {
    for (int world = 0; world < d.worlds(); ++world) status.push_back(s.status(world));
  }
  void put_back(Stepper<R>& s, BasicData<R>& d) const {
    d.time = time;  // copied, because NumPy views refer to these arrays
    std::copy(qpos.begin(), qpos.end(), d.qpos.begin()), std::copy(qvel.begin(), qvel.end(), d.qvel.begin());
    std::copy(qacc.begin(), qacc.end(), d.qacc.begin()), std::copy(act.begin(), act.end(), d.act.begin());
    for (int world = 0; world < d.worlds(); ++world) {
      if (status[std::size_t(world)] == WorldStatus::ok) s.restart(d, world);
    }
  }
};

/// Python's Stepper: a Stepper of either scalar type, and its data.
class AnyStepper {
  template <class F>
  auto visit(F f) {
    return any_->visit(
        [&]<class R>(BasicData<R>& d) { return f(*std::get<std::unique_ptr<Stepper<R>>>(stepper_), d); });
  }
  /// The same. @throws ValueError while another thread uses the stepper
  template <class F>
  auto alone(F f) {
    const Taken taken(busy_, "stepper");
    return visit(f);
  }

 public:
  AnyStepper(nb::object data, StepOptions options, handle equalities)
      : owner_(std::move(data)), any_(&expect<AnyData>(owner_, "data")), equalities_(nb::borrow(equalities)) {
    if (!equalities_.is_none()) {
      PyEqualities& e = equalities_for(any_->model(), equalities_);
      e.in_use = true, options.equalities = &e.set, python_rows_ = e.rows;
    }
    any_->visit([&]<class R>(BasicData<R>& d) {
      auto& stepper = stepper_.emplace<std::unique_ptr<Stepper<R>>>(new Stepper<R>(any_->model(), d, options));
      if (any_->feels_contact()) stepper->feel();
    });
  }

  int step(const Drives* drives, handle qpos_target, handle qvel_target) {
    const int bad = alone([&]<class R>(Stepper<R>& s, BasicData<R>& d) {
      std::optional<Before<R>> before;
      if (python_rows_ && !python_rows_->functions.empty()) before.emplace(s, d);
      const int worlds = python::step<R>(s, Call<R>(any_->model(), *any_, d), drives, qpos_target, qvel_target);
      if (python_rows_ && python_rows_->error) before->put_back(s, d);
      feel(*any_, s, d, worlds);
      return worlds;
    });
    if (python_rows_) python_rows_->rethrow();
    return bad;
  }
  nb::list status() {
    return alone([&]<class R>(Stepper<R>& s, BasicData<R>& d) { return statuses(s, d.worlds()); });
  }
  nb::dict stage_seconds() {
    nb::dict out;
    const auto seconds = alone([&]<class R>(Stepper<R>& s, BasicData<R>&) { return s.stage_seconds(); });
    for (int k = 0; k < kStages; ++k) out[name(Stage(k))] = seconds[std::size_t(k)];
    return out;
  }
  nb::object limit_report(int world) {
    return alone([&]<class R>(Stepper<R>& s, BasicData<R>& d) -> nb::object {
      check_world(d, world);
      const std::optional<LimitReport> found = s.limit_report(world);
      if (!found) return nb::none();
      const LimitReport& report = *found;
      nb::dict out;
      out["iterations"] = report.iterations, out["residual"] = report.residual;
      out["converged"] = report.converged, out["saturated"] = report.saturated;
      return out;
    });
  }
  double limit_force(int index) {
    return alone([&]<class R>(Stepper<R>& s, BasicData<R>&) {
      const int count = int(s.options().rows.user_limits.size());
      check_index("index", index, count);
      return s.rows() ? s.rows()->terms().user_limit_force(index) : 0.0;
    });
  }
  nb::object rows() {
    return alone([&]<class R>(Stepper<R>& s, BasicData<R>& d) -> nb::object {
      if (!s.options().rows.any()) return nb::none();
      if (d.width() == 1) return rows_report(*s.rows_report(0));
      nb::list all;
      for (int world = 0; world < d.worlds(); ++world) all.append(rows_report(*s.rows_report(world)));
      return all;
    });
  }
  nb::object loops(int world) {
    return alone([&]<class R>(Stepper<R>& s, BasicData<R>& d) -> nb::object {
      check_world(d, world);
      const Stepper<R>& taker = s.taker(world);
      if (!taker.loops()) return nb::none();
      const ConstrainedDynamics<R>& loops = *taker.loops();
      const int place = &taker == &s ? world : 0, m = loops.rows(), w = &taker == &s ? d.width() : 1;
      const auto error = loops.error(place);
      nb::dict out;
      out["status"] = name(loops.status(place)), out["rows"] = m;
      out["error"] = error.position, out["rate"] = error.velocity;
      out["worst_row"] = error.row < 0 ? std::string() : loops.equalities().row_name(error.row);
      nb::dict force;
      for (int r = 0; r < m; ++r) {
        const std::size_t at = (std::size_t(place / w) * m + r) * w + place % w;
        force[loops.equalities().row_name(r).c_str()] = double(loops.multiplier()[at]);
      }
      out["multipliers"] = force;
      return out;
    });
  }
  nb::list contacts() {
    return alone([&]<class R>(Stepper<R>& s, BasicData<R>& d) {
      if (d.width() > 1)
        throw ValueError("data", std::to_string(d.worlds()) + " worlds", "one world; use Batch for many");
      return contact_list(any_->model(), s);
    });
  }
  void restart(int world) {
    alone([&]<class R>(Stepper<R>& s, BasicData<R>& d) {
      check_world(d, world);
      s.restart(d, world);
    });
  }
  nb::object data() const { return owner_; }
  int traverse(visitproc visit, void* arg) const {
    Py_VISIT(owner_.ptr());
    Py_VISIT(equalities_.ptr());
    return 0;
  }
  std::string repr() {
    return visit([&]<class R>(Stepper<R>& s, BasicData<R>& d) {
      const StepOptions& o = s.options();
      std::string out = "<tarsus.Stepper of '" + any_->model().name + "' dt=" + number_text(o.dt) + " ";
      out += o.integrator == Integrator::rk4 ? "rk4" : "semi_implicit_euler";
      if (o.rows.contacts) out += " contacts";
      if (o.rows.joints) out += " joint_limits";
      if (s.taker(0).loops()) out += std::string(" loops=") + name(o.loops);
      int bad = 0;
      for (int world = 0; world < d.worlds(); ++world) bad += s.status(world) != WorldStatus::ok;
      return out + (bad ? ", " + std::to_string(bad) + " of " + std::to_string(d.worlds()) + " worlds not ok>" : ">");
    });
  }
  double dt() {
    return visit([&]<class R>(Stepper<R>& s, BasicData<R>&) { return s.options().dt; });
  }

 private:
  nb::object owner_;
  AnyData* any_;
  nb::object equalities_;
  std::shared_ptr<PythonRows> python_rows_;
  bool busy_ = false;
  std::variant<std::unique_ptr<Stepper<double>>, std::unique_ptr<Stepper<float>>> stepper_;
};

nb::object py_step(const Model& model, AnyData& any, const Drives* drives, handle qpos_target, handle qvel_target,
                   std::optional<double> dt, const std::string& integrator, std::optional<bool> contacts,
                   std::optional<bool> joint_limits) {
  const StepOptions usual;
  const StepOptions options =
      step_options(model, dt,
                   {integrator, usual.speed_limit, contacts, joint_limits, 0, usual.rows.solve.tolerance,
                    usual.rows.solve.max_iterations, "spook", "auto", "implicit"});
  return any.visit([&]<class R>(BasicData<R>& data) -> nb::object {
    const Call<R> call(model, any, data);
    Stepper<R> stepper(model, data, options);
    const int bad = step<R>(stepper, call, drives, qpos_target, qvel_target);
    feel(any, stepper, data, bad);
    return statuses(stepper, data.worlds());
  });
}

/// One world's elements of a batch array, as double.
template <class R>
std::vector<double> one_world(const BasicData<R>& data, const AlignedVector<R>& from, int n, int world) {
  std::vector<R> one(n);
  data.get(from, n, world, one);
  return {one.begin(), one.end()};
}

nb::object py_state_hash(AnyData& any) {
  return any.alone([](auto& data) -> nb::object { return nb::int_(state_hash(data)); });
}

}  // namespace

namespace {

/// Lets Python's garbage collector find cycles such as stepper -> equalities -> function -> globals -> stepper, which
/// Equalities then breaks, or stepper -> data -> stepper if the data is of a user's subclass.
int traverse_stepper(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<AnyStepper>(self)->traverse(visit, arg) : 0;
}
PyType_Slot stepper_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_stepper)}, {0, nullptr}};

}  // namespace

nb::object sensor_numbers(AnyData& any) {
  SensorSet& sensors = any.sensors();
  return any.alone([&]<class R>(BasicData<R>& d) -> nb::object {
    AlignedVector<R> out(d.size(sensors.numbers()));
    if constexpr (sizeof(R) == sizeof(double)) {
      if (d.width() == 1 && d.worlds() == 1) {
        sensors.evaluate({d.time, d.qpos, d.qvel, d.qacc, d.ctrl, d.act, d.mocap_pos, d.mocap_quat, any.forces_on(0)},
                         out);
        return own_array(std::move(out), batch_shape(d, {sensors.numbers()}));
      }
    }
    std::vector<double> numbers(sensors.numbers());
    for (int world = 0; world < d.worlds(); ++world) {
      const auto of = [&](const AlignedVector<R>& from, int n) { return one_world(d, from, n, world); };
      const std::vector<double> q = of(d.qpos, d.nq()), v = of(d.qvel, d.nv()), a = of(d.qacc, d.nv()),
                                ctrl = of(d.ctrl, d.nu()), act = of(d.act, d.na()),
                                position = of(d.mocap_pos, 3 * d.nmocap()), turn = of(d.mocap_quat, 4 * d.nmocap());
      sensors.evaluate({d.time, q, v, a, ctrl, act, position, turn, any.forces_on(world)}, numbers);
      const std::vector<R> narrow(numbers.begin(), numbers.end());
      d.set(std::span<R>(out), sensors.numbers(), world, std::span<const R>(narrow));
    }
    return own_array(std::move(out), batch_shape(d, {sensors.numbers()}));
  });
}

/// A world's tendons, actuators and passive forces, under MuJoCo's names.
nb::dict actuation_numbers(const Model& model, AnyData& any, int world) {
  if (&any.model() != &model) throw ValueError("data", "made for another model", "data of this model");
  Actuation& actuation = any.actuation();
  any.alone([&]<class R>(BasicData<R>& d) {
    check_world(d, world);
    const auto of = [&](const AlignedVector<R>& from, int n) { return one_world(d, from, n, world); };
    actuation.set_mocap(of(d.mocap_pos, 3 * d.nmocap()), of(d.mocap_quat, 4 * d.nmocap()));
    actuation.evaluate(of(d.qpos, d.nq()), of(d.qvel, d.nv()), of(d.ctrl, d.nu()), of(d.act, d.na()), model.timestep);
  });
  const auto array = [](std::span<const double> values) {
    return new_array(std::vector<double>(values.begin(), values.end()), {values.size()});
  };
  const PassiveForces& passive = actuation.passive();
  const std::size_t nv = std::size_t(model.nv), ntendon = std::size_t(actuation.tendons().size()),
                    nu = std::size_t(actuation.actuators().size());  // may be less than the number of controls
  std::vector<double> ten_J(ntendon * nv), moment(nu * nv), qfrc_passive(nv);
  for (std::size_t t = 0; t < ntendon; ++t) {
    const Tendon& tendon = actuation.tendons()[int(t)];
    for (std::size_t i = 0; i < tendon.dofs.size(); ++i)
      ten_J[t * nv + tendon.dofs[i]] = passive.tendon_arm()[tendon.first + i];
  }
  for (std::size_t u = 0; u < nu; ++u) {
    const Actuator& a = actuation.actuators()[int(u)];
    for (std::size_t i = 0; i < a.dofs.size(); ++i) moment[u * nv + a.dofs[i]] = actuation.moment()[a.first + i];
  }
  any.visit([&]<class R>(BasicData<R>& d) {
    actuation.passive_force(one_world(d, d.qpos, d.nq(), world), one_world(d, d.qvel, d.nv(), world), qfrc_passive);
  });
  nb::dict out;
  out["ten_length"] = array(passive.tendon_length()), out["ten_velocity"] = array(passive.tendon_velocity());
  out["ten_J"] = new_array(std::move(ten_J), {ntendon, nv});
  out["actuator_length"] = array(actuation.length()), out["actuator_velocity"] = array(actuation.velocity());
  out["actuator_moment"] = new_array(std::move(moment), {nu, nv});
  out["actuator_force"] = array(actuation.force()), out["act_dot"] = array(actuation.act_dot());
  out["qfrc_actuator"] = array(actuation.actuator_force()), out["qfrc_passive"] = array(qfrc_passive);
  return out;
}

nb::dict sensor_places(AnyData& any) {
  nb::dict out;
  for (int i = 0; i < any.sensors().size(); ++i) {
    const Sensor& s = any.sensors()[i];
    if (!s.name.empty()) out[s.name.c_str()] = nb::slice(s.address, s.address + s.dimension, 1);
  }
  return out;
}

/// Python's UserLimit: a limit, and the model of its joint.
struct PyUserLimit {
  UserLimit limit;
  nb::object model;
};

/// @throws ValueError for a limit that was made for another model
std::vector<UserLimit> limits_for(const Model& model, const std::vector<PyUserLimit>& limits) {
  std::vector<UserLimit> out;
  for (const PyUserLimit& l : limits) {
    if (nb::cast<const Model*>(l.model) != &model)
      throw ValueError("limits", "with \"" + l.limit.name + "\", which was made for another model",
                       "limits of this model");
    out.push_back(l.limit);
  }
  return out;
}

/// Binds user-defined limits and the functions that construct them.
void bind_limits(nb::module_& m) {
  nb::class_<PyUserLimit>(m, "UserLimit", "A user-defined limit on one joint, for Stepper(limits=[...]).")
      .def_prop_ro(
          "name", [](const PyUserLimit& l) { return l.limit.name; }, "Name of the limit.")
      .def_prop_ro(
          "joint", [](const PyUserLimit& l) { return l.limit.joint; }, "Index in model.joints.")
      .def("__repr__", [](const PyUserLimit& l) {
        return "<tarsus.UserLimit '" + l.limit.name + "' of joint " + std::to_string(l.limit.joint) + ">";
      });
  m.def(
      "cone_limit",
      [](nb::object owner, const std::string& name, handle joint, const Numbers<3>& axis, double angle) {
        const Model& model = expect<const Model>(owner, "model");
        UserLimit limit = cone_limit(model, name, joint_index(model, joint), vec("axis", axis), angle);
        return PyUserLimit{std::move(limit), std::move(owner)};
      },
      "model"_a, "name"_a, "joint"_a, "axis"_a, "angle"_a,
      nb::sig(
          "def cone_limit(model: Model, name: str, joint: str | int, axis: typing.Sequence[float], angle: float) -> "
          "UserLimit"),
      "A limit for a ball joint: an axis of its body (unit, in the body's frame) stays within `angle` "
      "[rad] of its rest direction.");
}

void bind_sim(nb::module_& m) {
  bind_limits(m);
  nb::class_<AnyStepper> c(m, "Stepper", nb::type_slots(stepper_slots),
                           "Advances the worlds of a Data over many steps, and records which of them have failed.\n"
                           "\n"
                           "A world whose step fails freezes at its last good state; the other worlds continue.");
  c.def(
      "__init__",
      [](AnyStepper* self, nb::object data, std::optional<double> dt, const std::string& integrator, double speed_limit,
         std::optional<bool> contacts, std::optional<bool> joint_limits, double restitution, double tolerance,
         int max_iterations, const std::string& loops, handle equalities, const std::string& velocity_products,
         const std::string& actuation, bool profile, const std::vector<PyUserLimit>& limits) {
        const Model& model = expect<AnyData>(data, "data").model();
        StepOptions options = step_options(model, dt,
                                           {integrator, speed_limit, contacts, joint_limits, restitution, tolerance,
                                            max_iterations, loops, velocity_products, actuation});
        options.profile = profile;
        options.rows.user_limits = limits_for(model, limits);
        new (self) AnyStepper(std::move(data), options, equalities);
      },
      "data"_a, "dt"_a = nb::none(), "integrator"_a = "semi_implicit_euler",
      "speed_limit"_a = StepOptions().speed_limit, "contacts"_a = nb::none(), "joint_limits"_a = nb::none(),
      "restitution"_a = 0.0, "tolerance"_a = RowStageOptions().solve.tolerance,
      "max_iterations"_a = RowStageOptions().solve.max_iterations, "loops"_a = "spook", "equalities"_a = nb::none(),
      "velocity_products"_a = "auto", "actuation"_a = "implicit", "profile"_a = false,
      "limits"_a = std::vector<PyUserLimit>(),
      nb::sig("def __init__(self, data: Data, dt: float | None = None, integrator: str = 'semi_implicit_euler', "
              "speed_limit: float = 1e6, contacts: bool | None = None, joint_limits: bool | None = None, restitution: "
              "float = 0.0, "
              "tolerance: float = 1e-6, max_iterations: int = 3000, loops: str = 'spook', equalities: Equalities | "
              "None = None, "
              "velocity_products: str = 'auto', actuation: str = 'implicit', profile: bool = False, "
              "limits: typing.Sequence[UserLimit] = ()) -> None"),
      "dt [s]; None: the model's timestep.\n"
      "integrator: 'semi_implicit_euler' (drives, springs and damping implicit) or 'rk4' (all explicit).\n"
      "speed_limit [rad/s | m/s]: a faster world counts as diverged.\n"
      "contacts: the model's shapes collide. joint_limits: joints have their ranges and dry friction. "
      "None: on, but off with rk4,\n"
      "which has neither.\n"
      "tolerance [m/s]: largest deviation of a contact's velocity from its law.\n"
      "max_iterations of a step, after which the best iterate is taken and stepper.rows reports it. A step "
      "takes one to ten\n"
      "iterations, one in ten thousand some hundred; give fewer where time is short. One more may follow, "
      "which puts the forces of\n"
      "drives and limits within their bounds.\n"
      "loops: the model's equality constraints: 'spook' (softened, stabilised), 'shake' (no drift) or "
      "'off'. equalities: constraints\n"
      "that replace those of the model file.\n"
      "velocity_products: Coriolis and gyroscopic forces: 'on' (linearly implicit: no energy gained at "
      "long steps), 'off' (explicit)\n"
      "or 'auto' (implicit where some link turns by more than 3e-4 rad in a step).\n"
      "actuation: 'implicit' (the model's servos act as at the end of the step), 'explicit' (MuJoCo's "
      "forces at its start) or 'off'\n"
      "(no actuator acts).\n"
      "profile: time each stage of the steps, for stage_seconds. limits: user-defined limits, such as "
      "those of cone_limit().");
  c.def("limit_force", &AnyStepper::limit_force, "index"_a,
        "Force of limits[index] in the last step, along the limit's gradient [N | N m].");
  c.def("__repr__", &AnyStepper::repr);
  c.def("step", &AnyStepper::step, "drives"_a = nb::none(), "qpos_target"_a = nb::none(), "qvel_target"_a = nb::none(),
        nb::sig("def step(self, drives: Drives | None = None, qpos_target: numpy.ndarray | None = None, qvel_target: "
                "numpy.ndarray | "
                "None = None) -> int"),
        "Advances all worlds with status ok by one step, under data.tau and the drives. The targets [nq], "
        "[nv] are those at the end of the\n"
        "step. Without drives the model's actuators act, under data.ctrl. Returns the number of worlds whose "
        "status is not ok.");
  c.def_prop_ro("status", &AnyStepper::status, nb::sig("def status(self) -> list[str]"),
                "[worlds] status: 'ok', 'bad_input' (not finite), 'singular', 'too_fast' or 'open_loop'.");
  c.def("limit_report", &AnyStepper::limit_report, "world"_a = 0,
        nb::sig("def limit_report(self, world: int = 0) -> dict[str, float] | None"),
        "Solution for the force limits in the last step: iterations, residual (relative to the limit), "
        "converged, saturated. None without\n"
        "force limits.");
  c.def_prop_ro("rows", &AnyStepper::rows, nb::sig("def rows(self) -> dict | list[dict] | None"),
                "Solution for contacts and limits in the last step: status, rows, contacts, touching, limits, "
                "iterations, piled (number of terms\n"
                "solved by sweeps), sweeps, residual [m/s], penetration [m]. A batch has one for each world. None "
                "without contacts and joint_limits.");
  c.def("loops", &AnyStepper::loops, "world"_a = 0, nb::sig("def loops(self, world: int = 0) -> dict | None"),
        "The model's equality constraints in the last step: status, rows, error [m | rad] and rate at its "
        "start (at its end with loops\n"
        "'shake'), worst_row, and multipliers by row name. The force on the bodies is minus the row's "
        "Jacobian times its multiplier.\n"
        "None without constraints.");
  c.def_prop_ro("stage_seconds", &AnyStepper::stage_seconds, nb::sig("def stage_seconds(self) -> dict[str, float]"),
                "Wall time of each stage, summed over all steps so far [s], by name in the order of execution "
                "(docs/architecture.md). Zero without\n"
                "profile=True.");
  c.def_prop_ro(
      "contacts", &AnyStepper::contacts, nb::sig("def contacts(self) -> list[dict]"),
      "Contacts of the last step. Each has links (a, b; -1 is the world), bodies and geoms (their indices and "
      "names, '' for none),\n"
      "position, normal from b to a, and distance between the shapes (negative for penetration; forces "
      "begin at MJCF's margin); force and\n"
      "torque (torsional and rolling friction) on a, all in world axes [m, N, N m]; friction, the coefficient (0 "
      "without\n"
      "friction, the larger of an explicit pair's two); and dimension, MJCF's condim.");
  c.def("restart", &AnyStepper::restart, "world"_a = 0,
        "Announces that the state of a world was set. The world continues even if it was frozen, and its "
        "earlier steps no longer\n"
        "affect it, so that equal initial states give equal runs to the bit.");
  c.def_prop_ro("data", &AnyStepper::data, nb::sig("def data(self) -> Data"), "The data that the stepper advances.");
  c.def_prop_ro("dt", &AnyStepper::dt, "[s].");
  m.def("step", &py_step, "model"_a, "data"_a, "drives"_a = nb::none(), "qpos_target"_a = nb::none(),
        "qvel_target"_a = nb::none(), "dt"_a = nb::none(), "integrator"_a = "semi_implicit_euler",
        "contacts"_a = nb::none(), "joint_limits"_a = nb::none(),
        nb::sig("def step(model: Model, data: Data, drives: Drives | None = None, qpos_target: numpy.ndarray | None = "
                "None, qvel_target: "
                "numpy.ndarray | None = None, dt: float | None = None, integrator: str = 'semi_implicit_euler', "
                "contacts: bool "
                "| None = None, joint_limits: bool | None = None) -> list[str]"),
        "Makes one step of all worlds. dt, contacts and joint_limits are those of Stepper. Returns each "
        "world's status: 'ok', or the reason why its state did not change.\n"
        "\n"
        "For repeated steps use a Stepper, which keeps its scratch memory and records which worlds failed.");
  m.def(
      "sensors",
      [](const Model& model, AnyData& any) {
        if (&any.model() != &model) throw ValueError("data", "made for another model", "data of this model");
        return sensor_numbers(any);
      },
      "model"_a, "data"_a, nb::sig("def sensors(model: Model, data: Data) -> numpy.ndarray"),
      "[nsensordata] readings of the model's sensors at data's qpos, qvel, ctrl, act and time. "
      "Accelerations and forces use data.qacc,\n"
      "which a step writes; contacts are those of the last Stepper.step(). MuJoCo's layout. Sensors of "
      "kinds that are not computed\n"
      "read nan; loading warns of them. In a world that is not ok, those of accelerations and forces read nan.");
  m.def("actuation", &actuation_numbers, "model"_a, "data"_a, "world"_a = 0,
        nb::sig("def actuation(model: Model, data: Data, world: int = 0) -> dict[str, numpy.ndarray]"),
        "Tendons, actuators and passive forces of one world at data's qpos, qvel, ctrl and act, under "
        "MuJoCo's names: ten_length [ntendon],\n"
        "ten_velocity, ten_J [ntendon, nv]; actuator_length, actuator_velocity and actuator_force of each "
        "actuator, actuator_moment\n"
        "[actuators, nv]; act_dot [na]; qfrc_actuator [nv], qfrc_passive. The forces are those at this "
        "state, as used by\n"
        "actuation='explicit'.");
  m.def("sensor_places", &sensor_places, "data"_a, nb::sig("def sensor_places(data: Data) -> dict[str, slice]"),
        "Slice of each named sensor's readings in sensors().");
  m.def("state_hash", &py_state_hash, "data"_a, nb::sig("def state_hash(data: Data) -> int"),
        "64-bit hash of the bits of qpos and qvel: equal states have equal hashes.");
}

}  // namespace tarsus::python
