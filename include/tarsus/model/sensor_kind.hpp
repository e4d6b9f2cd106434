// The kinds of sensors that MJCF has: which of them are computed, what they sit on, how many numbers they give.
#pragma once

#include <string>
#include <string_view>

namespace tarsus {

struct SensorSpec;

enum class SensorKind : int {
  touch,
  accelerometer,
  velocimeter,
  gyro,
  force,
  torque,
  magnetometer,
  rangefinder,
  jointpos,
  jointvel,
  tendonpos,
  tendonvel,
  actuatorpos,
  actuatorvel,
  actuatorfrc,
  jointactfrc,
  tendonactfrc,
  ballquat,
  ballangvel,
  jointlimitpos,
  jointlimitvel,
  tendonlimitpos,
  tendonlimitvel,
  jointlimitfrc,
  tendonlimitfrc,
  insidesite,
  contact,
  geomdist,
  geomnormal,
  geomfromto,
  framepos,
  framequat,
  framexaxis,
  frameyaxis,
  framezaxis,
  framelinvel,
  frameangvel,
  framelinacc,
  frameangacc,
  subtreecom,
  subtreelinvel,
  subtreeangmom,
  e_potential,
  e_kinetic,
  clock,
  none,  ///< not computed
};

/// An attribute of the sensor's element, empty if it has none.
std::string attribute(const SensorSpec& sensor, std::string_view name);

/// What a sensor's element names.
enum class SensorTarget { none, site, joint, tendon, actuator, body, frame, contact, shapes };

struct SensorTraits {
  const char* element;  ///< MJCF's name
  SensorKind kind;
  SensorTarget target;
  int dimension;   ///< 0: it depends on the element
  bool direction;  ///< gives a direction or a rotation, which cutoffs leave alone
};

/// By MJCF's name; null for what MJCF does not have, or gives a number of numbers that we do not know.
const SensorTraits* sensor_traits(std::string_view element);
/// Whether SensorSet (sim/sensor.hpp) computes this very sensor.
bool is_computed(const SensorSpec& sensor);
/// Of a kind that is computed.
const SensorTraits& sensor_traits(SensorKind kind);

}  // namespace tarsus
