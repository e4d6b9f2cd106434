// <sensor>: what its elements refer to and what they are of.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "io/mjcf/builder.hpp"
#include "tarsus/model/sensor_kind.hpp"

namespace tarsus::mjcf {

/// False where something is missing that the sensor names.
bool Builder::find_sensed(const XmlElement& e, const Scope& scope, SensorSpec& sensor) {
  bool complete = true;
  for (const auto& [attribute, kind] : references(e)) {
    std::string full;
    complete = reference(e, attribute, kind, scope, &full) >= 0 && complete;
    // MuJoCo attaches no sensor of the world itself.
    const std::string_view named = attribute;
    if (scope.level > 0 && full.empty() && (named == "body" || named == "objname")) complete = false;
    for (auto& [name, value] : sensor.attributes) {
      if (name == attribute && !full.empty()) value = full;
    }
  }
  const SensorTraits* traits = sensor_traits(sensor.kind);
  if (!traits || !complete) return complete;
  // One of each list must be there.
  std::vector<std::vector<const char*>> needed;
  switch (traits->target) {
    case SensorTarget::site: needed = {{"site"}}; break;
    case SensorTarget::joint: needed = {{"joint"}}; break;
    case SensorTarget::tendon: needed = {{"tendon"}}; break;
    case SensorTarget::actuator: needed = {{"actuator"}}; break;
    case SensorTarget::body: needed = {{"body"}}; break;
    case SensorTarget::frame: needed = {{"objtype"}, {"objname"}}; break;
    case SensorTarget::shapes: needed = {{"geom1", "body1"}, {"geom2", "body2"}}; break;
    case SensorTarget::contact:
    case SensorTarget::none: break;
  }
  if (traits->kind == SensorKind::rangefinder) needed = {{"site", "camera"}};
  if (traits->kind == SensorKind::insidesite) needed.push_back({"site"});
  if (e.peek("reftype") || e.peek("refname")) needed.insert(needed.end(), {{"reftype"}, {"refname"}});
  for (const auto& names : needed) {
    if (std::any_of(names.begin(), names.end(), [&](const char* name) { return e.peek(name).has_value(); })) continue;
    e.error(fmt::format("<{}> needs the attribute '{}'", e.name(), fmt::join(names, "' or '"))), complete = false;
  }
  static constexpr std::string_view kFrames[] = {"body", "xbody", "geom", "site", "camera"};
  for (const char* name : {"objtype", "reftype"}) {
    const auto type = e.peek(name);
    if (traits->target != SensorTarget::frame || !type) continue;
    if (std::find(std::begin(kFrames), std::end(kFrames), *type) != std::end(kFrames)) continue;
    e.error(fmt::format("attribute '{}' is {}, expected body, xbody, geom, site or camera", name, quote(*type)), name);
    complete = false;
  }
  if (traits->target == SensorTarget::joint && complete) {
    const JointType type = joint(find(Kind::joint, attribute(sensor, "joint"))).type;
    const bool ball = traits->kind == SensorKind::ballquat || traits->kind == SensorKind::ballangvel;
    if (ball ? type != JointType::ball : has_rotation(type))
      e.error(fmt::format("<{}> is for {}", e.name(), ball ? "ball joints" : "hinges and slides"), "joint");
  }
  return complete;
}

void Builder::read_sensor(const XmlElement& e, const Scope& scope) {
  SensorSpec sensor{std::string(e.name()), scope.naming.of(e.text("name")), e.all_attributes(), e.where()};
  std::erase_if(sensor.attributes, [](const auto& a) { return a.first == "name"; });
  for (const XmlElement& part : e.children()) {
    for (auto& [name, value] : part.all_attributes())
      sensor.attributes.emplace_back(std::string(part.name()) + "." + name, value);
  }
  static constexpr std::string_view kAttributes[] = {
      "class",   "cutoff",   "noise",   "user",    "nsample",  "interp",   "delay", "interval", "site",  "joint",
      "tendon",  "actuator", "body",    "geom",    "camera",   "mesh",     "geom1", "geom2",    "body1", "body2",
      "objtype", "objname",  "reftype", "refname", "subtree1", "subtree2", "num",   "data",     "reduce"};
  static constexpr std::string_view kOthers[] = {"camprojection", "tactile", "user", "plugin"};
  const auto known = [](const auto& list, std::string_view name) {
    return std::find(std::begin(list), std::end(list), name) != std::end(list);
  };
  if (!sensor_traits(e.name()) && !known(kOthers, e.name()))
    return e.error(fmt::format("<{}> is not an element of <sensor>", e.name()));
  for (const auto& [name, value] : sensor.attributes) {
    if (!known(kOthers, e.name()) && name.find('.') == std::string::npos && !known(kAttributes, name))
      e.error(fmt::format("attribute '{}' is not one of <{}>", name, e.name()), name.c_str());
  }
  e.unsupported({"delay", "interval"});
  if (!find_sensed(e, scope, sensor)) return;
  if (!is_computed(sensor)) e.warn(fmt::format("this <{}> is not computed: it reads nan", e.name()));
  const auto is_field = [](const GeomSpec& geom) { return geom.type == GeomType::height_field; };
  const bool fields = std::any_of(spec_.bodies.begin(), spec_.bodies.end(), [&](const BodySpec& body) {
    return std::any_of(body.geoms.begin(), body.geoms.end(), is_field);
  });
  if (fields && sensor.kind == "rangefinder") e.warn("rays of rangefinders pass height fields");
  declare(Kind::sensor, sensor.name, e);
  spec_.sensors.push_back(std::move(sensor));
}

}  // namespace tarsus::mjcf
