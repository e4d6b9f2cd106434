// The kinds of sensors that MJCF has: which of them are computed, what they sit on, how many numbers they give.
#pragma once

#include <string_view>

namespace tarsus {

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

/// What a sensor's element names.
enum class SensorTarget { none, site, joint, tendon, actuator, body, frame };

struct SensorTraits {
  const char* element;  ///< MJCF's name
  SensorKind kind;
  SensorTarget target;
  int dimension;
  bool direction;  ///< gives a direction or a rotation, which cutoffs leave alone
};

/// By MJCF's name; null for what MJCF does not have, or gives a number of numbers that we do not know.
const SensorTraits* sensor_traits(std::string_view element);
/// Of a kind that is computed.
const SensorTraits& sensor_traits(SensorKind kind);

}  // namespace tarsus
