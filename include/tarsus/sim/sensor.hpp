// A model's sensors, with MuJoCo's kinds, layout and signs. One pass over a state evaluates all of them.
//
//   stage           kinds
//   position        jointpos ballquat tendonpos actuatorpos framepos framequat framexaxis frameyaxis framezaxis
//                   subtreecom jointlimitpos tendonlimitpos insidesite magnetometer rangefinder clock e_potential
//                   distance normal fromto (between geoms or bodies, up to the cutoff)
//   velocity        jointvel ballangvel tendonvel actuatorvel velocimeter gyro framelinvel frameangvel subtreelinvel
//                   subtreeangmom jointlimitvel tendonlimitvel e_kinetic
//   acceleration    accelerometer framelinacc frameangacc force torque actuatorfrc jointactfrc tendonactfrc
//                   jointlimitfrc tendonlimitfrc (of the last step; 0 before the first)
//   contact         touch, contact (by geoms, bodies, subtrees, sites; found force torque dist pos normal tangent)
//
// In a world that is not ok, those of the last two stages read nan, since there was no step.
// Accelerations include gravity, as an accelerometer measures it. Cutoffs are applied; noise is left to the user.
// Sensors of other kinds read nan, and the reader of the file warns about them.
#pragma once

#include <memory>
#include <optional>

#include "tarsus/control/actuation.hpp"
#include "tarsus/model/sensor_kind.hpp"

namespace tarsus {

/// The volume of a site.
struct SiteZone {
  LinkFrame frame;
  GeomType type = GeomType::sphere;
  Vec3d size{};
};

struct Sensor {
  std::string name;
  SensorKind kind = SensorKind::none;  ///< none: not computed
  int dimension = 0, address = 0;      ///< count of numbers, and index of the first in sensordata
  int object = -1;                     ///< joint, tendon, actuator or body index
  unsigned ray_fields = 0;             ///< fields of a rangefinder, one bit each
  LinkFrame frame, reference;          ///< frame of the sensor, and of its reference
  int body = -1, reference_body = -1;  ///< bodies that carry these frames; the former is the sensor's
  Quatd turn, reference_turn;          ///< the frames' orientations in their bodies
  bool has_reference = false;
  double cutoff = 0;
  SiteZone zone;  ///< touch, insidesite
};

/// An external force on a body, such as that of a contact or a constraint.
struct BodyForce {
  int body = 0;
  Vec3d point, force, torque;  ///< world axes [m, N, N m]
};

/// A contact between two shapes, as sensors report it.
struct TouchPoint {
  int body_a = 0, body_b = 0;
  int geom_a = 0, geom_b = 0;  ///< index within their body
  Vec3d point, normal;         ///< world axes; the normal points from b to a
  double distance = 0;         ///< between the shapes, negative: penetration [m]
  Vec3d force{0, 0, 0};        ///< on a, world axes [N]
  Vec3d torque{0, 0, 0};       ///< torsional and rolling friction, on a [N m]
  double margin = 0;           ///< distance at which the contact force begins [m]
};

/// The forces of a step that are not the model's own.
struct StepForces {
  bool known = true;                ///< false: the forces were not recorded
  bool taken = true;                ///< false: the world is not ok, and the step was not taken
  std::vector<BodyForce> external;  ///< contacts; connect and weld constraints
  std::vector<TouchPoint> contacts;
  std::vector<double> joint_limit, tendon_limit;  ///< [njoint], [ntendon] range forces; empty: none [N | N m]
  std::vector<double> tendon_along;  ///< [ntendon] equality and dry friction forces along tendons; empty: none
  std::vector<double> qpos, qvel;  ///< the start of the step, where M qacc + c = Jᵀ f; empty: the sensors' own state
};

inline const StepForces kNoForces{};
inline const StepForces kNoStep{false, false, {}, {}, {}, {}, {}, {}, {}};

template <class R>
class Stepper;
/// Forces on one world in the last step that the stepper took of `data`. They are not known for a world that is not ok,
/// nor for worlds in SIMD lanes with contacts or limits unless Stepper::feel() was called.
template <class R>
StepForces step_forces(const Model& model, const Stepper<R>& stepper, const BasicData<R>& data, int world = 0);

/// A contact sensor's selection: which contacts, how many of them, and which fields of each.
struct ContactQuery {
  struct Side {
    int geom = -1;                 ///< index within its body, -1: any
    std::vector<char> bodies;      ///< [nbody] accepted bodies; empty: all
    std::optional<SiteZone> zone;  ///< volume that must contain the contact point
  };
  enum Field : unsigned { found = 1, force = 2, torque = 4, distance = 8, position = 16, normal = 32, tangent = 64 };
  enum class Order { none, nearest, strongest, net };  ///< net: one resultant force and torque
  Side first, second;
  unsigned fields = found;
  Order order = Order::none;
  int slots = 1;
  int width = 1;  ///< numbers per slot
};

/// The state that the sensors are evaluated at.
struct SensorInput {
  double time = 0;
  std::span<const double> qpos, qvel, qacc, ctrl, act;
  std::span<const double> mocap_pos = {}, mocap_quat = {};  ///< as in Data; empty: the poses of the file
  const StepForces& forces = kNoForces;  ///< not known: sensors that need them read nan; not taken: all of the step do
  std::span<const double> mass_scale = {}, com_offset = {}, armature_scale = {}, gravity = {};  ///< WorldParameter
  ActuatorScales actuators = {};                                                                ///< the world's factors
};

class SensorSet {
 public:
  /// Keeps a reference to the model. @throws InputError naming an object that a sensor refers to and that does not
  /// exist
  explicit SensorSet(const Model& model);
  ~SensorSet();

  int size() const { return int(sensors_.size()); }
  int numbers() const { return numbers_; }  ///< length of sensordata
  /// Whether a sensor needs StepForces.
  bool feels_contact() const { return feels_contact_; }
  const Sensor& operator[](int i) const { return sensors_[i]; }

  /// Writes sensordata [numbers]. Costs O(nbody + sensors).
  void evaluate(const SensorInput& state, std::span<double> sensordata);

 private:
  struct Scratch;
  void add(const SensorSpec& spec);
  void read(const Sensor& s, const SensorInput& state, double* out) const;
  void read_frame(const Sensor& s, const SensorInput& state, double* out) const;
  void read_acceleration(const Sensor& s, double* out) const;
  void read_joint(const Sensor& s, const SensorInput& state, double* out) const;
  void read_subtree(const Sensor& s, double* out) const;
  double read_touch(const Sensor& s, const SensorInput& state) const;
  void add_ray_fields(const SensorSpec& spec, Sensor& sensor);
  void add_shapes(const SensorSpec& spec, Sensor& sensor);
  void read_ray(const Sensor& s, double* out) const;
  void read_gap(const Sensor& s, double* out) const;
  void find_links();
  void find_motions(const SensorInput& state);
  void write(const Sensor& s, const SensorInput& state, std::span<double> sensordata) const;
  void add_contact_query(const SensorSpec& spec, Sensor& sensor);
  void read_contacts(const Sensor& s, const SensorInput& state, double* out) const;
  Vec3d capsule_axis(const TouchPoint& c) const;
  static void write_contact(const ContactQuery& query, double found, const TouchPoint& c, const Vec3d& t, double* out);
  void find_forces(const SensorInput& state);
  void find_subtrees();

  const Model& model_;
  Actuation actuation_;
  std::vector<Sensor> sensors_;
  std::vector<ContactQuery> contact_queries_;  // indexed by Sensor::object of contact sensors
  int numbers_ = 0;
  bool feels_contact_ = false, needs_forces_ = false, needs_subtrees_ = false, needs_actuation_ = false,
       needs_energy_ = false, needs_all_links_ = false;
  std::vector<int> links_;  // links whose motion some sensor needs, in order from the root
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace tarsus
