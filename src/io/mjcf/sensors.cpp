// <sensor>: reads the elements and resolves the objects that they refer to.
#include <fmt/format.h>

#include <algorithm>

#include "io/mjcf/builder.hpp"
#include "io/mjcf/states.hpp"
#include "tarsus/base/index.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/sensor_kind.hpp"

namespace tarsus::mjcf {

/// Resolves the objects that the sensor names. False if one is missing or of the wrong kind.
bool Builder::find_sensed(const XmlElement& e, const Scope& scope, SensorSpec& sensor) {
  bool complete = true;
  for (const auto& [attribute, kind] : references(e)) {
    std::string full;
    complete = reference(e, attribute, kind, scope, &full) >= 0 && complete;
    // MuJoCo does not attach sensors of the world.
    const std::string_view named = attribute;
    if (scope.level > 0 && full.empty() && (named == "body" || named == "objname")) complete = false;
    for (auto& [name, value] : sensor.attributes) {
      if (name == attribute && !full.empty()) value = full;
    }
  }
  const SensorTraits* traits = sensor_traits(sensor.kind);
  if (!traits || !complete) return complete;
  static constexpr std::string_view kFrames[] = {"body", "xbody", "geom", "site", "camera"};
  for (const char* name : {"objtype", "reftype"}) {
    const auto type = e.peek(name);
    if (traits->target != SensorTarget::frame || !type) continue;
    if (std::find(std::begin(kFrames), std::end(kFrames), *type) != std::end(kFrames)) continue;
    e.error(fmt::format("attribute '{}' is {}, expected body, xbody, geom, site or camera", name, quote(*type)), name);
    complete = false;
  }
  if (complete) check_sensed(e, *traits, sensor);
  return complete;
}

/// Checks that the joint or tendon has the sensor's type, and a limit if the sensor measures one.
void Builder::check_sensed(const XmlElement& e, const SensorTraits& traits, const SensorSpec& sensor) {
  const bool limit = e.name().find("limit") != std::string_view::npos, ball = e.name().starts_with("ball");
  const auto refuse = [&](const char* what, const char* attribute) {
    e.error(fmt::format("<{}> is for {}", e.name(), what), attribute);
  };
  for (const auto& [one, other] : {std::pair{"geom1", "geom2"}, std::pair{"body1", "body2"}}) {
    const std::string name = attribute(sensor, one);
    if (traits.target == SensorTarget::shapes && !name.empty() && name == attribute(sensor, other))
      e.error(fmt::format("<{}> names the same element twice", e.name()), other);
  }
  if (traits.target == SensorTarget::joint) {
    const JointSpec& of = joint(find(Kind::joint, attribute(sensor, "joint")));
    if (limit && !of.limited) refuse("joints with a limit", "joint");
    if (ball && of.type != JointType::ball) refuse("ball joints", "joint");
    if (!limit && !ball && has_rotation(of.type)) refuse("hinges and slides", "joint");
  }
  if (traits.target != SensorTarget::tendon || !limit) return;
  const TendonSpec& of = spec_.tendons[std::size_t(find(Kind::tendon, attribute(sensor, "tendon")))];
  if (!of.limited) refuse("tendons with a limit", "tendon");
}

/// Sets MuJoCo's frame of a mesh geom: the mesh's centre of mass and principal axes.
void Builder::find_mesh_frame(const XmlElement& e, GeomSpec& geom) {
  if (geom.type != GeomType::mesh) return;
  const int mesh = index_of(spec_.meshes, geom.mesh);
  const ShapeInertia* mass =
      mesh < 0 || spec_.meshes[std::size_t(mesh)].vertices.empty() ? nullptr : mesh_mass(mesh, &e);
  if (mass) geom.mesh_centre = mass->com, geom.mesh_axes = eigen(mass->inertia).orientation;
}

/// Sets the frames of the mesh geoms that a sensor names.
void Builder::find_mesh_frames(const XmlElement& e, const SensorSpec& sensor) {
  for (const auto& [type, name] : {std::pair{"objtype", "objname"}, std::pair{"reftype", "refname"}}) {
    if (attribute(sensor, type) != "geom") continue;
    for (BodySpec& body : spec_.bodies) {
      for (GeomSpec& geom : body.geoms) {
        if (geom.name == attribute(sensor, name)) find_mesh_frame(e, geom);
      }
    }
  }
}

void Builder::read_sensor(const XmlElement& e, const Scope& scope) {
  const SensorTraits* traits = sensor_traits(e.name());
  if (!traits && !e.is("tactile") && !e.is("user") && !e.is("plugin"))
    return e.error(fmt::format("<{}> is not an element of <sensor>", e.name()));
  const bool whole = check_sensor(e, traits);
  SensorSpec sensor{std::string(e.name()), scope.naming.of(e.text("name")), e.all_attributes(), e.where()};
  std::erase_if(sensor.attributes, [](const auto& a) { return a.first == "name"; });
  for (const XmlElement& part : e.children()) {
    for (auto& [name, value] : part.all_attributes())
      sensor.attributes.emplace_back(std::string(part.name()) + "." + name, value);
  }
  if (!whole || !find_sensed(e, scope, sensor)) return;
  find_mesh_frames(e, sensor);
  if (replicas_.all.size() > 1 && references(e).empty())
    e.note("this sensor refers to no element, so it is read once; MuJoCo 4 adds a copy for each replica");
  if (!is_computed(sensor)) e.warn(fmt::format("this <{}> is not computed: its value is nan", e.name()));
  const auto is_field = [](const GeomSpec& geom) { return geom.type == GeomType::height_field; };
  const bool fields = std::any_of(spec_.bodies.begin(), spec_.bodies.end(), [&](const BodySpec& body) {
    return std::any_of(body.geoms.begin(), body.geoms.end(), is_field);
  });
  if (fields && sensor.kind == "rangefinder") e.warn("rays of rangefinders do not see height fields");
  declare(Kind::sensor, sensor.name, e);
  spec_.sensors.push_back(std::move(sensor));
}

}  // namespace tarsus::mjcf
