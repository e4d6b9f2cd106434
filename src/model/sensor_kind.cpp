#include "tarsus/model/sensor_kind.hpp"

#include <algorithm>
#include <iterator>

#include "tarsus/model/spec.hpp"

namespace tarsus {

namespace {

constexpr SensorTraits kTraits[] = {
    {"touch", SensorKind::touch, SensorTarget::site, 1, false},
    {"accelerometer", SensorKind::accelerometer, SensorTarget::site, 3, false},
    {"velocimeter", SensorKind::velocimeter, SensorTarget::site, 3, false},
    {"gyro", SensorKind::gyro, SensorTarget::site, 3, false},
    {"force", SensorKind::force, SensorTarget::site, 3, false},
    {"torque", SensorKind::torque, SensorTarget::site, 3, false},
    {"magnetometer", SensorKind::magnetometer, SensorTarget::site, 3, false},
    {"rangefinder", SensorKind::rangefinder, SensorTarget::site, 1, false},
    {"jointpos", SensorKind::jointpos, SensorTarget::joint, 1, false},
    {"jointvel", SensorKind::jointvel, SensorTarget::joint, 1, false},
    {"tendonpos", SensorKind::tendonpos, SensorTarget::tendon, 1, false},
    {"tendonvel", SensorKind::tendonvel, SensorTarget::tendon, 1, false},
    {"actuatorpos", SensorKind::actuatorpos, SensorTarget::actuator, 1, false},
    {"actuatorvel", SensorKind::actuatorvel, SensorTarget::actuator, 1, false},
    {"actuatorfrc", SensorKind::actuatorfrc, SensorTarget::actuator, 1, false},
    {"jointactuatorfrc", SensorKind::jointactfrc, SensorTarget::joint, 1, false},
    {"tendonactuatorfrc", SensorKind::tendonactfrc, SensorTarget::tendon, 1, false},
    {"ballquat", SensorKind::ballquat, SensorTarget::joint, 4, true},
    {"ballangvel", SensorKind::ballangvel, SensorTarget::joint, 3, false},
    {"jointlimitpos", SensorKind::jointlimitpos, SensorTarget::joint, 1, false},
    {"jointlimitvel", SensorKind::jointlimitvel, SensorTarget::joint, 1, false},
    {"tendonlimitpos", SensorKind::tendonlimitpos, SensorTarget::tendon, 1, false},
    {"tendonlimitvel", SensorKind::tendonlimitvel, SensorTarget::tendon, 1, false},
    {"jointlimitfrc", SensorKind::jointlimitfrc, SensorTarget::joint, 1, false},
    {"tendonlimitfrc", SensorKind::tendonlimitfrc, SensorTarget::tendon, 1, false},
    {"insidesite", SensorKind::insidesite, SensorTarget::frame, 1, false},
    {"contact", SensorKind::contact, SensorTarget::contact, 0, true},
    {"distance", SensorKind::geomdist, SensorTarget::shapes, 1, false},
    {"normal", SensorKind::geomnormal, SensorTarget::shapes, 3, true},
    {"fromto", SensorKind::geomfromto, SensorTarget::shapes, 6, true},
    {"framepos", SensorKind::framepos, SensorTarget::frame, 3, false},
    {"framequat", SensorKind::framequat, SensorTarget::frame, 4, true},
    {"framexaxis", SensorKind::framexaxis, SensorTarget::frame, 3, true},
    {"frameyaxis", SensorKind::frameyaxis, SensorTarget::frame, 3, true},
    {"framezaxis", SensorKind::framezaxis, SensorTarget::frame, 3, true},
    {"framelinvel", SensorKind::framelinvel, SensorTarget::frame, 3, false},
    {"frameangvel", SensorKind::frameangvel, SensorTarget::frame, 3, false},
    {"framelinacc", SensorKind::framelinacc, SensorTarget::frame, 3, false},
    {"frameangacc", SensorKind::frameangacc, SensorTarget::frame, 3, false},
    {"subtreecom", SensorKind::subtreecom, SensorTarget::body, 3, false},
    {"subtreelinvel", SensorKind::subtreelinvel, SensorTarget::body, 3, false},
    {"subtreeangmom", SensorKind::subtreeangmom, SensorTarget::body, 3, false},
    {"e_potential", SensorKind::e_potential, SensorTarget::none, 1, false},
    {"e_kinetic", SensorKind::e_kinetic, SensorTarget::none, 1, false},
    {"clock", SensorKind::clock, SensorTarget::none, 1, false},
    // Not implemented, but their place in sensordata is kept.
    {"camprojection", SensorKind::none, SensorTarget::none, 2, true},
};

}  // namespace

const SensorTraits* sensor_traits(std::string_view element) {
  const auto found =
      std::find_if(std::begin(kTraits), std::end(kTraits), [&](const auto& t) { return element == t.element; });
  return found == std::end(kTraits) ? nullptr : &*found;
}

std::string attribute(const SensorSpec& sensor, std::string_view name) {
  for (const auto& [key, value] : sensor.attributes) {
    if (key == name) return value;
  }
  return {};
}

bool is_computed(const SensorSpec& sensor) {
  const SensorTraits* traits = sensor_traits(sensor.kind);
  if (!traits || traits->kind == SensorKind::none) return false;
  const auto has = [&](const char* name, std::string_view value) { return attribute(sensor, name) == value; };
  if (has("enclosed", "true")) return false;
  if (traits->target == SensorTarget::frame) return !has("objtype", "camera") && !has("reftype", "camera");
  if (traits->kind == SensorKind::rangefinder)
    return has("camera", "") && attribute(sensor, "data").find("normal") == std::string::npos;
  if (traits->kind != SensorKind::contact) return true;
  const std::string fields = attribute(sensor, "data");
  return fields.find("linvel") == std::string::npos && fields.find("angvel") == std::string::npos;
}

const SensorTraits& sensor_traits(SensorKind kind) {
  return *std::find_if(std::begin(kTraits), std::end(kTraits), [&](const auto& t) { return kind == t.kind; });
}

}  // namespace tarsus
