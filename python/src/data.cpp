// Data: state and workspace, its arrays as NumPy views.
#include "tarsus/model/data.hpp"

#include <nanobind/stl/string.h>

#include <cmath>

#include "bindings.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/dynamics/frame.hpp"

namespace tarsus::python {

using namespace nb::literals;

bool wants_float(nb::handle dtype) {
  nb::object type = nb::module_::import_("numpy").attr("dtype")(dtype);
  const std::string name = nb::cast<std::string>(type.attr("name"));
  if (name != "float64" && name != "float32") throw ValueError("dtype", name, "float64 or float32");
  return name == "float32";
}

namespace {

/// A view of one of Data's arrays, n numbers a world.
template <class Member>
auto getter(Member member) {
  return [member](nb::handle self) {
    return nb::cast<AnyData&>(self).visit([&](auto& data) {
      const auto [values, n] = member(data);
      return view_array(values->data(), batch_shape(data, {n}), self);
    });
  };
}

/// Assignment copies into the array, so that views stay views.
template <class Member>
auto setter(Member member, const char* argument) {
  return [member, argument](AnyData& any, nb::handle value) {
    any.alone([&]<class R>(BasicData<R>& data) {
      const auto [values, n] = member(data);
      assign<R>(argument, value, batch_shape(data, {n}), values->data());
    });
  };
}

template <class Member>
void bind_array(nb::class_<AnyData>& c, const char* name, Member member, const char* doc) {
  c.def_prop_rw(name, getter(member), setter(member, name),
                nb::for_getter(nb::sig(("def " + std::string(name) + "(self) -> numpy.ndarray").c_str())),
                nb::for_setter(
                    nb::sig(("def " + std::string(name) + "(self, value: numpy.typing.ArrayLike, /) -> None").c_str())),
                doc);
}

/// Number of elements for each world in an array of this batch, from the array's shape.
template <class R>
int per_world(const BasicData<R>& data, nb::handle array) {
  const Shape shape = shape_of("array", array);
  const std::size_t position = data.width() > 1 ? 1 : 0, dimensions = data.width() > 1 ? 3 : 1;
  if (shape.size() != dimensions)
    throw ValueError("array", std::to_string(shape.size()) + "-dimensional",
                     std::to_string(dimensions) + "-dimensional");
  return int(shape[position]);
}

nb::object get(AnyData& any, nb::handle array, int world) {
  return any.alone([&]<class R>(BasicData<R>& data) {
    check_world(data, world);
    const int n = per_world(data, array);
    const Input<R> in("array", array, batch_shape(data, {n}), 1);
    AlignedVector<R> out(n);
    data.get(in, n, world, out);
    return own_array(std::move(out), {std::size_t(n)});
  });
}

void set(AnyData& any, nb::handle array, int world, nb::handle values) {
  any.alone([&]<class R>(BasicData<R>& data) {
    check_world(data, world);
    const int n = per_world(data, array);
    Output<R> out("array", array, batch_shape(data, {n}), 1);
    data.set(out, n, world, Input<R>("values", values, {std::size_t(n)}, 1));
  });
}

void reset(AnyData& any, nb::handle which) {
  const Model& model = any.model();
  const KeyframeSpec* key = which.is_none() ? nullptr : &keyframe_of(model, which);
  any.alone([&]<class R>(BasicData<R>& data) {
    const auto fill = [&](AlignedVector<R>& to, int n, const std::vector<double>* given, const double* otherwise) {
      std::vector<R> one(n, R(0));
      if (given && int(given->size()) == n)
        std::copy(given->begin(), given->end(), one.begin());
      else if (otherwise)
        std::copy(otherwise, otherwise + n, one.begin());
      for (int world = 0; world < data.packs() * data.width(); ++world) data.set(to, n, world, std::span<const R>(one));
    };
    fill(data.qpos, data.nq(), key ? &key->qpos : nullptr, model.qpos0.data());
    fill(data.qvel, data.nv(), key ? &key->qvel : nullptr, nullptr);
    fill(data.act, data.na(), key ? &key->act : nullptr, nullptr);
    fill(data.ctrl, data.nu(), key ? &key->ctrl : nullptr, nullptr);
    fill(data.tau, data.nv(), nullptr, nullptr), fill(data.qacc, data.nv(), nullptr, nullptr);
    const Data drawn(model);
    fill(data.mocap_pos, 3 * data.nmocap(), key ? &key->mocap_position : nullptr, drawn.mocap_pos.data());
    fill(data.mocap_quat, 4 * data.nmocap(), key ? &key->mocap_orientation : nullptr, drawn.mocap_quat.data());
    data.time = key ? key->time : 0;
  });
  any.forces = {};
}

/// Poses of mocap bodies, one row for each body as in MuJoCo.
template <class Member>
void bind_mocap(nb::class_<AnyData>& c, const char* name, Member member, int numbers, const char* doc) {
  const auto shape = [numbers]<class R>(const BasicData<R>& data) {
    return batch_shape(data, {data.nmocap(), numbers});
  };
  c.def_prop_rw(
      name,
      [member, shape](nb::handle self) {
        return nb::cast<AnyData&>(self).visit(
            [&](auto& data) { return view_array(member(data)->data(), shape(data), self); });
      },
      [member, shape, name](AnyData& any, nb::handle value) {
        any.alone([&]<class R>(BasicData<R>& data) { assign<R>(name, value, shape(data), member(data)->data()); });
      },
      nb::for_getter(nb::sig(("def " + std::string(name) + "(self) -> numpy.ndarray").c_str())),
      nb::for_setter(
          nb::sig(("def " + std::string(name) + "(self, value: numpy.typing.ArrayLike, /) -> None").c_str())),
      doc);
}

void apply_force(AnyData& any, nb::handle body, nb::handle force, nb::handle point) {
  const Model& model = any.model();
  const int index = body_index(model, body);
  const LinkFrame com = movable_frame(model, index);
  const std::vector<double> f = numbers("force", force, {3});
  std::vector<double> p;
  if (!point.is_none()) p = numbers("point", point, {3});
  any.alone([&]<class R>(BasicData<R>& data) {
    if (data.width() != 1)
      throw ValueError("data", std::to_string(data.worlds()) + " worlds", "one world; use Batch for many");
    Data pose(model);
    std::copy(data.qpos.begin(), data.qpos.end(), pose.qpos.begin());
    kinematics<double>(model, pose, pose.qpos);
    const Vec3d at = p.empty() ? world_point(pose.links(), com) : Vec3d{p[0], p[1], p[2]};
    add_generalized_force(model, pose.links(), com.link, at, {f[0], f[1], f[2]}, {0, 0, 0}, 1, pose.tau.data());
    for (int i = 0; i < model.nv; ++i) data.tau[i] += R(pose.tau[i]);
  });
}

nb::dict named_sensors(AnyData& any) {
  const nb::object numbers = sensor_numbers(any);
  const bool lanes = any.visit([](auto& data) { return data.width() > 1; });
  nb::dict out;
  const nb::object all = nb::slice(nb::none(), nb::none(), nb::none());
  for (const auto& [name, place] : sensor_places(any)) {
    const nb::object at = lanes ? nb::object(nb::make_tuple(all, place)) : nb::borrow(place);
    out[name] = nb::object(numbers[at]);
  }
  return out;
}

nb::object zeros(AnyData& any, int n) {
  if (n < 0) throw ValueError("n", std::to_string(n), "not negative");
  return any.visit(
      [&]<class R>(BasicData<R>& data) { return own_array(AlignedVector<R>(data.size(n)), batch_shape(data, {n})); });
}

const char* const kDataDoc =
    "State and workspace of one world or of a batch.\n"
    "\n"
    "dtype is float64 or float32; every array passed to an algorithm with this Data must have it. Arrays "
    "of a single world are\n"
    "[n]. Arrays of a batch are [packs][n][width]: `width` worlds are computed at a time, and world w is "
    "[w // width, :, w % width].\n"
    "Arrays are views without copies; assigning to one (data.qpos = x) copies into it. Two threads must "
    "not use one Data at once.";

}  // namespace

AnyData::AnyData(nb::object model, int worlds, nb::handle dtype)
    : owner_(std::move(model)), model_(&expect<const Model>(owner_, "model")) {
  const bool single = wants_float(dtype);
  fitting_into_memory(worlds, [&] {
    if (single)
      data_ = std::make_unique<BasicData<float>>(*model_, worlds);
    else
      data_ = std::make_unique<BasicData<double>>(*model_, worlds);
  });
}

AnyData::AnyData(const AnyData& other)
    : forces(other.forces), owner_(other.owner_), model_(other.model_), left_(other.left_) {
  const Taken taken(other.busy, "data");
  std::visit([&]<class D>(const std::unique_ptr<D>& data) { data_ = std::make_unique<D>(*data); }, other.data_);
}

void bind_data(nb::module_& m) {
  nb::class_<AnyData> c(m, "Data", kDataDoc);
  c.def(
      "__init__",
      [](AnyData* self, nb::object model, int worlds, nb::object dtype) {
        new (self) AnyData(std::move(model), worlds, dtype.is_none() ? nb::object(nb::str("float64")) : dtype);
      },
      "model"_a, "worlds"_a = 1, "dtype"_a = nb::none(),
      nb::sig("def __init__(self, model: Model, worlds: int = 1, dtype: type | str | None = None) -> None"),
      "All worlds start at the model's qpos0, at rest. dtype None is float64. Raises ValueError if worlds < 1.");
  bind_array(
      c, "qpos", [](auto& d) { return std::pair(&d.qpos, d.nq()); },
      "[nq] generalized positions, MuJoCo's layout [m | rad | quaternion w x y z].");
  bind_array(
      c, "qvel", [](auto& d) { return std::pair(&d.qvel, d.nv()); }, "[nv] generalized velocities [m/s | rad/s].");
  bind_array(
      c, "qacc", [](auto& d) { return std::pair(&d.qacc, d.nv()); },
      "[nv] accelerations, written by step() or by aba(..., out=data.qacc).");
  bind_array(
      c, "tau", [](auto& d) { return std::pair(&d.tau, d.nv()); },
      "[nv] applied joint forces, set by the user [N m | N].");
  bind_array(
      c, "ctrl", [](auto& d) { return std::pair(&d.ctrl, d.nu()); },
      "[nu] controls of the model's actuators, set by the user; MuJoCo's layout.");
  bind_array(
      c, "act", [](auto& d) { return std::pair(&d.act, d.na()); },
      "[na] activations of the actuators, written by step().");
  bind_mocap(
      c, "mocap_pos", [](auto& d) { return &d.mocap_pos; }, 3,
      "[nmocap, 3] positions of the mocap bodies, set by the user [m]; in the order of the bodies.");
  bind_mocap(
      c, "mocap_quat", [](auto& d) { return &d.mocap_quat; }, 4,
      "[nmocap, 4] orientations of the mocap bodies (w x y z), set by the user; normalized where they are "
      "used.");
  c.def_prop_ro("sensordata", &sensor_numbers, nb::sig("def sensordata(self) -> numpy.ndarray"),
                "[nsensordata] present readings of the model's sensors; see tarsus.sensors(). Computed at each "
                "access.");
  c.def_prop_ro("sensors", &named_sensors, nb::sig("def sensors(self) -> dict[str, numpy.ndarray]"),
                "The sensor readings by name; those of a batch are [packs][n][width].");
  bind_array(
      c, "joint_force", [](auto& d) { return std::pair(&d.joint_force, d.nv()); },
      "[nv] Q of maba(), written by step() [N m | N].");
  bind_array(
      c, "joint_inertia", [](auto& d) { return std::pair(&d.joint_inertia, d.nv()); },
      "[nv] K of maba(), written by step(); initially the armature [kg m² | kg].");
  const auto time = [](AnyData& any) { return any.visit([](auto& d) { return d.time; }); };
  const auto set_time = [](AnyData& any, double t) {
    if (!std::isfinite(t)) throw ValueError("time", number_text(t), "finite [s]");
    any.alone([&](auto& d) { d.time = t; });
  };
  c.def_prop_rw("time", time, set_time, "Simulated time [s], the same for all worlds.");
  c.def_prop_ro(
      "model", [](AnyData& any) { return nb::borrow(any.model_object()); }, nb::sig("def model(self) -> Model"),
      "The model of this data.");
  c.def_prop_ro(
      "dtype",
      [](AnyData& any) { return nb::module_::import_("numpy").attr("dtype")(any.is_float() ? "float32" : "float64"); },
      nb::sig("def dtype(self) -> numpy.dtype"), "Scalar type of all arrays.");
  c.def_prop_ro(
      "worlds", [](AnyData& any) { return any.visit([](auto& d) { return d.worlds(); }); },
      "Number of worlds in the batch.");
  c.def_prop_ro(
      "width", [](AnyData& any) { return any.visit([](auto& d) { return d.width(); }); },
      "Number of worlds computed at a time; 1 for a single world.");
  c.def_prop_ro(
      "packs", [](AnyData& any) { return any.visit([](auto& d) { return d.packs(); }); },
      "Number of packs of `width` worlds.");
  c.def("reset", &reset, "keyframe"_a = nb::none(),
        nb::sig("def reset(self, keyframe: str | int | None = None) -> None"),
        "Sets all worlds to a keyframe of the model, by name or index: qpos, qvel, act, ctrl, mocap bodies "
        "and time. None: qpos0, at rest.\n"
        "tau and qacc become zero, and sensors no longer report earlier contacts. Raises ValueError, which "
        "lists the names.");
  c.def(
      "copy", [](const AnyData& any) { return AnyData(any); }, "An independent copy, of the same model.");
  c.def("__copy__", [](const AnyData& any) { return AnyData(any); });
  c.def(
      "__deepcopy__", [](const AnyData& any, nb::handle) { return AnyData(any); }, "memo"_a,
      nb::sig("def __deepcopy__(self, memo: dict) -> Data"));
  c.def("apply_force", &apply_force, "body"_a, "force"_a, "point"_a = nb::none(),
        nb::sig("def apply_force(self, body: int | str, force: numpy.ndarray, point: numpy.ndarray | None = None) -> "
                "None"),
        "tau += Jᵀ force at the present qpos: force [3] acts on a body at its point [3] (None: its centre of "
        "mass), float64, world axes.\n"
        "It acts until tau is set again. Single world only.");
  c.def("get", &get, "array"_a, "world"_a, nb::sig("def get(self, array: numpy.ndarray, world: int) -> numpy.ndarray"),
        "Copies one world's numbers out of an array that has this Data's layout.");
  c.def("set", &set, "array"_a, "world"_a, "values"_a,
        nb::sig("def set(self, array: numpy.ndarray, world: int, values: numpy.ndarray) -> None"),
        "Copies one world's numbers into an array that has this Data's layout.");
  c.def("zeros", &zeros, "n"_a, nb::sig("def zeros(self, n: int) -> numpy.ndarray"),
        "A new zero array of n numbers per world, in the layout that algorithms with this Data require.");
  c.def("__repr__", [](AnyData& any) {
    return any.visit([&]<class R>(BasicData<R>& d) {
      return "<tarsus.Data of '" + any.model().name + "' worlds=" + std::to_string(d.worlds()) + " " + kScalarName<R> +
             ">";
    });
  });
}

}  // namespace tarsus::python
