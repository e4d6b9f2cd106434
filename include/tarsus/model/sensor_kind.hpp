// The sensor kinds of MJCF: which are implemented, what they refer to, and how many numbers they give.
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
  none,  ///< not implemented
};

/// An attribute of the sensor's element; empty if it is absent.
std::string attribute(const SensorSpec& sensor, std::string_view name);

/// The kind of object that a sensor's element names.
enum class SensorTarget { none, site, joint, tendon, actuator, body, frame, contact, shapes };

struct SensorTraits {
  const char* element;  ///< MJCF's name
  SensorKind kind;
  SensorTarget target;
  int dimension;   ///< 0: it depends on the element
  bool direction;  ///< gives a direction or a rotation, to which cutoffs do not apply
};

/// Traits by MJCF's name; null if MJCF has no such sensor, or for a sensor with an unknown number of numbers.
const SensorTraits* sensor_traits(std::string_view element);
/// Whether SensorSet (sim/sensor.hpp) implements this sensor.
bool is_computed(const SensorSpec& sensor);
/// Traits of an implemented kind.
const SensorTraits& sensor_traits(SensorKind kind);

}  // namespace tarsus
