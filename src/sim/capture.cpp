#include "tarsus/sim/capture.hpp"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

namespace tarsus {

namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kFormat = "tarsus-capture";

/// Calls f(name, array) for the arrays of a capture's state and drives.
template <class Capture, class F>
void each_array(const Model& model, Capture& c, const F& f) {
  each_array(model, c, c, [&](const char* name, auto& x, auto&, int) { f(name, x); });
  if (!c.options.drives) return;
  auto& d = *c.options.drives;
  f("kp", d.kp), f("kd", d.kd), f("force_limit", d.force_limit), f("force_floor", d.force_floor);
}

/// Calls f(name, number) for the numbers of its options.
template <class Capture, class F>
void each_number(Capture& c, const F& f) {
  auto& s = c.options.step;
  f("dt", s.dt), f("speed_limit", s.speed_limit);
  f("limit_compliance", s.rows.limit_spook.compliance), f("limit_damping_time", s.rows.limit_spook.damping_time);
  f("tolerance", s.rows.solve.tolerance), f("restitution", s.rows.restitution);
  f("restitution_threshold", s.rows.restitution_threshold), f("fault_value", c.fault.value);
  if (c.options.drives) f("spin_damping", c.options.drives->spin_damping);
}

/// Calls f(name, integer, bound) for its switches.
template <class Capture, class F>
void each_switch(Capture& c, const F& f) {
  auto& s = c.options.step;
  f("integrator", s.integrator, 1), f("actuation", s.actuation, 2), f("loops", s.loops, 2);
  f("velocity_products", s.velocity_products, 2), f("contacts", s.rows.contacts, 1), f("joint_terms", s.rows.joints, 1);
  f("max_iterations", s.rows.solve.max_iterations, 1 << 20), f("single", c.single, 1), f("width", c.width, 1 << 10);
  f("steps", c.steps, std::int64_t(1) << 53), f("fault", c.fault.status, int(WorldStatus::open_loop));
  f("fault_index", c.fault.index, 1 << 30);
  if (c.options.drives) f("plain", c.options.drives->plain, 1);
}

[[noreturn]] void fail(const std::string& file, const std::string& member, const std::string& message) {
  throw InputError(Location{file, 0, 0, member}, message);
}

Json parse(const CaptureArrays& arrays, const std::string& file) {
  Json meta = Json::parse(arrays.meta, nullptr, false);
  if (!meta.is_object() || meta.value("format", Json()) != Json(kFormat)) fail(file, "meta", "this is not a capture");
  if (const Json version = meta.value("version", Json()); version != Json(kBytesVersion)) {
    fail(file, "meta/version",
         "a capture of version " + version.dump(-1, ' ', false, Json::error_handler_t::replace) +
             ", written by another version of tarsus; this one reads version " + std::to_string(kBytesVersion));
  }
  return meta;
}

Json joints_of(const Model& model) {
  Json out = Json::array();
  for (const Joint& joint : model.joints) out.push_back({joint.name, tarsus::name(joint.type)});
  return out;
}

/// A file name in another encoding than UTF-8 is a list of its bytes.
Json json_of(const std::string& name) {
  try {
    (void)Json(name).dump();
    return name;
  } catch (const Json::exception&) {
    return std::vector<std::uint8_t>(name.begin(), name.end());
  }
}

std::string name_of(const Json& json) {
  if (!json.is_array()) return json.get<std::string>();
  const auto bytes = json.get<std::vector<std::uint8_t>>();
  return {bytes.begin(), bytes.end()};
}

ModelOrigin origin_of(const Json& meta, const std::string& file) {
  try {
    ModelOrigin out{name_of(meta.value("model_file", Json(""))), name_of(meta.value("folder", Json(""))), {}};
    for (const Json& option : meta.value("read_options", Json::array())) out.options.push_back(name_of(option));
    return out;
  } catch (const Json::exception&) {
    fail(file, "meta", "not the names of a model, of its folder and of options");
  }
}

/// The reader's options of the captured model, as the end of a message.
std::string read_with(const Json& meta, const std::string& file) {
  std::string out;
  for (const std::string& word : origin_of(meta, file).options)
    out += (out.empty() ? "; its own was read with " : " ") + word;
  return out;
}

/// Refuses what no batch with numbers of R wrote.
template <class R>
void check_memory(const std::vector<std::uint8_t>& bytes, const std::string& file) {
  StepMemory<R> one;
  try {
    if (!bytes.empty()) from_bytes<R>(bytes, {&one, 1});
  } catch (const ValueError&) {
    fail(file, "memory", "not the bytes that Batch.capture writes");
  }
}

}  // namespace

CaptureArrays to_arrays(const Model& model, const WorldCapture& capture) {
  if (capture.options.step.equalities)
    throw ValueError("equalities", "given as an argument", "the model's own equalities in a capture");
  CaptureArrays out;
  Json meta{{"format", kFormat}, {"version", kBytesVersion}, {"model", model.name}};
  const ModelOrigin& origin = model.spec.origin;
  meta["model_file"] = json_of(origin.file), meta["folder"] = json_of(origin.folder);
  meta["read_options"] = Json::array();
  for (const std::string& option : origin.options) meta["read_options"].push_back(json_of(option));
  meta["joints"] = joints_of(model), meta["drives"] = capture.options.drives.has_value();
  meta["fault_text"] = capture.fault.text(), meta["fault_array"] = capture.fault.array;
  each_switch(capture, [&](const char* name, auto x, auto) { meta[name] = std::int64_t(x); });
  out.meta = meta.dump(1, ' ', false, Json::error_handler_t::replace);
  each_array(model, capture, [&](const char* name, const std::vector<double>& x) { out.arrays.emplace_back(name, x); });
  each_number(capture, [&](const char* name, double x) { out.arrays.emplace_back(name, std::vector<double>{x}); });
  for (int i = 0; i < kWorldParameters; ++i) {
    const WorldParameter which = WorldParameter(i);
    if (!capture.parameters[which].empty()) out.arrays.emplace_back(name(which), capture.parameters[which]);
  }
  out.memory = capture.memory;
  return out;
}

WorldCapture from_arrays(const Model& model, const CaptureArrays& arrays, const std::string& file) {
  const Json meta = parse(arrays, file);
  if (meta.value("joints", Json()) != joints_of(model))
    fail(file, "meta/joints", "these are not the joints of the model \"" + model.name + "\"" + read_with(meta, file));
  WorldCapture out;
  if (meta.value("drives", Json()) == Json(true)) out.options.drives.emplace(Drives::none(model));
  const auto find = [&](const char* name) -> const std::vector<double>* {
    const auto at = std::find_if(arrays.arrays.begin(), arrays.arrays.end(), [&](auto& a) { return a.first == name; });
    return at == arrays.arrays.end() ? nullptr : &at->second;
  };
  each_switch(out, [&](const char* name, auto& x, std::int64_t most) {
    const Json value = meta.value(name, Json());
    const std::int64_t least = std::string_view(name) == "fault_index" ? -1 : 0;
    if (!value.is_number_integer() || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
      fail(file, std::string("meta/") + name,
           "expected a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    x = std::remove_reference_t<decltype(x)>(value.get<std::int64_t>());
  });
  each_array(model, out, [&](const char* name, std::vector<double>& x) {
    const std::vector<double>* from = find(name);
    if (!from && model.nmocap() == 0 && std::string_view(name).substr(0, 5) == "mocap") return;  // file without
    if (!from) fail(file, name, "there is no array of this name");
    x = *from;
  });
  each_number(out, [&](const char* name, double& x) {
    const std::vector<double>* from = find(name);
    if (!from || from->size() != 1) fail(file, name, "expected one number");
    x = from->front();
  });
  for (int i = 0; i < kWorldParameters; ++i) {
    const WorldParameter which = WorldParameter(i);
    if (const std::vector<double>* from = find(name(which))) out.parameters[which] = *from;
  }
  const std::string array = meta.value("fault_array", std::string());
  bool known = array.empty();
  each_array(model, out, out, [&](const char* name, auto&, auto&, int) {
    if (array == name) out.fault.array = name, known = true;
  });
  if (!known) fail(file, "meta/fault_array", "\"" + array + "\" is not an array of a world");
  out.single ? check_memory<float>(arrays.memory, file) : check_memory<double>(arrays.memory, file);
  out.memory = arrays.memory;
  return out;
}

ModelOrigin captured_model(const CaptureArrays& arrays, const std::string& file) {
  return origin_of(parse(arrays, file), file);
}

bool is_capture(const std::string& meta) {
  const Json json = Json::parse(meta, nullptr, false);
  return json.is_object() && json.value("format", Json()) == Json(kFormat);
}

template <class R>
static WorldFault step_once(const Model& model, const WorldCapture& capture) {
  Batch<R> batch(model, 1, capture.options);
  batch.put(0, capture);
  batch.step();
  return batch.fault(0);
}

WorldFault step_again(const Model& model, const WorldCapture& capture) {
  return capture.single ? step_once<float>(model, capture) : step_once<double>(model, capture);
}

bool same_fault(const WorldFault& captured, const WorldFault& again) {
  if (captured.status == WorldStatus::ok) return true;
  return captured.status == again.status && std::string_view(captured.array) == again.array &&
         captured.index == again.index &&
         std::bit_cast<std::uint64_t>(captured.value) == std::bit_cast<std::uint64_t>(again.value);
}

}  // namespace tarsus
