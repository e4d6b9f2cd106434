// Free rigid bodies with contact: tarsus/sim/rigid_world.hpp, rigid_scene.hpp, rigid_model.hpp.
#include "rigid_world.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <functional>

#include "tarsus/base/number_text.hpp"
#include "tarsus/io/model_file.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

template <class T>
T cast_option(const std::string& name, handle value, const char* expected) {
  T out{};
  if (!nb::try_cast<T>(value, out))
    throw nb::type_error((name + ": is " + nb::type_name(value.type()).c_str() + ", expected " + expected).c_str());
  return out;
}

/// Before it is halved for one of two surfaces. @throws ValueError
double checked_compliance(double c) {
  if (!std::isfinite(c) || c < 0) throw ValueError("compliance", number_text(c), "finite, not negative");
  return c;
}

/// An option, under the name of its member in RigidWorldOptions.
struct OptionField {
  const char* name;
  std::function<void(RigidWorldOptions&, handle)> set;
  std::function<nb::object(const RigidWorldOptions&)> get;
};
template <class T>
OptionField field(const char* name, T RigidWorldOptions::*member, const char* expected) {
  return {name, [=](RigidWorldOptions& o, handle value) { o.*member = cast_option<T>(name, value, expected); },
          [=](const RigidWorldOptions& o) { return nb::cast(o.*member); }};
}
const std::vector<OptionField>& option_fields() {
  using O = RigidWorldOptions;
  static const std::vector<OptionField> fields = {
      field("dt", &O::dt, "a number [s]"),
      {"gravity", [](O& o, handle v) { o.gravity = vec("gravity", {nb::borrow(v)}); },
       [](const O& o) { return to_numpy(o.gravity); }},
      field("iterations", &O::iterations, "an integer"),
      field("tolerance", &O::tolerance, "a number [m/s]"),
      field("relaxation", &O::relaxation, "a number"),
      field("relative_compliance", &O::relative_compliance, "a number [s²]"),
      field("damping_time", &O::damping_time, "a number [s]"),
      field("margin", &O::margin, "a number [m]"),
      field("restitution_threshold", &O::restitution_threshold, "a number [m/s]"),
      field("warm_start", &O::warm_start, "a bool"),
      field("threads", &O::threads, "an integer"),
      field("sleep", &O::sleep, "a bool"),
      field("sleep_speed", &O::sleep_speed, "a number [m/s]"),
      field("sleep_spin", &O::sleep_spin, "a number [rad/s]"),
      field("sleep_time", &O::sleep_time, "a number [s]"),
      field("speed_limit", &O::speed_limit, "a number [m/s | rad/s]"),
  };
  return fields;
}

/// Keywords for the construction of a world that are not in RigidWorldOptions.
struct Setup {
  std::optional<double> friction, restitution, compliance;
  bool single = false;
};
Setup read_keywords(RigidWorldOptions& options, const nb::kwargs& keywords) {
  Setup setup;
  for (const auto& [key, value] : keywords) {
    const std::string name = nb::cast<std::string>(key);
    if (value.is_none()) continue;
    if (name == "dtype") {
      setup.single = wants_float(value);
      continue;
    }
    bool known = true;
    if (name == "friction")
      setup.friction = cast_option<double>(name, value, "a number");
    else if (name == "restitution")
      setup.restitution = cast_option<double>(name, value, "a number");
    else if (name == "compliance")
      setup.compliance = checked_compliance(cast_option<double>(name, value, "a number [m/N]"));
    else
      known = false;
    for (const OptionField& f : option_fields()) {
      if (name == f.name) f.set(options, value), known = true;
    }
    if (!known) throw nb::type_error(("unexpected keyword \"" + name + "\"").c_str());
  }
  return setup;
}

}  // namespace

bool apply_keywords(RigidScene& scene, const nb::kwargs& keywords) {
  const Setup setup = read_keywords(scene.options, keywords);
  scene.set_surfaces(setup.friction, setup.restitution, setup.compliance);
  return setup.single;
}

void change_options(RigidWorldOptions& options, const nb::kwargs& keywords) {
  const int threads = options.threads;
  const Setup setup = read_keywords(options, keywords);
  if (setup.friction || setup.restitution || setup.compliance || setup.single || options.threads != threads)
    throw ValueError("options", "threads, dtype or a surface's number",
                     "other options: these are set when a world is made");
  check(options);
}

nb::dict to_python(const RigidWorldOptions& options) {
  nb::dict out;
  for (const OptionField& f : option_fields()) out[f.name] = f.get(options);
  return out;
}

Sym3d inertia_of(handle inertia) {
  if (nb::hasattr(inertia, "ndim") && nb::cast<int>(inertia.attr("ndim")) == 2) {
    const Input<double> in("inertia", inertia, {3, 3}, sizeof(double));
    const auto m = in.span();
    for (const auto& [i, j] : {std::pair(1, 3), std::pair(2, 6), std::pair(5, 7)}) {
      const double larger = std::max(std::abs(m[std::size_t(i)]), std::abs(m[std::size_t(j)]));
      if (!(std::abs(m[std::size_t(i)] - m[std::size_t(j)]) <= 1e-9 * larger))
        throw ValueError("inertia", "not symmetric", "a symmetric matrix");
    }
    return {m[0], 0.5 * (m[1] + m[3]), 0.5 * (m[2] + m[6]), m[4], 0.5 * (m[5] + m[7]), m[8]};
  }
  const Vec3d d = vec("inertia", {nb::borrow(inertia)});
  return {d.x, 0, 0, d.y, 0, d.z};
}

Quatd unit(const std::array<double, 4>& q) {
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  if (!std::isfinite(length) || !(length > 1e-6))
    throw ValueError("orientation", "of length " + number_text(length), "a quaternion w, x, y, z that is not zero");
  return normalized(Quatd{q[0], q[1], q[2], q[3]});
}

/// Contacts of the last step, if the state has not changed since.
template <class R>
nb::dict AnyRigidWorld::contact_arrays(const RigidWorld<R>& w) const {
  std::vector<int> bodies, shapes;
  std::vector<double> position, normal, distance, force, torque, friction;
  const double h = contact_dt_;
  for (std::size_t k = 0; stepped_ && k < w.contacts().size(); ++k) {
    const BodyContact<R>& c = w.contacts()[k];
    const ContactImpulse<R>& p = w.impulses()[k];
    const RigidBody& a = w.bodies()[std::size_t(c.body_a)];
    const Vec3d n = {c.normal[0], c.normal[1], c.normal[2]};
    const Vec3d arm = c.round ? n * -double(c.arm_a[0]) : Vec3d{c.arm_a[0], c.arm_a[1], c.arm_a[2]};
    const Vec3d x = a.position - a.velocity * (failed_ ? 0.0 : h) + arm;  // with the body's position before the step
    const Vec3d f = (n * double(p.normal) + Vec3d{p.tangent[0], p.tangent[1], p.tangent[2]}) * (1 / h);
    bodies.insert(bodies.end(), {c.body_a, c.body_b});
    shapes.insert(shapes.end(), {w.contact_pairs()[k].first, w.contact_pairs()[k].second});
    position.insert(position.end(), {x.x, x.y, x.z});
    normal.insert(normal.end(), {n.x, n.y, n.z});
    force.insert(force.end(), {f.x, f.y, f.z});
    const ContactMoment<R> m = w.moments().empty() ? ContactMoment<R>{} : w.moments()[k];
    for (const R x : m.moment) torque.push_back(double(x) / h);
    distance.push_back(w.separation(c));
    friction.push_back(w.material(c).friction);
  }
  const std::size_t k = distance.size();
  nb::dict out;
  out["bodies"] = new_array(bodies, {k, 2}), out["shapes"] = new_array(shapes, {k, 2});
  out["position"] = new_array(position, {k, 3}), out["normal"] = new_array(normal, {k, 3});
  out["distance"] = new_array(distance, {k}), out["force"] = new_array(force, {k, 3});
  out["torque"] = new_array(torque, {k, 3}), out["friction"] = new_array(friction, {k});
  return out;
}

nb::list AnyRigidWorld::shapes() const {
  nb::list out;
  visit([&](auto& w) {
    for (const BodyShape& s : w.shapes()) {
      ShapePose pose = s.local;
      if (s.body >= 0) {  // from the principal axes to the user's body frame
        const ShapePose& frame = frames_[std::size_t(s.body)];
        pose = {frame.position + frame.rotation * pose.position, frame.rotation * pose.rotation};
      }
      const Quatd q = quaternion(pose.rotation);
      nb::dict one;
      one["body"] = s.body, one["type"] = name(s.shape.type), one["size"] = to_numpy(s.shape.size);
      one["position"] = to_numpy(pose.position), one["friction"] = w.surfaces()[std::size_t(s.surface)].friction;
      one["orientation"] = new_array(std::array{q.w, q.x, q.y, q.z}, {4});
      out.append(one);
    }
  });
  return out;
}

nb::dict AnyRigidWorld::contacts() const {
  return visit([&]<class R>(RigidWorld<R>& w) { return contact_arrays(w); });
}

namespace {

RigidScene empty_scene() {
  RigidScene scene;
  scene.surfaces.emplace_back();
  return scene;
}

void bind_report(nb::module_& m) {
  using Report = RigidStepReport;
  nb::class_<Report>(m, "RigidReport",
                     "Report of the last step that RigidWorld.step() made. True if its status is 'ok'.")
      .def_prop_ro(
          "status", [](const Report& r) { return name(r.status); }, nb::sig("def status(self) -> str"),
          "'ok', 'bad_input' (not finite), 'singular' or 'too_fast'.")
      .def_ro("contacts", &Report::contacts, "Number of contacts that touch or are closer than the margin.")
      .def_ro("touching", &Report::touching, "Number of contacts with a negative distance.")
      .def_ro("penetration_max", &Report::penetration_max,
              "Largest penetration beyond the margins of models, at the start of the step [m].")
      .def_ro("penetration_mean", &Report::penetration_mean, "Mean penetration of touching contacts [m].")
      .def_ro("iterations", &Report::iterations, "Sweeps.")
      .def_ro("residual", &Report::residual,
              "Largest change of a relative velocity by one contact in the last sweep [m/s].")
      .def_ro("first_change", &Report::first_change, "The same in the first sweep [m/s].")
      .def_ro("colours", &Report::colours, "Number of batches of contacts without a common body.")
      .def_ro("asleep", &Report::asleep, "Number of sleeping bodies.")
      .def_ro("islands", &Report::islands, "Number of islands (groups of bodies); counted only with sleep.")
      .def_prop_ro(
          "seconds",
          [](const Report& r) {
            nb::dict out;
            for (Stage stage : {Stage::collide, Stage::match, Stage::prepare, Stage::terms, Stage::integrate})
              out[name(stage)] = r.seconds[std::size_t(stage)];
            return out;
          },
          nb::sig("def seconds(self) -> dict[str, float]"), "Wall time of each stage of the last step.")
      .def("__bool__", [](const Report& r) { return r.status == WorldStatus::ok; })
      .def("__repr__", [](const Report& r) {
        return "<tarsus.RigidReport " + std::string(name(r.status)) + " contacts=" + std::to_string(r.contacts) + ">";
      });
}

#define TARSUS_RIGID_KEYWORDS                                                                                \
  "dt: float | None = None, gravity: object = None, iterations: int | None = None, threads: int = 1, "       \
  "sleep: bool = False, friction: float | None = None, restitution: float | None = None, compliance: float " \
  "| None = None, dtype: type | str | None = None, **options"

const char* const kDoc =
    "Free rigid bodies with contact. Stepper simulates joints and equality constraints.\n"
    "\n"
    "Arrays are copies: assign to world.poses to change the state. All vectors are in world axes. "
    "Keywords (None: the default, or\n"
    "the file's value): dt [s], gravity [m/s²], iterations (sweeps), threads (at most one for each core and for\n"
    "every 256 bodies is used; the result does not depend on them), sleep; friction, restitution and compliance [m/N] "
    "of all surfaces; dtype of the contact "
    "solver ('float32' is faster;\n"
    "poses are float64 in either case). Further keywords: tolerance, relaxation, relative_compliance, "
    "damping_time, margin,\n"
    "restitution_threshold, warm_start, sleep_speed, sleep_spin, sleep_time, speed_limit "
    "(docs/contact.md).";

void bind_making(nb::class_<AnyRigidWorld>& c) {
  c.def(
      "__init__",
      [](AnyRigidWorld* self, const nb::kwargs& keywords) { new (self) AnyRigidWorld(empty_scene(), keywords); },
      nb::sig("def __init__(self, *, " TARSUS_RIGID_KEYWORDS ") -> None"),
      "An empty world with one surface, number 0, whose properties the keywords set.");
  c.def_static(
      "from_model",
      [](const Model& model, const nb::kwargs& keywords) { return AnyRigidWorld::from_model(model, keywords); },
      "model"_a, "keywords"_a, nb::sig("def from_model(model: Model, *, " TARSUS_RIGID_KEYWORDS ") -> RigidWorld"),
      "The world of a model in which every joint is free. Raises InputError, which lists everything that "
      "cannot be simulated this way.");
  c.def_static(
      "load",
      [](const std::filesystem::path& path, const nb::kwargs& keywords) {
        Model model;
        {
          const nb::gil_scoped_release release;
          model = load_model(path, {});
        }
        return AnyRigidWorld::from_model(model, keywords);
      },
      "path"_a, "keywords"_a, nb::sig("def load(path: str | os.PathLike, *, " TARSUS_RIGID_KEYWORDS ") -> RigidWorld"),
      "Same as from_model() of Model.load(path).");
  c.def_static(
      "scene",
      [](const std::string& name, const nb::kwargs& keywords) {
        std::optional<RigidScene> scene = named_scene(name);
        if (!scene) throw ValueError("name", name, "one of " + scene_names());
        return AnyRigidWorld::from_model(compile(scene_spec(*scene)), keywords);
      },
      "name"_a, "keywords"_a, nb::sig("def scene(name: str, *, " TARSUS_RIGID_KEYWORDS ") -> RigidWorld"),
      "A built-in scene: 'balls:20:20', 'ball_pyramid:20', 'box_stack:10' and others. The error for an "
      "unknown name lists them.");
}

void bind_adding(nb::class_<AnyRigidWorld>& c) {
  c.def(
      "add_surface",
      [](AnyRigidWorld& w, double friction, double torsional, double rolling, double restitution, double compliance,
         double damping_time) {
        Surface s;
        s.friction = friction, s.torsional = torsional, s.rolling = rolling, s.restitution = restitution;
        s.compliance = 0.5 * checked_compliance(compliance), s.damping_time = damping_time;
        return w.add_surface(s);
      },
      nb::kw_only(), "friction"_a = 0.5, "torsional"_a = 0.0, "rolling"_a = 0.0, "restitution"_a = 0.0,
      "compliance"_a = 0.0, "damping_time"_a = 0.0,
      "Adds a surface; returns its number. Two surfaces in contact use the larger friction (torsional, "
      "rolling [m]), the larger\n"
      "restitution and the mean compliance [m/N]. 0: the compliance and damping time [s] of the world's "
      "options.");
  c.def(
      "add_body",
      [](AnyRigidWorld& w, const OwnedShape* shape, double mass, const Numbers<3>& position,
         const Numbers<4>& orientation, nb::object inertia, const Numbers<3>& com,
         int surface) { return w.add_body(shape, mass, position, orientation, inertia, com, surface); },
      "shape"_a.none(), "mass"_a, "position"_a = nb::make_tuple(0, 0, 0), "orientation"_a = nb::make_tuple(1, 0, 0, 0),
      "inertia"_a = nb::none(), "com"_a = nb::make_tuple(0, 0, 0), "surface"_a = 0,
      nb::sig(
          "def add_body(self, shape: Shape | None, mass: float, position: object = (0, 0, 0), orientation: object = "
          "(1, 0, 0, 0), inertia: object = None, com: object = (0, 0, 0), surface: int = 0) -> int"),
      "Adds a body in its shape's frame; returns its number. orientation is w, x, y, z. inertia: three "
      "moments or a (3, 3) array about\n"
      "`com`, in the body's axes [kg m²]; without it the shape is a homogeneous solid. With shape None, "
      "add_shape() adds shapes later.");
  c.def(
      "add_shape",
      [](AnyRigidWorld& w, int body, const OwnedShape& shape, const Numbers<3>& position, const Numbers<4>& orientation,
         int surface, int contype, int conaffinity) {
        const ShapePose local{vec("position", position), rotation(unit(orientation.of("orientation")))};
        return w.add_shape(body, shape, local, surface, contype, conaffinity);
      },
      "body"_a, "shape"_a, "position"_a = nb::make_tuple(0, 0, 0), "orientation"_a = nb::make_tuple(1, 0, 0, 0),
      "surface"_a = 0, "contype"_a = 1, "conaffinity"_a = 1,
      nb::sig("def add_shape(self, body: int, shape: Shape, position: object = (0, 0, 0), orientation: object = (1, 0, "
              "0, 0), surface: int = 0, contype: int = 1, conaffinity: int = 1) -> int"),
      "Adds another shape to a body, in the body's frame, or to the world (body -1). The body's mass does "
      "not change. Returns the\n"
      "shape's number. Two shapes may touch if the contype of either shares a bit with the conaffinity of "
      "the other.");
  c.def("exclude", &AnyRigidWorld::exclude, "body_a"_a, "body_b"_a,
        "Shapes of these two bodies (-1: the world) never touch.");
}

void bind_state(nb::class_<AnyRigidWorld>& c) {
  using W = AnyRigidWorld;
  c.def_prop_ro("nbody", &W::n, "Bodies.");
  c.def_prop_rw("poses", &W::poses, &W::set_poses, nb::for_getter(nb::sig("def poses(self) -> numpy.ndarray")),
                nb::for_setter(nb::sig("def poses(self, value: numpy.ndarray) -> None")),
                "[nbody][7] position [m] and orientation w, x, y, z of the frames in which the bodies were given; a "
                "copy. Assigning wakes all\n"
                "bodies and clears the impulses of the last step, so that the next step depends on the state alone.");
  c.def_prop_rw("velocities", &W::velocities, &W::set_velocities,
                nb::for_getter(nb::sig("def velocities(self) -> numpy.ndarray")),
                nb::for_setter(nb::sig("def velocities(self, value: numpy.ndarray) -> None")),
                "[nbody][6] velocities of the frames' origins [m/s], then angular velocities [rad/s], both in world "
                "axes; a copy.");
  c.def_prop_rw("forces", &W::forces, &W::set_forces, nb::for_getter(nb::sig("def forces(self) -> numpy.ndarray")),
                nb::for_setter(nb::sig("def forces(self, value: numpy.ndarray) -> None")),
                "[nbody][6] applied force at the centre of mass [N] and torque [N m], in world axes. They act in "
                "every step until set again; a copy.");
  c.def_prop_ro("masses", &W::masses, nb::sig("def masses(self) -> numpy.ndarray"), "[nbody] masses [kg]; a copy.");
  c.def_prop_ro("asleep", &W::asleep, nb::sig("def asleep(self) -> numpy.ndarray"),
                "[nbody] whether each body sleeps; a copy.");
  c.def_prop_ro("names", &W::names, nb::sig("def names(self) -> list[str]"),
                "[nbody] names of a model's bodies; empty for others.");
  c.def_prop_ro("contacts", &W::contacts, nb::sig("def contacts(self) -> dict[str, numpy.ndarray]"),
                "The n contacts of the last step, as new arrays: bodies and shapes (n, 2; body -1 is the world), "
                "position (n, 3), normal (n, 3),\n"
                "unit, from the second to the first, and distance between the shapes (n), negative for penetration, "
                "all at the start of the\n"
                "step; force on the first (n, 3) [N], torque on it of torsional and rolling friction (n, 3) [N m], "
                "and friction, the\n"
                "coefficient (n). Empty after the state was set.");
  c.def_prop_ro("shapes", &W::shapes, nb::sig("def shapes(self) -> list[dict]"),
                "New dictionaries with body (-1: the world), type, size [3], position [3] and orientation [4] in the "
                "body's frame, and friction.");
  c.def_prop_ro("options", &W::options, nb::sig("def options(self) -> dict[str, object]"), "All options; a copy.");
  c.def("set_options", &W::set_options, "keywords"_a, nb::sig("def set_options(self, **options) -> None"),
        "Changes options between steps. threads and dtype cannot change.");
  const auto number = [&](const char* name, auto get, const char* doc) {
    c.def_prop_ro(
        name, [get](const W& w) { return w.visit([&](auto& world) { return get(world); }); }, doc);
  };
  number(
      "time", [](auto& w) { return w.time(); }, "Simulated time [s].");
  number(
      "kinetic_energy", [](auto& w) { return w.kinetic_energy(); }, "[J].");
  number(
      "potential_energy", [](auto& w) { return w.potential_energy(); }, "Potential energy of gravity [J].");
  c.def_prop_ro(
      "momentum", [](const W& w) { return to_numpy(w.visit([](auto& x) { return x.momentum(); })); },
      nb::sig("def momentum(self) -> numpy.ndarray"), "[3] linear momentum [N s].");
  c.def_prop_ro(
      "angular_momentum", [](const W& w) { return to_numpy(w.visit([](auto& x) { return x.angular_momentum(); })); },
      nb::sig("def angular_momentum(self) -> numpy.ndarray"), "[3] angular momentum about the world's origin [N m s].");
  c.def(
      "state_hash", [](const W& w) { return w.visit([](auto& x) { return x.state_hash(); }); },
      "64-bit hash of the bits of the state.");
}

}  // namespace

void bind_rigid(nb::module_& m) {
  m.def("builtin_scenes", &named_scenes,
        "Built-in scenes of free bodies for Model.load() and RigidWorld.scene(): name and description.");
  bind_report(m);
  nb::class_<AnyRigidWorld> c(m, "RigidWorld", kDoc);
  bind_making(c);
  bind_adding(c);
  bind_state(c);
  c.def("step", &AnyRigidWorld::step, "steps"_a = 1, nb::sig("def step(self, steps: int = 1) -> RigidReport"),
        "Makes `steps` steps without Python's lock. Stops early at a step that fails and leaves the state as "
        "it was before that step.\n"
        "Returns the report of the last step. Never raises for events in the simulated world.");
  c.def("__repr__", [](const AnyRigidWorld& w) { return "<tarsus.RigidWorld nbody=" + std::to_string(w.n()) + ">"; });
}

}  // namespace tarsus::python
