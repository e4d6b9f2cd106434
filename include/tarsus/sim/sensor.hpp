// A model's sensors, MuJoCo's kinds, layout and signs, all in one pass over a state.
//
//   stage           kinds
//   position        jointpos ballquat tendonpos actuatorpos framepos framequat framexaxis frameyaxis framezaxis
//                   subtreecom jointlimitpos tendonlimitpos insidesite magnetometer rangefinder clock e_potential
//                   distance normal fromto (between geoms or bodies, as far as the cutoff)
//   velocity        jointvel ballangvel tendonvel actuatorvel velocimeter gyro framelinvel frameangvel subtreelinvel
//                   subtreeangmom jointlimitvel tendonlimitvel e_kinetic
//   acceleration    accelerometer framelinacc frameangacc force torque actuatorfrc jointactfrc tendonactfrc
//                   jointlimitfrc tendonlimitfrc (of the last step, 0 before it)
//   contact         touch, contact (by geoms, bodies, subtrees, sites; found force torque dist pos normal tangent)
//
// Accelerations feel gravity, as a device does. Cutoffs hold, noise is left to the user. Other kinds read nan, and
// the reader warns of them.
#pragma once

#include <memory>
#include <optional>

#include "tarsus/control/actuation.hpp"
#include "tarsus/model/sensor_kind.hpp"

namespace tarsus {

/// The inside of a site.
struct SiteZone {
  LinkFrame frame;
  GeomType type = GeomType::sphere;
  Vec3d size{};
};

struct Sensor {
  std::string name;
  SensorKind kind = SensorKind::none;  ///< none: not computed
  int dimension = 0, address = 0;      ///< numbers, and the first one's place in sensordata
  int object = -1;                     ///< joint, tendon, actuator or body
  unsigned ray_fields = 0;             ///< what a rangefinder gives, a bit each
  LinkFrame frame, reference;          ///< of what it sits on, of what it is seen from
  int body = -1;                       ///< that it sits on
  bool has_reference = false;
  double cutoff = 0;
  SiteZone zone;  ///< touch, insidesite
  Location where;
};

/// A force on a body from outside of the tree: a contact's, a constraint's.
struct BodyForce {
  int body = 0;
  Vec3d point, force, torque;  ///< world axes [m, N, N m]
};

/// A contact between two shapes, as sensors see it.
struct TouchPoint {
  int body_a = 0, body_b = 0;
  int geom_a = 0, geom_b = 0;  ///< among their body's
  Vec3d point, normal;         ///< world axes; normal from b to a
  double distance = 0;         ///< of the shapes, negative: as deep [m]
  Vec3d force{0, 0, 0};        ///< on a, world axes [N]
  Vec3d torque{0, 0, 0};       ///< of torsional and rolling friction, on a [N m]
  double margin = 0;           ///< forces begin at that distance [m]
};

/// What acted over a step besides the model's own forces.
struct StepForces {
  bool known = true;                ///< false: nobody kept them
  std::vector<BodyForce> external;  ///< contacts; connect and weld constraints
  std::vector<TouchPoint> contacts;
  std::vector<double> joint_limit, tendon_limit;  ///< [njoint], [ntendon] forces of ranges, or empty: none [N | N m]
  std::vector<double> tendon_along;  ///< [ntendon] forces of equalities and dry friction along tendons, or empty
};

inline const StepForces kNoForces{};

template <class R>
class Stepper;
/// Of a world in a stepper's last step of `data`. Not known of one that is not ok, nor of lanes with contacts or limits
/// that do not feel (Stepper::feel()).
template <class R>
StepForces step_forces(const Model& model, const Stepper<R>& stepper, const BasicData<R>& data, int world = 0);

/// A contact sensor: which contacts, how many of them, what of each.
struct ContactQuery {
  struct Side {
    int geom = -1;                 ///< among its body's, -1: any
    std::vector<char> bodies;      ///< [nbody] whose; empty: anybody's
    std::optional<SiteZone> zone;  ///< that the contact point is within
  };
  enum Field : unsigned { found = 1, force = 2, torque = 4, distance = 8, position = 16, normal = 32, tangent = 64 };
  enum class Order { none, nearest, strongest, net };  ///< net: one force and torque for all
  Side first, second;
  unsigned fields = found;
  Order order = Order::none;
  int slots = 1;
  int width = 1;  ///< numbers in a slot
};

/// The state that sensors look at.
struct SensorInput {
  double time = 0;
  std::span<const double> qpos, qvel, qacc, ctrl, act;
  std::span<const double> mocap_pos = {}, mocap_quat = {};  ///< as Data's; empty: where the file has them
  const StepForces& forces = kNoForces;                     ///< not known: sensors that feel contact read nan
  std::span<const double> mass_scale = {}, gravity = {};    ///< WorldTable's of the world; empty: the model's
};

class SensorSet {
 public:
  /// Keeps a reference to the model. @throws InputError naming what a sensor refers to and is not there
  explicit SensorSet(const Model& model);
  ~SensorSet();
  SensorSet(SensorSet&&) noexcept;

  int size() const { return int(sensors_.size()); }
  int numbers() const { return numbers_; }  ///< in sensordata
  /// Some sensor needs what StepForces has.
  bool feels_contact() const { return feels_contact_; }
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
  void add_ray_fields(const SensorSpec& spec, Sensor& sensor);
  void add_shapes(const SensorSpec& spec, Sensor& sensor);
  void read_ray(const Sensor& s, double* out) const;
  void read_gap(const Sensor& s, double* out) const;
  void find_links();
  void find_motions(const SensorInput& state);
  void add_contact_query(const SensorSpec& spec, Sensor& sensor);
  void read_contacts(const Sensor& s, const SensorInput& state, double* out) const;
  static void write_contact(const ContactQuery& query, double found, const TouchPoint& c, bool turned, double* out);
  void find_forces(const SensorInput& state);
  void find_subtrees();

  const Model& model_;
  Actuation actuation_;
  std::vector<Sensor> sensors_;
  std::vector<ContactQuery> contact_queries_;  // Sensor::object of contact sensors
  int numbers_ = 0;
  bool feels_contact_ = false, needs_forces_ = false, needs_subtrees_ = false, needs_actuation_ = false,
       needs_energy_ = false, needs_all_links_ = false;
  std::vector<int> links_;  // whose motion some sensor needs, from the root on
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace tarsus
