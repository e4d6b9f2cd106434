// A model's sensors, MuJoCo's kinds, layout and signs, all in one pass over a state.
//
//   stage           kinds
//   position        jointpos ballquat tendonpos actuatorpos framepos framequat framexaxis frameyaxis framezaxis
//                   subtreecom jointlimitpos magnetometer rangefinder clock e_potential
//   velocity        jointvel ballangvel tendonvel actuatorvel velocimeter gyro framelinvel frameangvel subtreelinvel
//                   subtreeangmom jointlimitvel e_kinetic
//   acceleration    accelerometer framelinacc frameangacc force torque actuatorfrc jointactfrc tendonactfrc touch
//
// Accelerations feel gravity, as a device does. Cutoffs hold, noise is left to the user. Other kinds are zero, and
// the reader warns of them.
#pragma once

#include <array>
#include <memory>

#include "tarsus/control/actuation.hpp"
#include "tarsus/model/sensor_kind.hpp"

namespace tarsus {

struct Sensor {
  std::string name;
  SensorKind kind = SensorKind::none;  ///< none: not computed
  int dimension = 0, address = 0;      ///< numbers, and the first one's place in sensordata
  int object = -1;                     ///< joint, tendon, actuator or body
  LinkFrame frame, reference;          ///< of what it sits on, of what it is seen from
  int body = -1;                       ///< that it sits on
  bool has_reference = false;
  double cutoff = 0;
  GeomType zone = GeomType::sphere;  ///< touch: the site's shape
  Vec3d zone_size{};
  Location where;
};

/// A force on a body from outside of the tree: a contact's, a constraint's.
struct BodyForce {
  int body = 0;
  Vec3d point, force, torque;  ///< world axes [m, N, N m]
};

/// A contact as touch sensors see it.
struct TouchPoint {
  int body_a = 0, body_b = 0;
  Vec3d point, normal;  ///< normal from b to a
  double force = 0;     ///< normal force [N]
};

/// The state that sensors look at.
struct SensorInput {
  double time = 0;
  std::span<const double> qpos, qvel, qacc, ctrl, act;
  std::span<const BodyForce> external = {};  ///< for force and torque
  std::span<const TouchPoint> contacts = {};
};

class SensorSet {
 public:
  /// Keeps a reference to the model. @throws InputError naming what a sensor refers to and is not there
  explicit SensorSet(const Model& model);
  ~SensorSet();
  SensorSet(SensorSet&&) noexcept;

  int size() const { return int(sensors_.size()); }
  int numbers() const { return numbers_; }  ///< in sensordata
  const Sensor& operator[](int i) const { return sensors_[i]; }

  /// sensordata [numbers]. O(nbody + sensors).
  void evaluate(const SensorInput& state, std::span<double> sensordata);

 private:
  struct Scratch;
  void add(const SensorSpec& spec);
  void read(const Sensor& s, const SensorInput& state, double* out) const;
  void read_frame(const Sensor& s, double* out) const;
  void read_acceleration(const Sensor& s, double* out) const;
  void read_joint(const Sensor& s, const SensorInput& state, double* out) const;
  void read_subtree(const Sensor& s, double* out) const;
  double read_touch(const Sensor& s, const SensorInput& state) const;
  void find_forces(const SensorInput& state);
  void find_subtrees();

  const Model& model_;
  Actuation actuation_;
  std::vector<Sensor> sensors_;
  int numbers_ = 0;
  bool needs_forces_ = false, needs_subtrees_ = false, needs_accelerations_ = false, needs_energy_ = false;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace tarsus
