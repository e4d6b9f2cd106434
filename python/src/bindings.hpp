// Declarations that the parts of the extension module share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <exception>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "array.hpp"
#include "tarsus/base/check_index.hpp"
#include "tarsus/dynamics/dynamics.hpp"
#include "tarsus/geometry/shape.hpp"
#include "tarsus/io/read_options.hpp"
#include "tarsus/model/data.hpp"
#include "tarsus/sim/sensor.hpp"

namespace tarsus::python {

void bind_errors(nb::module_& m);
void bind_model(nb::module_& m);
void bind_data(nb::module_& m);
void bind_dynamics(nb::module_& m);
void bind_measure(nb::module_& m);
void bind_control(nb::module_& m);
void bind_equalities(nb::module_& m);
void bind_constraint(nb::module_& m);
void bind_sim(nb::module_& m);
void bind_batch(nb::module_& m);
void bind_particles(nb::module_& m);
void bind_geometry(nb::module_& m);
void bind_rigid(nb::module_& m);
void bind_view(nb::module_& m);
void bind_learn(nb::module_& m);

/// Loads a file, or a built-in scene of free bodies if there is no such file.
/// @throws InputError; ValueError for reading options given with a scene
Model load_model(const std::filesystem::path& path, const ReadOptions& options);

/// An argument of N numbers: a tuple, a list or an array. It is converted when it is used: where nanobind converts an
/// argument and fails, its message does not say how many numbers are expected.
template <std::size_t N>
struct Numbers {
  nb::object given;

  /// @throws ShapeError, nb::type_error naming the argument
  std::array<double, N> of(const char* argument) const {
    std::array<double, N> values;
    if (nb::try_cast(given, values)) return values;
    const bool text = nb::isinstance<nb::str>(given);
    if (const Py_ssize_t size = text ? -1 : PyObject_Size(given.ptr()); size >= 0)
      check_size(argument, std::size_t(size), N);
    PyErr_Clear();
    throw nb::type_error(
        (std::string(argument) + ": is " + nb::repr(given).c_str() + ", expected " + std::to_string(N) + " numbers")
            .c_str());
  }
};
inline Vec3d vec(const std::array<double, 3>& a) { return {a[0], a[1], a[2]}; }
inline Vec3d vec(const char* argument, const Numbers<3>& numbers) { return vec(numbers.of(argument)); }

/// The C++ object of an argument that is kept as a Python object. @throws nb::type_error for another type
template <class T>
T& expect(nb::handle object, const char* name) {
  T* held = nullptr;
  if (nb::try_cast<T*>(object, held) && held) return *held;
  throw nb::type_error((std::string(name) + ": is " +
                        (object.is_none() ? "None" : "of type " + nb::cast<std::string>(nb::type_name(object.type()))) +
                        ", expected a " + nb::cast<std::string>(nb::type_name(nb::type<std::remove_cv_t<T>>())))
                           .c_str());
}

/// The same for a built-in Python type, such as nb::dict.
template <class T>
T expect_python(nb::handle object, const char* name, const char* type) {
  if (nb::isinstance<T>(object)) return nb::borrow<T>(object);
  throw nb::type_error((std::string(name) + ": is of type " + nb::cast<std::string>(nb::type_name(object.type())) +
                        ", expected a " + type)
                           .c_str());
}

/// Makes copy and deepcopy return the object itself, for immutable classes. (Gymnasium copies its arguments.)
template <class Class>
void copies_are_itself(Class& c) {
  c.def(
      "__copy__", [](nb::handle self) { return nb::borrow(self); }, nb::sig("def __copy__(self) -> typing.Self"));
  c.def(
      "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); }, nb::arg("memo"),
      nb::sig("def __deepcopy__(self, memo: dict) -> typing.Self"));
}

/// Calls make(), which allocates `worlds` worlds. @throws ValueError if they do not fit into memory
template <class F>
void fitting_into_memory(int worlds, const F& make) {
  try {
    make();
  } catch (const std::exception& e) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&e) || dynamic_cast<const std::length_error*>(&e);
    if (!memory) throw;
    throw ValueError("worlds", std::to_string(worlds), "fewer: they do not fit into memory");
  }
}

/// Returns a file's name. @throws ValueError if it contains a NUL, at which system calls would cut it
inline const std::string& without_nul(const char* argument, const std::string& name) {
  if (const std::size_t end = name.find('\0'); end != name.npos)
    throw ValueError(argument, "\"" + name.substr(0, end) + "\", followed by a NUL", "a name without NUL");
  return name;
}

/// The file name in a str or an os.PathLike. @throws as without_nul(); TypeError for other types
inline std::string file_name(const char* argument, nb::handle path) {
  return without_nul(argument, nb::cast<std::string>(nb::module_::import_("os").attr("fspath")(path)));
}

/// Text as str. Names of files and what old files contain may have bytes that are not UTF-8; these are escaped.
nb::object text_of(const std::string& text);

/// Diagnostics of a reader as Python objects.
nb::list to_python(const Diagnostics& diagnostics);

/// Marks an object as in use by one thread while this object lives. Construct with Python's lock held.
/// @throws ValueError if the object is already in use
class Taken {
 public:
  Taken(bool& taken, const char* what) : taken_(taken) {
    if (taken) throw ValueError(what, "in use by another thread", "one thread at a time");
    taken_ = true;
  }
  ~Taken() { taken_ = false; }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;

 private:
  bool& taken_;
};

/// @throws ValueError unless this Data or Batch has that world
template <class Worlds>
void check_world(const Worlds& worlds, int world) {
  check_index("world", world, worlds.worlds());
}

/// What calls leave in a Data's workspace for later calls: the links' poses, and the factors of the mass matrix. All
/// algorithms use the same workspace. This is what Call needs to compute again what another call has overwritten.
template <class R>
struct Left {
  AlignedVector<R> qpos, qvel;  ///< arguments of the last kinematics(); empty: not given
  AlignedVector<R> factored;    ///< qpos of the factors; empty: there are none
  bool posed = false;           ///< whether the workspace has the poses (and velocities) of `qpos` (and `qvel`)
  bool factor_posed = false;    ///< whether it has the poses of `factored`, which minv() reads
};

/// Python's Data: a BasicData of either scalar type, and its model.
class AnyData {
 public:
  AnyData(nb::object model, int worlds, nb::handle dtype);
  AnyData(const AnyData& other);
  AnyData(AnyData&&) = default;

  const Model& model() const { return *model_; }
  nb::handle model_object() const { return owner_; }
  bool is_float() const { return data_.index() == 1; }

  template <class F>
  auto visit(F f) {
    return std::visit([&](auto& data) { return f(*data); }, data_);
  }
  /// The same. @throws ValueError while another thread uses the data
  template <class F>
  auto alone(F f) {
    const Taken taken(busy, "data");
    return visit(f);
  }
  template <class R>
  Left<R>& left() {
    return std::get<Left<R>>(left_);
  }
  /// The model's sensors with their workspace, constructed on first use.
  SensorSet& sensors() {
    if (!sensors_) sensors_ = std::make_unique<SensorSet>(*model_);
    return *sensors_;
  }
  /// The model's tendons, actuators and passive forces, constructed on first use.
  Actuation& actuation() {
    if (!actuation_) actuation_ = std::make_unique<Actuation>(*model_);
    return *actuation_;
  }
  /// Whether some sensor of the model needs `forces` of good steps.
  bool feels_contact() { return !model_->spec.sensors.empty() && sensors().feels_contact(); }
  /// Forces on each world in the last step of a Stepper, for sensors that measure contact or whose world is not ok;
  /// empty before the first step, or if all sensors do without.
  std::vector<StepForces> forces;
  const StepForces& forces_on(int world) const { return forces.empty() ? kNoForces : forces[std::size_t(world)]; }
  /// Whether a call is using the data, possibly without Python's lock.
  mutable bool busy = false;

 private:
  std::unique_ptr<SensorSet> sensors_;
  std::unique_ptr<Actuation> actuation_;
  nb::object owner_;
  const Model* model_;
  std::variant<std::unique_ptr<BasicData<double>>, std::unique_ptr<BasicData<float>>> data_;
  std::tuple<Left<double>, Left<float>> left_;
};

/// Shape of an array with `inner` numbers a world: inner itself, or (packs, inner…, width) for a batch.
template <class R>
Shape batch_shape(const BasicData<R>& data, std::initializer_list<int> inner) {
  Shape shape;
  if (data.width() > 1) shape.push_back(data.packs());
  for (int n : inner) shape.push_back(n);
  if (data.width() > 1) shape.push_back(data.width());
  return shape;
}

/// What a call overwrites in the workspace: nothing, the links' poses and velocities, or also the factors.
enum class Overwrites { nothing, poses, all };

/// One call of an algorithm: checks its arguments against the model and data.
template <class R>
class Call {
 public:
  /// @throws ValueError if the data was made for another model, or while another call uses it
  Call(const Model& model, AnyData& any, BasicData<R>& data, Overwrites overwrites = Overwrites::all)
      : model(model), data(data), taken_(any.busy, "data"), left_(any.left<R>()) {
    if (&any.model() != &model) throw ValueError("data", "made for another model", "data of this model");
    if (overwrites != Overwrites::nothing) left_.posed = left_.factor_posed = false;
    if (overwrites == Overwrites::all) left_.factored.clear();
  }

  const Model& model;
  BasicData<R>& data;

  Input<R> in(const char* argument, nb::handle object, std::initializer_list<int> inner) const {
    return Input<R>(argument, object, batch_shape(data, inner), alignment());
  }
  Input<R> optional(const char* argument, nb::handle object, std::initializer_list<int> inner) const {
    return object.is_none() ? Input<R>() : in(argument, object, inner);
  }
  Output<R> out(const char* argument, nb::handle object, std::initializer_list<int> inner) const {
    return Output<R>(argument, object, batch_shape(data, inner), alignment());
  }
  Input<R> qpos(nb::handle object) const { return in("qpos", object, {model.nq}); }
  Input<R> qvel(nb::handle object) const { return in("qvel", object, {model.nv}); }
  Input<R> external(nb::handle object) const { return optional("external", object, {model.njoint(), 6}); }

  /// Runs f. Releases Python's lock if the work takes more than about a microsecond.
  template <class F>
  void run(F f) const {
    if (data.packs() * model.njoint() < kManyLinks) return f();
    nb::gil_scoped_release release;
    f();
  }

  /// Notes that the workspace has the kinematics of these arguments.
  void leaves_kinematics(In<R> qpos, In<R> qvel) const {
    left_.qpos.assign(qpos.begin(), qpos.end()), left_.qvel.assign(qvel.begin(), qvel.end());
    left_.posed = true, left_.factor_posed = false;
  }
  /// Notes that the workspace has factors at qpos.
  void leaves_factors(In<R> qpos) const {
    left_.factored.assign(qpos.begin(), qpos.end());
    left_.factor_posed = true, left_.posed = false;
  }
  /// Makes the workspace of a single world have what the last kinematics() left.
  /// @throws ValueError for a batch, and if there was no kinematics(), or none with qvel
  void needs_kinematics(bool velocities = false) const {
    if (data.width() != 1) throw ValueError("data", "a batch", "a single world");
    if (left_.qpos.empty() && model.nq > 0)
      throw ValueError("data", "without poses", "a call of kinematics() with this data before");
    if (velocities && left_.qvel.empty() && model.nv > 0)
      throw ValueError("data", "without velocities", "a call of kinematics() with qvel");
    if (left_.posed) return;
    kinematics<R>(model, data, left_.qpos, left_.qvel);
    left_.posed = true, left_.factor_posed = false;
  }
  /// Makes the workspace have what the last aba(), maba() or factor() left. @throws ValueError if there are no factors
  void needs_factors() const {
    if (left_.factored.empty() && model.nq > 0)
      throw ValueError("data", "without factors", "a call of factor(), aba() or maba() with this data before");
    if (left_.factor_posed) return;
    kinematics<R>(model, data, left_.factored);
    left_.factor_posed = true, left_.posed = false;
  }

 private:
  static constexpr int kManyLinks = 16;
  std::size_t alignment() const { return data.width() * sizeof(R); }

  Taken taken_;
  Left<R>& left_;
};

/// Whether a dtype, in any notation of NumPy, is float32 rather than float64. @throws ValueError for other types
bool wants_float(nb::handle dtype);

/// A shape and the assets that it refers to.
struct OwnedShape {
  tarsus::Shape shape;
  std::shared_ptr<const ConvexHull> hull;
  std::shared_ptr<const HeightField> field;
};

/// State that user-defined rows share with their owner: their Python functions, which the owner holds where Python's
/// garbage collector can see them, because functions often refer back to it; and the first exception of a function,
/// which is rethrown at the end of the call in which it occurred.
struct PythonRows {
  std::vector<nb::object> functions;
  std::exception_ptr error;
  int evaluating = 0;  ///< number of functions being evaluated; the owner must not change meanwhile

  /// Lives while one of the functions is evaluated, with Python's lock held.
  class Evaluation {
   public:
    explicit Evaluation(PythonRows& rows) : rows_(rows) { ++rows_.evaluating; }
    ~Evaluation() { --rows_.evaluating; }
    Evaluation(const Evaluation&) = delete;
    Evaluation& operator=(const Evaluation&) = delete;

   private:
    PythonRows& rows_;
  };
  /// @throws ValueError when called from one of the functions
  void check_idle(const char* what) const {
    if (evaluating > 0)
      throw ValueError(what, "in use by the function of one of its constraints",
                       "a function that uses only its arguments");
  }

  /// Stores the function and returns f(its index). Removes the function again if f throws.
  template <class F>
  auto add(nb::object function, F f) {
    functions.push_back(std::move(function));
    try {
      return f(functions.size() - 1);
    } catch (...) {
      functions.pop_back();
      throw;
    }
  }
  void keep_error() {
    if (!error) error = std::current_exception();
  }
  void rethrow() {
    if (error) std::rethrow_exception(std::exchange(error, nullptr));
  }
};

/// Type slots with which Python's garbage collector finds cycles such as owner -> function -> globals -> owner. Owner
/// holds the functions in `rows`. The collector also visits objects that do not contain an Owner yet: __new__ has made
/// them, but __init__ has not run, is running, or has failed.
template <class Owner>
struct FunctionSlots {
  static int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (const nb::object& f : nb::inst_ptr<Owner>(self)->rows->functions) Py_VISIT(f.ptr());
    return 0;
  }
  /// Removes all functions from the object before any of them is destroyed, which may run any Python code.
  static int clear(PyObject* self) {
    std::vector<nb::object> dying;
    if (nb::inst_ready(self)) dying.swap(nb::inst_ptr<Owner>(self)->rows->functions);
    return 0;
  }
  static inline PyType_Slot slots[] = {
      {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};
};

/// Sensor readings of a Data, [nsensordata] for each world.
nb::object sensor_numbers(AnyData& any);
/// Place of each sensor's readings in sensor_numbers(), by name.
nb::dict sensor_places(AnyData& any);

/// A keyframe by index or by name. @throws ValueError, nb::type_error
const KeyframeSpec& keyframe_of(const Model& model, nb::handle which);

/// A body by index or by name. @throws ValueError, nb::type_error
int body_index(const Model& model, nb::handle body, const char* argument = "body");
/// A joint likewise.
int joint_index(const Model& model, nb::handle joint);
/// An argument of bodies by index or by name, converted when it is used.
struct Bodies {
  nb::object given;
  std::vector<int> of(const char* argument, const Model& model) const;
};

inline nb::object to_numpy(const Vec3d& v) { return new_array(std::array{v.x, v.y, v.z}, {3}); }
inline nb::object to_numpy(const Mat3d& m) {
  return new_array(std::array{m.xx, m.xy, m.xz, m.yx, m.yy, m.yz, m.zx, m.zy, m.zz}, {3, 3});
}

}  // namespace tarsus::python

namespace nanobind::detail {
template <std::size_t N>
struct type_caster<tarsus::python::Numbers<N>> {
  NB_TYPE_CASTER(tarsus::python::Numbers<N>, const_name("collections.abc.Sequence[float]"))
  bool from_python(handle src, std::uint8_t, cleanup_list*) noexcept { return value.given = borrow(src), true; }
};
template <>
struct type_caster<tarsus::python::Bodies> {
  NB_TYPE_CASTER(tarsus::python::Bodies, const_name("collections.abc.Sequence[str | int]"))
  bool from_python(handle src, std::uint8_t, cleanup_list*) noexcept { return value.given = borrow(src), true; }
};
}  // namespace nanobind::detail
