// Stable PD drives: tarsus/control/drive.hpp.
#include "tarsus/control/drive.hpp"

#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/control/force_limit.hpp"
#include "tarsus/io/gains_text.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

std::vector<double> gains(const char* argument, handle object, std::size_t n) {
  const Input<double> in(argument, object, {n}, 1);
  return {in.span().begin(), in.span().end()};
}

nb::object view_of(std::vector<double>& values, handle self) {
  return view_array(values.data(), {values.size()}, self);
}

nb::object py_drive_terms(const Model& model, AnyData& any, const Drives& drives, double dt, handle qpos, handle qvel,
                          handle qpos_target, handle qvel_target, handle tau, handle joint_force,
                          handle joint_inertia) {
  return any.visit([&]<class R>(BasicData<R>& data) -> nb::object {
    const Call<R> call(model, any, data, Overwrites::poses);
    drives.check(model);
    const Input<R> q = call.qpos(qpos), v = call.qvel(qvel), q_target = call.in("qpos_target", qpos_target, {model.nq});
    const Input<R> v_target = call.optional("qvel_target", qvel_target, {model.nv}),
                   t = call.optional("tau", tau, {model.nv});
    Output<R> Q = call.out("joint_force", joint_force, {model.nv}),
              K = call.out("joint_inertia", joint_inertia, {model.nv});
    for (const Input<R>* input : {&q, &v, &q_target, &v_target, &t}) Q.keep_apart(*input), K.keep_apart(*input);
    K.keep_apart(Q);
    call.run([&] { drive_terms<R>(model, data, drives, dt, q, v, q_target, v_target, t, Q, K); });
    return nb::make_tuple(Q.take(), K.take());
  });
}

nb::object py_drive_force(const Model& model, AnyData& any, const Drives& drives, double dt, handle qpos, handle qvel,
                          handle qpos_target, handle qvel_target, handle qacc, handle out) {
  return any.visit([&]<class R>(BasicData<R>& data) {
    const Call<R> call(model, any, data, Overwrites::poses);
    drives.check(model);
    const Input<R> q = call.qpos(qpos), v = call.qvel(qvel), q_target = call.in("qpos_target", qpos_target, {model.nq});
    const Input<R> v_target = call.optional("qvel_target", qvel_target, {model.nv}),
                   a = call.in("qacc", qacc, {model.nv});
    Output<R> force = call.out("out", out, {model.nv});
    for (const Input<R>* input : {&q, &v, &q_target, &v_target, &a}) force.keep_apart(*input);
    call.run([&] { drive_force<R>(model, data, drives, dt, q, v, q_target, v_target, a, force); });
    return force.take();
  });
}

/// Copies into existing memory, so that views of it stay valid if it is large enough.
void copy_into(std::vector<double>& to, const char* argument, handle object, std::size_t n) {
  const std::vector<double> values = gains(argument, object, n);
  to.assign(values.begin(), values.end());
}

/// None removes the values: no force limits, or a floor of -force_limit.
void set_limits(std::vector<double>& to, const char* argument, handle object, std::size_t n) {
  if (object.is_none())
    to.clear();
  else
    copy_into(to, argument, object, n);
}

nb::object limits_of(std::vector<double>& values, handle self) {
  return values.empty() ? nb::none() : view_of(values, self);
}

void bind_limits(nb::class_<Drives>& c) {
  c.def_prop_rw(
      "force_limit", [](handle self) { return limits_of(nb::cast<Drives&>(self).force_limit, self); },
      [](Drives& d, handle value) { set_limits(d.force_limit, "force_limit", value, d.kp.size()); }, nb::arg().none(),
      nb::for_getter(nb::sig("def force_limit(self) -> numpy.ndarray | None")),
      nb::for_setter(nb::sig("def force_limit(self, value: numpy.ndarray | None, /) -> None")),
      "[nv] upper force limits (N m | N), which Stepper enforces at the end of the step; inf: no limit. A "
      "ball joint applies its first\n"
      "limit to the magnitude of its torque. A free joint applies its first three to the directions and "
      "its fourth to the magnitude\n"
      "of its torque. None: no limits.");
  c.def_prop_rw(
      "force_floor", [](handle self) { return limits_of(nb::cast<Drives&>(self).force_floor, self); },
      [](Drives& d, handle value) { set_limits(d.force_floor, "force_floor", value, d.kp.size()); }, nb::arg().none(),
      nb::for_getter(nb::sig("def force_floor(self) -> numpy.ndarray | None")),
      nb::for_setter(nb::sig("def force_floor(self, value: numpy.ndarray | None, /) -> None")),
      "[nv] lower force limits; None: -force_limit. Rotations of ball and free joints do not use them.");
  c.def_rw("spin_damping", &Drives::spin_damping,
           "Numerical damping of limited drives against explicit velocity-product forces "
           "(docs/force_limits.md). 0: none.");
}

void bind_drives(nb::module_& m) {
  nb::class_<Drives> c(
      m, "Drives",
      "Stable PD gains for each degree of freedom.\n"
      "\n"
      "A ball joint uses its first gains for all three axes. A free joint uses its first three for its "
      "position (world axes) and\n"
      "its fourth for its orientation. The arrays are views: changing them changes the drives.");
  c.def(
      "__init__",
      [](Drives* self, handle kp, handle kd, bool plain) {
        const std::size_t n = nb::len(nb::borrow(kp));
        new (self) Drives{gains("kp", kp, n), gains("kd", kd, n), plain};
      },
      "kp"_a, "kd"_a, "plain"_a = false,
      nb::sig("def __init__(self, kp: numpy.ndarray, kd: numpy.ndarray, plain: bool = False) -> None"),
      "kp [nv] N m/rad | N/m and kd [nv] N m s/rad | N s/m, both copied. plain: the paper's law, whose "
      "position error uses the old velocity.");
  c.def("__copy__", [](const Drives& d) { return Drives(d); });
  c.def(
      "__deepcopy__", [](const Drives& d, handle) { return Drives(d); }, "memo"_a,
      nb::sig("def __deepcopy__(self, memo: dict) -> Drives"));
  c.def_static("none", &Drives::none, "model"_a, "Drives without effect: no joint is driven.");
  c.def_static(
      "uniform",
      [](const Model& model, double kp, double kd, std::optional<double> root_kp, std::optional<double> root_kd) {
        const auto is_free = [](const Joint& j) { return moves_freely(j.type); };
        const bool rooted = std::any_of(model.joints.begin(), model.joints.end(), is_free);
        for (const auto& [name, gain] : {std::pair("root_kp", root_kp), std::pair("root_kd", root_kd)}) {
          if (!rooted && gain.value_or(0) != 0)
            throw ValueError(name, number_text(*gain), "0 or None for a model without a free root");
        }
        return Drives::uniform(model, kp, kd, root_kp.value_or(20000), root_kd.value_or(2000));
      },
      "model"_a, "kp"_a = 75000.0, "kd"_a = 4000.0, "root_kp"_a = nb::none(), "root_kd"_a = nb::none(),
      "The same gains at every joint below the root, and separate gains for a free root (None: 20000 and "
      "2000). Raises ValueError for\n"
      "bad gains.");
  c.def_static(
      "load", [](handle file, const Model& model) { return read_gains(model, file_name("gains", file)); }, "gains"_a,
      "model"_a, nb::sig("def load(gains: str | os.PathLike[str], model: Model) -> Drives"),
      "Gains in the notation of `tarsus run --gains`: a JSON file keyed by joint names (docs/gains.md), "
      "\"KP,KD\" for all joints\n"
      "including a free root, or \"KP,KD,ROOT_KP,ROOT_KD\".");
  c.def(
      "take_force_limits", [](Drives& d, const Model& model) { take_force_limits(model, d); }, "model"_a,
      "Sets force_limit and force_floor from the model's file (MJCF's actuatorfrcrange, URDF's effort).");
  c.def("check", &Drives::check, "model"_a, "Raises ShapeError or ValueError naming the first invalid gain.");
  c.def_prop_rw(
      "kp", [](handle self) { return view_of(nb::cast<Drives&>(self).kp, self); },
      [](Drives& d, handle value) { copy_into(d.kp, "kp", value, d.kp.size()); },
      nb::for_getter(nb::sig("def kp(self) -> numpy.ndarray")),
      nb::for_setter(nb::sig("def kp(self, value: numpy.ndarray, /) -> None")),
      "[nv] stiffness, N m/rad | N/m. A view; assigning copies into it.");
  c.def_prop_rw(
      "kd", [](handle self) { return view_of(nb::cast<Drives&>(self).kd, self); },
      [](Drives& d, handle value) { copy_into(d.kd, "kd", value, d.kd.size()); },
      nb::for_getter(nb::sig("def kd(self) -> numpy.ndarray")),
      nb::for_setter(nb::sig("def kd(self, value: numpy.ndarray, /) -> None")),
      "[nv] damping, N m s/rad | N s/m. A view; assigning copies into it.");
  c.def("__repr__", [](const Drives& d) {
    int driven = 0;
    for (std::size_t i = 0; i < d.kp.size(); ++i) driven += d.kp[i] != 0 || (i < d.kd.size() && d.kd[i] != 0);
    return "<tarsus.Drives nv=" + std::to_string(d.kp.size()) + ", " + std::to_string(driven) + " driven" +
           (d.plain ? ", plain" : "") + (d.limited() ? ", limited" : "") + ">";
  });
  c.def_rw("plain", &Drives::plain,
           "True: the position error uses the old velocity, as in the paper; unstable at large steps. False: "
           "the spring force, too, is\n"
           "that of the end of the step.");
  bind_limits(c);
}

}  // namespace

void bind_control(nb::module_& m) {
  bind_drives(m);
  m.def(
      "drive_terms", &py_drive_terms, "model"_a, "data"_a, "drives"_a, "dt"_a, "qpos"_a.none(), "qvel"_a.none(),
      "qpos_target"_a.none(), "qvel_target"_a = nb::none(), "tau"_a = nb::none(), "joint_force"_a = nb::none(),
      "joint_inertia"_a = nb::none(),
      nb::sig("def drive_terms(model: Model, data: Data, drives: Drives, dt: float, qpos: numpy.ndarray, qvel: "
              "numpy.ndarray, "
              "qpos_target: numpy.ndarray, qvel_target: numpy.ndarray | None = None, tau: numpy.ndarray | None = None, "
              "joint_force: numpy.ndarray | None = None, joint_inertia: numpy.ndarray | None = None) -> "
              "tuple[numpy.ndarray, "
              "numpy.ndarray]"),
      "(joint_force [nv], joint_inertia [nv]) of maba() for one step of dt seconds. joint_force is tau "
      "plus drives, springs and\n"
      "damping; joint_inertia is the armature plus the implicit terms. Targets are those at the end of the "
      "step. O(n).");
  m.def("drive_force", &py_drive_force, "model"_a, "data"_a, "drives"_a, "dt"_a, "qpos"_a.none(), "qvel"_a.none(),
        "qpos_target"_a.none(), "qvel_target"_a.none(), "qacc"_a.none(), "out"_a = nb::none(),
        nb::sig("def drive_force(model: Model, data: Data, drives: Drives, dt: float, qpos: numpy.ndarray, qvel: "
                "numpy.ndarray, "
                "qpos_target: numpy.ndarray, qvel_target: numpy.ndarray | None, qacc: numpy.ndarray, out: "
                "numpy.ndarray | None = None) "
                "-> numpy.ndarray"),
        "Force of the drives alone [nv] over the step, from the acceleration qacc that maba() returned [N m "
        "| N].");
}

}  // namespace tarsus::python
