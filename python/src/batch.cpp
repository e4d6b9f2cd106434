// Batch: tarsus/sim/batch.hpp.
#include "tarsus/sim/batch.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>

#include "step_arguments.hpp"
#include "tarsus/base/hash.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/io/mjcf_writer.hpp"
#include "tarsus/io/npz.hpp"
#include "tarsus/sim/capture.hpp"
#include "world_parameters.hpp"

namespace tarsus::python {

using namespace nb::literals;
using nb::handle;

namespace {

constexpr const char* kFaultArrays[] = {"",          "qpos",       "qvel",        "tau",         "ctrl", "act",
                                        "mocap_pos", "mocap_quat", "qpos_target", "qvel_target", "qacc"};

std::size_t size(int n) { return std::size_t(n); }

/// Python's Batch: a Batch of either scalar type, and the model, which it keeps alive.
class AnyBatch {
 public:
  AnyBatch(nb::object model, int worlds, BatchOptions options, StepperArguments arguments, bool single)
      : owner_(std::move(model)), model_(&expect<const Model>(owner_, "model")), arguments_(std::move(arguments)) {
    fitting_into_memory(worlds, [&] {
      if (single)
        batch_ = std::make_unique<Batch<float>>(*model_, worlds, options);
      else
        batch_ = std::make_unique<Batch<double>>(*model_, worlds, options);
    });
  }
  AnyBatch(const AnyBatch& other)
      : owner_(other.owner_), model_(other.model_), model_hash_(other.model_hash_), arguments_(other.arguments_) {
    std::visit([&]<class B>(const std::unique_ptr<B>& b) { batch_ = std::make_unique<B>(*b); }, other.batch_);
  }
  AnyBatch(AnyBatch&&) = default;

  const Model& model() const { return *model_; }
  handle model_object() const { return owner_; }
  const StepperArguments& arguments() const { return arguments_; }
  std::uint64_t model_hash() {
    if (!model_hash_) model_hash_ = tarsus::model_hash(model_->spec);
    return *model_hash_;
  }
  bool is_float() const { return batch_.index() == 1; }
  template <class F>
  auto visit(F f) {
    return std::visit([&](auto& batch) { return f(*batch); }, batch_);
  }
  /// f(batch) without Python's lock. @throws ValueError while another thread uses the batch
  template <class F>
  auto run(F f) {
    const Taken taken(busy_, "batch");
    return visit([&](auto& batch) {
      const nb::gil_scoped_release release;
      return f(batch);
    });
  }
  /// f(batch) with Python's lock held. @throws ValueError while another thread uses the batch
  template <class F>
  auto alone(F f) {
    const Taken taken(busy_, "batch");
    return visit(f);
  }

 private:
  nb::object owner_;
  const Model* model_;
  std::optional<std::uint64_t> model_hash_;  // computed on first use
  StepperArguments arguments_;
  bool busy_ = false;
  std::variant<std::unique_ptr<Batch<double>>, std::unique_ptr<Batch<float>>> batch_;
};

template <class Member>
void bind_array(nb::class_<AnyBatch>& c, const char* name, Member member, const char* doc) {
  c.def_prop_rw(
      name,
      [member](handle self) {
        return nb::cast<AnyBatch&>(self).visit([&]<class R>(Batch<R>& b) {
          const auto [values, n] = member(b);
          return view_array(values.data(), {size(b.worlds()), size(n)}, self);
        });
      },
      [member, name](AnyBatch& any, handle value) {
        any.alone([&]<class R>(Batch<R>& b) {
          const auto [values, n] = member(b);
          assign<R>(name, value, {size(b.worlds()), size(n)}, values.data());
        });
      },
      nb::for_getter(nb::sig(("def " + std::string(name) + "(self) -> numpy.ndarray").c_str())),
      nb::for_setter(
          nb::sig(("def " + std::string(name) + "(self, value: numpy.typing.ArrayLike, /) -> None").c_str())),
      doc);
}

/// Poses of mocap bodies: [worlds, nmocap, numbers].
template <class Member>
void bind_mocap(nb::class_<AnyBatch>& c, const char* name, Member member, int numbers, const char* doc) {
  const auto shape = [numbers](auto& b) { return Shape{size(b.worlds()), size(b.model().nmocap()), size(numbers)}; };
  c.def_prop_rw(
      name,
      [member, shape](handle self) {
        return nb::cast<AnyBatch&>(self).visit([&](auto& b) { return view_array(member(b).data(), shape(b), self); });
      },
      [member, shape, name](AnyBatch& any, handle value) {
        any.alone([&]<class R>(Batch<R>& b) { assign<R>(name, value, shape(b), member(b).data()); });
      },
      nb::for_getter(nb::sig(("def " + std::string(name) + "(self) -> numpy.ndarray").c_str())),
      nb::for_setter(
          nb::sig(("def " + std::string(name) + "(self, value: numpy.typing.ArrayLike, /) -> None").c_str())),
      doc);
}

/// Reads None, [n] for all worlds, or [worlds, n] with one row for each world.
template <class R>
Input<R> all_or_each(const char* argument, handle object, int worlds, int n) {
  if (object.is_none()) return {};
  if (shape_of(argument, object).size() == 1) return Input<R>(argument, object, {size(n)}, 1);
  return Input<R>(argument, object, {size(worlds), size(n)}, 1);
}

void reset(AnyBatch& any, handle mask, handle qpos, handle qvel, handle keyframe) {
  const KeyframeSpec* key = keyframe.is_none() ? nullptr : &keyframe_of(any.model(), keyframe);
  if (key && !(qpos.is_none() && qvel.is_none()))
    throw ValueError(qpos.is_none() ? "qvel" : "qpos", "given", "None together with a keyframe");
  any.alone([&]<class R>(Batch<R>& b) {
    if (key) return b.reset_to(*key, mask_of(mask, b.worlds()));
    const Input<R> q = all_or_each<R>("qpos", qpos, b.worlds(), any.model().nq),
                   v = all_or_each<R>("qvel", qvel, b.worlds(), any.model().nv);
    b.reset(mask_of(mask, b.worlds()), q, v);
  });
}

void apply_force(AnyBatch& any, handle body, handle force, handle point, handle mask) {
  const int index = body_index(any.model(), body);
  any.alone([&]<class R>(Batch<R>& b) {
    if (force.is_none()) throw ValueError("force", "None", "[3] or [worlds, 3] newtons");
    const Input<R> f = all_or_each<R>("force", force, b.worlds(), 3), p = all_or_each<R>("point", point, b.worlds(), 3);
    b.apply_force(index, f, p, mask_of(mask, b.worlds()));
  });
}

/// Memory for an output: the caller's array, a new array, or none.
template <class R>
std::optional<Output<R>> output(const char* argument, handle object, const Shape& shape, bool by_default) {
  const bool flag = PyBool_Check(object.ptr());
  if (object.is_none() ? !by_default : flag && !nb::cast<bool>(object)) return {};
  return std::optional<Output<R>>(std::in_place, argument, flag ? nb::none() : nb::borrow(object), shape, 1);
}

/// Runs a rollout in parts of about 0.25 s, each without Python's lock. Ctrl-C ends it between parts, with all worlds
/// at the same step. A part has enough steps for the cost of reloading the worlds into the cache to be small.
template <class R>
void interruptible_rollout(Batch<R>& b, const Rollout<R>& all) {
  constexpr double kSeconds = 0.25, kGrowth = 8, kFewest = 32;
  using Clock = std::chrono::steady_clock;
  int done = 0, steps = int(kFewest);
  do {
    steps = std::min(steps, all.steps - done);
    const auto part = [&](auto array) {
      const std::size_t each = array.size() / size(std::max(all.steps, 1));
      return array.subspan(each * size(done), each * size(steps));
    };
    const Clock::time_point start = Clock::now();
    {
      const nb::gil_scoped_release release;
      b.rollout(
          {steps, part(all.ctrl), part(all.qpos_target), part(all.qvel_target), part(all.states), part(all.sensors)});
    }
    done += steps;
    if (done < all.steps && PyErr_CheckSignals() != 0) throw nb::python_error();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    steps = int(std::clamp(steps * std::min(kGrowth, kSeconds / seconds), kFewest, 1e9));
  } while (done < all.steps);
}

nb::tuple rollout(AnyBatch& any, std::optional<int> steps, handle ctrl, handle qpos_target, handle qvel_target,
                  handle states, handle sensors) {
  return any.alone([&]<class R>(Batch<R>& b) {
    const Model& model = any.model();
    std::size_t count = size(steps.value_or(1));
    if (steps.value_or(1) < 0) throw ValueError("steps", std::to_string(*steps), "not negative");
    for (const auto& [name, given] :
         {std::pair("ctrl", ctrl), {"qpos_target", qpos_target}, {"qvel_target", qvel_target}}) {
      if (given.is_none()) continue;
      const Shape shape = shape_of(name, given);
      if (!steps && !shape.empty()) count = shape[0], steps = int(count);
    }
    const auto in = [&](const char* name, handle given, int n) {
      return given.is_none() ? Input<R>() : Input<R>(name, given, {count, size(b.worlds()), size(n)}, 1);
    };
    const Input<R> u = in("ctrl", ctrl, model.nu), q = in("qpos_target", qpos_target, model.nq),
                   v = in("qvel_target", qvel_target, model.nv);
    std::optional<Output<R>> out, read;
    try {
      out = output<R>("states", states, {count, size(b.worlds()), size(model.nq + model.nv)}, true);
      read = output<R>("sensors", sensors, {count, size(b.worlds()), size(b.sensor_numbers())}, false);
    } catch (const std::bad_alloc&) {
      throw ValueError("steps", std::to_string(count), "fewer: the results do not fit into memory");
    }
    for (const Input<R>* input : {&u, &q, &v}) {
      if (out) out->keep_apart(*input);
      if (read) read->keep_apart(*input);
    }
    if (out && read) read->keep_apart(*out);
    Rollout<R> all{int(count), u, q, v};
    if (out) all.states = *out;
    if (read) all.sensors = *read;
    interruptible_rollout(b, all);
    return nb::make_tuple(out ? out->take() : nb::none(), read ? read->take() : nb::none());
  });
}

nb::object measure(AnyBatch& any, handle what) {
  constexpr const char* kExpected = "position, orientation, velocity, energy or com";
  std::vector<std::string> names;
  if (!what.is_none() && !nb::try_cast(what, names))
    throw nb::type_error((std::string("what: is of type ") + nb::type_name(what.type()).c_str() +
                          ", expected a list of names: " + kExpected)
                             .c_str());
  nb::dict out;
  any.alone([&]<class R>(Batch<R>& b) {
    const std::size_t worlds = size(b.worlds()), nbody = size(any.model().nbody());
    BatchMeasure<R> m;
    const auto want = [&](const char* name, std::span<R>& target, const Shape& shape) {
      if (!what.is_none() && std::find(names.begin(), names.end(), name) == names.end()) return;
      Output<R> array(name, nb::none(), shape, 1);
      target = array;
      out[name] = array.take();
    };
    want("position", m.position, {worlds, nbody, 3}), want("orientation", m.orientation, {worlds, nbody, 4});
    want("velocity", m.velocity, {worlds, nbody, 6}), want("energy", m.energy, {worlds, 3});
    want("com", m.com, {worlds, 6});
    for (const std::string& name : names) {
      if (!out.contains(name.c_str())) throw ValueError("what", "\"" + name + "\"", kExpected);
    }
    const nb::gil_scoped_release release;
    b.measure(m);
  });
  return out;
}

nb::object body_jacobian(AnyBatch& any, handle body, handle point, handle out) {
  const int index = body_index(any.model(), body);
  return any.alone([&]<class R>(Batch<R>& b) {
    const Input<R> p = all_or_each<R>("point", point, b.worlds(), 3);
    Output<R> to("out", out, {size(b.worlds()), 6, size(any.model().nv)}, 1);
    to.keep_apart(p);
    {
      const nb::gil_scoped_release release;
      b.jacobian(index, p, to);
    }
    return to.take();
  });
}

nb::dict reports(AnyBatch& any) {
  return any.alone([&]<class R>(Batch<R>& b) {
    nb::dict out;
    const auto add = [&]<class E>(const char* name, E WorldReport::*member) {
      AlignedVector<E> values;
      for (const WorldReport& r : b.reports()) values.push_back(r.*member);
      out[name] = own_array(std::move(values), {size(b.worlds())});
    };
    add("residual", &WorldReport::residual), add("penetration", &WorldReport::penetration);
    add("iterations", &WorldReport::iterations), add("contacts", &WorldReport::contacts);
    add("touching", &WorldReport::touching), add("limits", &WorldReport::limits);
    add("saturated", &WorldReport::saturated), add("unsolved", &WorldReport::unsolved);
    add("inconsistent", &WorldReport::inconsistent), add("loop_error", &WorldReport::loop_error);
    return out;
  });
}

nb::list contact_list(AnyBatch& any, int world) {
  return any.alone([&]<class R>(Batch<R>& b) {
    check_world(b, world);
    nb::list list;
    for (const LinkContact& c : b.contacts(world))
      list.append(contact_dict(b.model(), b.contact_shapes(), c, c.point.distance));
    return list;
  });
}

template <class E>
nb::bytes bytes_of(std::span<const E> values) {
  return nb::bytes(values.data(), values.size_bytes());
}

std::uint64_t hash_of(const Drives& drives) {
  std::uint64_t hash = kHashStart;
  for (const auto* gains : {&drives.kp, &drives.kd, &drives.force_limit, &drives.force_floor})
    hash = fnv1a<double>(*gains, hash);
  return fnv1a<double>(std::array{double(drives.plain), drives.spin_damping}, hash);
}

/// Everything besides the state that the worlds' next steps depend on, by name; a hash in place of each object.
template <class R>
nb::dict settings_of(AnyBatch& any, const Batch<R>& b) {
  nb::dict out;
  const StepperArguments& a = any.arguments();
  out["model"] = any.model_hash(), out["dt"] = b.options().step.dt, out["integrator"] = a.integrator;
  out["contacts"] = b.options().step.rows.contacts, out["joint_limits"] = b.options().step.rows.joints;
  out["restitution"] = a.restitution;
  out["speed_limit"] = a.speed_limit, out["tolerance"] = a.tolerance, out["max_iterations"] = a.max_iterations;
  out["loops"] = a.loops, out["velocity_products"] = a.velocity_products, out["actuation"] = a.actuation;
  out["drives"] = b.options().drives ? nb::object(nb::int_(hash_of(*b.options().drives))) : nb::none();
  out["width"] = b.pack_width();  // the number of SIMD lanes depends on the instruction set
  return out;
}

/// The state as plain arrays and bytes, which pickle and every file format can store.
nb::dict save(AnyBatch& any) {
  return any.alone([&]<class R>(Batch<R>& b) {
    const BatchState<R>& s = b.save();
    nb::dict out;
    const auto add = [&](const char* name, const auto& values) {
      out[name] = new_array(values, {size(b.worlds()), values.size() / size(b.worlds())});
    };
    add("qpos", s.qpos), add("qvel", s.qvel), add("qacc", s.qacc), add("tau", s.tau), add("ctrl", s.ctrl);
    add("act", s.act), add("qpos_target", s.qpos_target), add("qvel_target", s.qvel_target);
    add("mocap_pos", s.mocap_pos), add("mocap_quat", s.mocap_quat);
    add("ground_force", s.ground_force);
    out["steps"] = new_array(s.steps, {s.steps.size()});
    nb::dict faults;
    for (int w = 0; w < b.worlds(); ++w) {
      const WorldFault& f = b.fault(w);
      if (f.status != WorldStatus::ok)
        faults[nb::int_(w)] = nb::make_tuple(int(f.status), nb::str(f.array), f.index, f.value);
    }
    out["faults"] = faults;
    out["reports"] = bytes_of<WorldReport>(s.reports);
    out["memory"] = bytes_of<std::uint8_t>(to_bytes<R>(s.memory));
    out["parameters"] = parameters_of(b);
    out["settings"] = settings_of(any, b), out["version"] = kBytesVersion;
    return out;
  });
}

/// The numbers of coordinates, velocities and controls of a saved state's worlds, as text; empty for other objects.
std::string sizes_of(const nb::dict& saved) {
  std::string out;
  for (const auto& [array, name] : {std::pair("qpos", "nq"), {"qvel", "nv"}, {"ctrl", "nu"}}) {
    const nb::object shape = nb::getattr(saved.attr("get")(array, nb::none()), "shape", nb::none());
    std::tuple<long long, long long> sizes;
    if (!nb::try_cast(shape, sizes)) return "";
    out += (out.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(std::get<1>(sizes));
  }
  return out;
}

/// Says how a setting of a saved state differs from the batch's.
ValueError other_setting(const nb::dict& saved, const Model& model, const std::string& key, handle theirs,
                         handle mine) {
  const auto differ = [&](const std::string& other, const std::string& own) {
    return ValueError("state", "saved with " + key + " " + other, key + " " + own);
  };
  if (key == "model") {
    const std::string sizes =
        "of nq " + std::to_string(model.nq) + ", nv " + std::to_string(model.nv) + ", nu " + std::to_string(model.nu);
    const std::string other = sizes_of(saved).empty() ? sizes : "of " + sizes_of(saved);
    if (other != sizes) return differ(other, sizes);
    return differ("of the same sizes, but of other parts or numbers", "\"" + model.name + "\" of this batch");
  }
  const auto hides = [&](handle value) { return key == "drives" && !value.is_none(); };  // it is a hash
  if (hides(theirs) && hides(mine)) return differ("of other gains or limits", "of this batch");
  const auto word = [&](handle value) { return std::string(hides(value) ? "given" : nb::repr(value).c_str()); };
  return differ(word(theirs), word(mine));
}

void restore(AnyBatch& any, const nb::dict& saved) {
  any.alone([&]<class R>(Batch<R>& b) {
    BatchState<R> s = b.save();
    nb::dict unread = nb::cast<nb::dict>(saved.attr("copy")());
    const auto item = [&](const char* name) {
      unread.attr("pop")(name, nb::none());
      if (!saved.contains(name))
        throw ValueError("state", std::string("without \"") + name + "\"", "a value returned by save()");
      return nb::object(saved[name]);
    };
    const auto refuse_rest = [](const nb::dict& rest) {
      for (const auto& [key, value] : rest)
        throw ValueError("state", std::string("with ") + nb::repr(key).c_str(), "a value returned by save()");
    };
    if (saved.contains("settings") &&
        !nb::object(saved.attr("get")("version", nb::none())).equal(nb::int_(kBytesVersion)))
      throw ValueError("state", "saved by another version of tarsus", "a value returned by save() of this version");
    item("version");
    const nb::dict theirs =
        nb::cast<nb::dict>(expect_python<nb::dict>(item("settings"), "settings", "dict").attr("copy")());
    for (const auto& [key, mine] : settings_of(any, b)) {
      const nb::object other = theirs.attr("pop")(key, nb::none());
      if (!other.equal(mine)) throw other_setting(saved, b.model(), nb::str(key).c_str(), other, mine);
    }
    refuse_rest(theirs);
    const auto read = [&](const char* name, AlignedVector<R>& to) {
      const nb::object from = item(name);
      const Input<R> in(name, from, {size(b.worlds()), to.size() / size(b.worlds())}, 1);
      std::copy(in.span().begin(), in.span().end(), to.begin());
    };
    read("qpos", s.qpos), read("qvel", s.qvel), read("qacc", s.qacc), read("tau", s.tau), read("ctrl", s.ctrl);
    read("act", s.act), read("qpos_target", s.qpos_target), read("qvel_target", s.qvel_target);
    read("mocap_pos", s.mocap_pos), read("mocap_quat", s.mocap_quat);
    read("ground_force", s.ground_force);
    const nb::object steps = item("steps");
    const auto* counts = static_cast<const std::int64_t*>(checked_array("steps", steps, 'l', {s.steps.size()}, false));
    std::copy_n(counts, s.steps.size(), s.steps.begin());
    std::fill(s.faults.begin(), s.faults.end(), WorldFault{});
    for (const auto& [world, fault] : expect_python<nb::dict>(item("faults"), "faults", "dict")) {
      int w = -1;
      std::tuple<int, std::string, int, double> numbers;
      if (!nb::try_cast(world, w) || !nb::try_cast(fault, numbers))
        throw ValueError("faults", nb::repr(fault).c_str(), "a value returned by save()");
      check_world(b, w);
      const auto& [status, array, index, value] = numbers;
      const auto known = std::find(std::begin(kFaultArrays), std::end(kFaultArrays), array);
      if (status < 0 || status > int(WorldStatus::open_loop) || known == std::end(kFaultArrays))
        throw ValueError("faults", std::to_string(status) + " " + array, "a value returned by save()");
      s.faults[size(w)] = {WorldStatus(status), *known, index, value};
    }
    const nb::bytes reports = expect_python<nb::bytes>(item("reports"), "reports", "bytes"),
                    memory = expect_python<nb::bytes>(item("memory"), "memory", "bytes");
    check_size("reports", reports.size(), s.reports.size() * sizeof(WorldReport));
    std::memcpy(s.reports.data(), reports.data(), reports.size());
    from_bytes<R>({static_cast<const std::uint8_t*>(memory.data()), memory.size()}, s.memory);
    s.parameters = {};
    for (const auto& [key, values] : expect_python<nb::dict>(item("parameters"), "parameters", "dict")) {
      const WorldParameter which = parameter_named(nb::str(key).c_str());
      const Input<double> in(name(which), values, shape_of_all(b, which), 1);
      s.parameters[which].assign(in.span().begin(), in.span().end());
      check_numbers(b.model(), which, s.parameters[which]);
    }
    refuse_rest(unread);
    b.restore(s);
  });
}

/// Writes a world for tarsus replay. @return whether a step from the file gives the same result as this world's step
bool capture(AnyBatch& any, int world, handle path) {
  const std::string file = file_name("file", path);
  return any.alone([&]<class R>(Batch<R>& b) {
    check_world(b, world);
    const WorldCapture c = b.capture(world);
    const CaptureArrays arrays = to_arrays(b.model(), c);
    NpzWriter npz(file);
    npz.add_text("meta", arrays.meta);
    for (const auto& [name, values] : arrays.arrays) npz.add<double>(name, values, {values.size()});
    npz.add<std::uint8_t>("memory", arrays.memory, {arrays.memory.size()});
    npz.add<std::uint64_t>("model_hash", std::array{any.model_hash()}, {1});
    npz.finish();
    return same_fault(c.fault, step_again(b.model(), c));
  });
}

nb::object status_codes(AnyBatch& any) {
  return any.alone([&]<class R>(Batch<R>& b) {
    AlignedVector<std::uint8_t> codes(size(b.worlds()));
    for (int w = 0; w < b.worlds(); ++w) codes[size(w)] = std::uint8_t(b.status(w));
    return own_array(std::move(codes), {size(b.worlds())});
  });
}

const char* const kBatchDoc =
    "Many worlds of one model, stepped together by a fixed team of threads.\n"
    "\n"
    "Arrays are views [worlds, n] of the batch's memory. NumPy reads them without a copy, other "
    "libraries through DLPack\n"
    "(torch.from_dlpack(batch.qpos)). The next step starts from what you write to them. A world's "
    "results do not depend on the\n"
    "number of threads, on its index or on the other worlds, to the bit. A world whose step fails "
    "freezes at its last good state.\n"
    "Several Python threads may step several batches at once; only one thread at a time may use a batch.";

/// @throws ValueError where the inputs named would have no effect, as a rollout() with them does
template <class R>
void check_targets(const char* name, const Batch<R>& b) {
  if (!b.options().drives)
    throw ValueError(name, "of a batch without drives", "Batch(drives=...); ctrl moves the model's own actuators");
}
template <class R>
void check_ctrl(const Batch<R>& b) {
  if (b.options().drives && b.model().nu > 0)
    throw ValueError("ctrl", "of a batch with drives, which replace the actuators of the model", "qpos_target");
}

template <class F>
void bind_arrays(nb::class_<AnyBatch>& c, const F& array) {
  array(
      c, "qpos", [](auto& b) { return std::pair(b.qpos(), b.model().nq); },
      "[worlds, nq] generalized positions, MuJoCo's layout [m | rad | quaternion w x y z].");
  array(
      c, "qvel", [](auto& b) { return std::pair(b.qvel(), b.model().nv); },
      "[worlds, nv] generalized velocities [m/s | rad/s].");
  array(
      c, "tau", [](auto& b) { return std::pair(b.tau(), b.model().nv); },
      "[worlds, nv] applied joint forces, set by the user [N m | N].");
  array(
      c, "ctrl", [](auto& b) { return check_ctrl(b), std::pair(b.ctrl(), b.model().nu); },
      "[worlds, nu] controls of the model's actuators. A batch with drives raises: they replace the actuators.");
  array(
      c, "act", [](auto& b) { return std::pair(b.act(), b.model().na); },
      "[worlds, na] activations of the actuators, written by step().");
  array(
      c, "qpos_target",
      [](auto& b) { return check_targets("qpos_target", b), std::pair(b.qpos_target(), b.model().nq); },
      "[worlds, nq] target positions of the drives at the end of the step. A batch without drives raises.");
  array(
      c, "qvel_target",
      [](auto& b) { return check_targets("qvel_target", b), std::pair(b.qvel_target(), b.model().nv); },
      "[worlds, nv] target velocities of the drives. A batch without drives raises.");
}

/// Binds a read-only view [worlds, inner…].
template <class Member>
void bind_result(nb::class_<AnyBatch>& c, const char* name, Member member, const char* doc) {
  c.def_prop_ro(
      name,
      [member](handle self) {
        return nb::cast<AnyBatch&>(self).visit([&]<class R>(Batch<R>& b) {
          auto [values, shape] = member(b);
          shape.insert(shape.begin(), size(b.worlds()));
          return view_array(const_cast<R*>(values.data()), shape, self);
        });
      },
      nb::sig(("def " + std::string(name) + "(self) -> numpy.ndarray").c_str()), doc);
}

void bind_methods(nb::class_<AnyBatch>& c) {
  c.def(
      "step", [](AnyBatch& any) { return any.run([](auto& b) { return b.step(); }); },
      "Advances all worlds with status ok by one step. Returns the number of worlds whose status is not ok.");
  c.def("rollout", &rollout, "steps"_a = nb::none(), nb::kw_only(), "ctrl"_a = nb::none(), "qpos_target"_a = nb::none(),
        "qvel_target"_a = nb::none(), "states"_a = nb::none(), "sensors"_a = nb::none(),
        nb::sig("def rollout(self, steps: int | None = None, *, ctrl: numpy.ndarray | None = None, qpos_target: "
                "numpy.ndarray | None = None, qvel_target: numpy.ndarray | None = None, states: numpy.ndarray | bool | "
                "None = None, sensors: numpy.ndarray | bool | None = None) -> tuple[numpy.ndarray | None, "
                "numpy.ndarray | None]"),
        "Makes many steps without Python's lock. Returns (states [steps, worlds, nq + nv], sensors [steps, "
        "worlds, nsensordata])\n"
        "after each step.\n"
        "\n"
        "ctrl [steps, worlds, nu], qpos_target [steps, worlds, nq] and qvel_target [steps, worlds, nv] are "
        "the inputs of each step.\n"
        "An input that is not given keeps the batch's values. Targets need a batch with drives, ctrl one "
        "without. states and sensors\n"
        "take an array to write to, True (a new array) or False (none); None means states and no sensors. "
        "steps None is the length of\n"
        "the inputs, or 1 without inputs. Ctrl-C ends the rollout within about a quarter of a second, or 32 "
        "steps, with all worlds\n"
        "at the same step.");
  c.def("reset", &reset, "mask"_a = nb::none(), "qpos"_a = nb::none(), "qvel"_a = nb::none(), nb::kw_only(),
        "keyframe"_a = nb::none(),
        nb::sig("def reset(self, mask: numpy.ndarray | None = None, qpos: numpy.ndarray | None = None, qvel: "
                "numpy.ndarray | None = None, *, keyframe: str | int | None = None) -> None"),
        "Restarts the worlds of mask [worlds] (bool; None: all) at qpos [nq] or [worlds, nq] (None: the "
        "model's qpos0) and\n"
        "qvel [nv] or [worlds, nv] (None: at rest). Their status becomes ok, the targets become that pose, "
        "tau, ctrl and act become\n"
        "zero, mocap bodies return to the file's poses, and nothing is carried over from earlier steps. "
        "keyframe, by name or index,\n"
        "sets whatever it defines of qpos, qvel, act, ctrl and the poses of mocap bodies.");
  const auto copied = [](AnyBatch& any) { return any.alone([&](auto&) { return AnyBatch(any); }); };
  c.def("copy", copied, "A new batch with the same worlds in the same states.").def("__copy__", copied);
  c.def(
      "__deepcopy__", [copied](AnyBatch& any, nb::handle) { return copied(any); }, "memo"_a,
      nb::sig("def __deepcopy__(self, memo: dict) -> Batch"));
  c.def("save", &save, nb::sig("def save(self) -> dict"),
        "The complete state of the worlds, as a dict of arrays and bytes that can be pickled. After "
        "restore() the run continues\n"
        "bit for bit, in a batch of the same model, worlds, dtype, step options and drives.");
  c.def("restore", &restore, "state"_a,
        "Restores what save() returned. Raises ValueError, ShapeError or TypeError naming what does not fit, "
        "for example another model,\n"
        "other step options or other drives; the worlds then keep their states.");
  c.def(
      "__reduce__",
      [](AnyBatch&) -> nb::object {
        throw nb::type_error("a Batch contains a model, which cannot be pickled: pickle batch.save() and restore() it");
      },
      nb::sig("def __reduce__(self) -> tuple"), "Batches are not pickled; save() is.");
  c.def(
      "state_hash",
      [](AnyBatch& any, std::optional<int> world) {
        return any.alone([&](auto& b) {
          if (world) check_world(b, *world);
          return world ? b.state_hash(*world) : b.state_hash();
        });
      },
      "world"_a = nb::none(), nb::sig("def state_hash(self, world: int | None = None) -> int"),
      "64-bit hash of the bits of qpos and qvel, of one world or of all worlds: equal states have equal "
      "hashes.");
  c.def("measure", &measure, "what"_a = nb::none(),
        nb::sig("def measure(self, what: typing.Sequence[str] | None = None) -> dict[str, numpy.ndarray]"),
        "Quantities of all worlds at their present states: all of them, or those named in `what`. 'position' "
        "[worlds, nbody, 3] and\n"
        "'orientation' [worlds, nbody, 4] (w x y z) of the bodies' frames; 'velocity' [worlds, nbody, 6] "
        "(angular, then linear at the\n"
        "frame's origin); 'energy' [worlds, 3] (kinetic, potential, springs); 'com' [worlds, 6] (position "
        "and velocity of the centre\n"
        "of mass of the moving bodies). World axes, SI units.");
  c.def(
      "apply_force", &apply_force, "body"_a, "force"_a, "point"_a = nb::none(), "mask"_a = nb::none(),
      nb::sig("def apply_force(self, body: int | str, force: numpy.ndarray, point: numpy.ndarray | None = None, mask: "
              "numpy.ndarray | None = None) -> None"),
      "tau += Jᵀ force, at the worlds' present states: force [3] or [worlds, 3] acts on a body at its "
      "point [3] or [worlds, 3]\n"
      "(None: its centre of mass), world axes. It acts until tau is set again.");
  c.def("jacobian", &body_jacobian, "body"_a, "point"_a = nb::none(), "out"_a = nb::none(),
        nb::sig("def jacobian(self, body: int | str, point: numpy.ndarray | None = None, out: numpy.ndarray | None = "
                "None) -> numpy.ndarray"),
        "[worlds, 6, nv] Jacobians of a point [3] or [worlds, 3] of a body (None: its centre of mass) at the "
        "worlds' present states.\n"
        "Angular rows first, world axes.");
  c.def("contacts", &contact_list, "world"_a, nb::sig("def contacts(self, world: int) -> list[dict]"),
        "Contacts of a world at its present state, including those that a step could bring. Each has links "
        "(a, b; -1 is the world),\n"
        "bodies and geoms (their indices and names, '' for none), position, normal from b to a, and distance between "
        "the shapes (negative\n"
        "for penetration; forces begin at MJCF's margin), in world axes [m]. They have no forces, unlike "
        "Stepper.contacts, because\n"
        "they are found anew in this state; ground_force and contact sensors have those of the last step.");
  c.def(
      "fault",
      [](AnyBatch& any, int world) {
        return any.alone([&](auto& b) {
          check_world(b, world);
          return b.fault(world).text();
        });
      },
      "world"_a,
      "'ok', or why the world is frozen, such as 'bad_input: qpos_target[3] is nan'. It failed after "
      "steps[world] good steps.");
  c.def("capture", &capture, "world"_a, "file"_a,
        nb::sig("def capture(self, world: int, file: str | os.PathLike) -> bool"),
        "Writes one world to an .npz file. A failed world is written as it was before its failed step, with "
        "the inputs of that step;\n"
        "any other world as it is now. `tarsus run FILE` repeats that step. Returns whether the repeated "
        "step ends the same way, to the\n"
        "bit. With captures=True it always does. Otherwise a failed world starts without the solver's warm "
        "start and may end\n"
        "differently. For a world with status ok, whose step has not been taken, the result is True.");
  bind_parameters(c);
  c.def(
      "set_drives",
      [](AnyBatch& any, std::optional<Drives> drives) { any.alone([&](auto& b) { b.set_drives(drives); }); },
      "drives"_a.none(), nb::sig("def set_drives(self, drives: Drives | None) -> None"),
      "Replaces the drives; they are copied. None: the model's actuators act instead. Factors of set_parameters() on "
      "gains and force limits\n"
      "go with the new drives; those on what they lack are dropped.");
}

}  // namespace

void bind_batch(nb::module_& m) {
  nb::class_<AnyBatch> c(m, "Batch", kBatchDoc);
  c.def(
      "__init__",
      [](AnyBatch* self, nb::object model, int worlds, std::optional<double> dt, int threads, nb::object dtype,
         std::optional<Drives> drives, std::optional<bool> contacts, std::optional<bool> joint_limits,
         const std::string& integrator, double speed_limit, double restitution, double tolerance, int max_iterations,
         const std::string& loops, const std::string& velocity_products, const std::string& actuation, bool captures) {
        BatchOptions options;
        options.keep_starts = captures;
        const StepperArguments arguments{integrator, speed_limit,    contacts, joint_limits,      restitution,
                                         tolerance,  max_iterations, loops,    velocity_products, actuation};
        options.step = step_options(expect<const Model>(model, "model"), dt, arguments);
        options.threads = threads, options.drives = std::move(drives);
        const bool single = wants_float(dtype.is_none() ? nb::object(nb::str("float64")) : dtype);
        new (self) AnyBatch(std::move(model), worlds, std::move(options), arguments, single);
      },
      "model"_a, "worlds"_a, "dt"_a = nb::none(), "threads"_a = 1, "dtype"_a = nb::none(), nb::kw_only(),
      "drives"_a = nb::none(), "contacts"_a = nb::none(), "joint_limits"_a = nb::none(),
      "integrator"_a = "semi_implicit_euler", "speed_limit"_a = StepOptions().speed_limit, "restitution"_a = 0.0,
      "tolerance"_a = RowStageOptions().solve.tolerance, "max_iterations"_a = RowStageOptions().solve.max_iterations,
      "loops"_a = "spook", "velocity_products"_a = "auto", "actuation"_a = "implicit", "captures"_a = false,
      nb::sig("def __init__(self, model: Model, worlds: int, dt: float | None = None, threads: int = 1, dtype: type | "
              "str | "
              "None = None, *, drives: Drives | None = None, contacts: bool | None = None, joint_limits: bool | None = "
              "None, "
              "integrator: str = 'semi_implicit_euler', speed_limit: float = 1e6, restitution: float = 0.0, tolerance: "
              "float = 1e-6, max_iterations: int = 3000, loops: str = 'spook', velocity_products: str = 'auto', "
              "actuation: str = 'implicit', "
              "captures: bool = False) -> None"),
      "All worlds start at the model's qpos0, at rest. drives: stable PD towards qpos_target, copied; "
      "None: the model's\n"
      "actuators under ctrl. dtype None is float64. captures: keep what each step starts from, so that "
      "capture() of a failed world\n"
      "is exact. The other arguments are those of Stepper.");
  bind_arrays(c, [](auto& cls, const char* name, auto member, const char* doc) { bind_array(cls, name, member, doc); });
  bind_result(
      c, "qacc", [](auto& b) { return std::pair(b.qacc(), Shape{size(b.model().nv)}); },
      "[worlds, nv] accelerations of the last step.");
  bind_result(
      c, "ground_force",
      [](auto& b) {
        return std::pair(b.ground_force(), Shape{size(b.model().njoint()), 3});
      },
      "[worlds, njoint, 3] force on each link in the last step from everything fixed to the world and from "
      "mocap bodies, world\n"
      "axes [N]; zero without contacts.");
  bind_mocap(
      c, "mocap_pos", [](auto& b) { return b.mocap_pos(); }, 3,
      "[worlds, nmocap, 3] positions of the mocap bodies, set by the user [m]; in the order of the bodies.");
  bind_mocap(
      c, "mocap_quat", [](auto& b) { return b.mocap_quat(); }, 4,
      "[worlds, nmocap, 4] orientations of the mocap bodies (w x y z), set by the user; normalized where "
      "they are used.");
  bind_methods(c);
  c.def_prop_ro("status", &status_codes, nb::sig("def status(self) -> numpy.ndarray"),
                "[worlds] status: 0 ok, 1 bad_input (not finite), 2 singular, 3 too_fast, 4 open_loop. A copy.");
  c.def_prop_ro(
      "steps",
      [](AnyBatch& any) {
        return any.alone([&]<class R>(Batch<R>& b) {
          AlignedVector<std::int64_t> counts(size(b.worlds()));
          for (int w = 0; w < b.worlds(); ++w) counts[size(w)] = b.steps(w);
          return own_array(std::move(counts), {size(b.worlds())});
        });
      },
      nb::sig("def steps(self) -> numpy.ndarray"), "[worlds] number of good steps since the world's reset. A copy.");
  c.def_prop_ro("reports", &reports, nb::sig("def reports(self) -> dict[str, numpy.ndarray]"),
                "Solver results of the last step, each [worlds]: residual [m/s], penetration [m], iterations, "
                "contacts, touching, limits\n"
                "(joints at their range), saturated (drives at their limit), unsolved (1: residual above the "
                "tolerance), inconsistent\n(1: equality constraints contradict one another), loop_error (their largest "
                "error, as in Stepper.loops()) [m | rad].\nCopies.");
  c.def_prop_ro(
      "model", [](AnyBatch& any) { return nb::borrow(any.model_object()); }, nb::sig("def model(self) -> Model"),
      "The model of all worlds.");
  c.def_prop_ro(
      "dtype",
      [](AnyBatch& any) { return nb::module_::import_("numpy").attr("dtype")(any.is_float() ? "float32" : "float64"); },
      nb::sig("def dtype(self) -> numpy.dtype"), "Scalar type of all its arrays.");
  c.def_prop_ro(
      "worlds", [](AnyBatch& any) { return any.visit([](auto& b) { return b.worlds(); }); }, "Number of worlds.");
  c.def_prop_ro(
      "threads", [](AnyBatch& any) { return any.visit([](auto& b) { return b.threads(); }); },
      "Number of threads that step the worlds.");
  c.def_prop_ro(
      "width", [](AnyBatch& any) { return any.visit([](auto& b) { return b.pack_width(); }); },
      "Worlds in each SIMD pack: the lanes of the instruction set, or 1.");
  c.def_prop_ro(
      "one_at_a_time_because",
      [](AnyBatch& any) {
        return any.visit([]<class R>(Batch<R>& b) {
          const BatchOptions& o = b.options();
          return lanes_refusal<R>(b.model(), o.step, o.drives ? &*o.drives : nullptr);
        });
      },
      "Why the worlds are not stepped in SIMD lanes; empty where they are.");
  c.def_prop_ro(
      "dt", [](AnyBatch& any) { return any.visit([](auto& b) { return b.options().step.dt; }); }, "[s].");
  c.def("__repr__", [](AnyBatch& any) {
    return any.visit([&]<class R>(Batch<R>& b) {
      const int bad = b.bad_worlds();
      return "<tarsus.Batch of '" + any.model().name + "' worlds=" + std::to_string(b.worlds()) + " " + kScalarName<R> +
             " threads=" + std::to_string(b.threads()) + " dt=" + number_text(b.options().step.dt) +
             (b.options().step.rows.contacts ? " contacts" : "") +
             (bad ? ", " + std::to_string(bad) + " not ok>" : ">");
    });
  });
}

}  // namespace tarsus::python
