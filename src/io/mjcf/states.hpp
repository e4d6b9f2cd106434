// The state of MJCF elements while default classes are overlaid: the spec's fields, and values that can be settled only
// when the element is complete (angles, "auto" limits, fromto, gains of shortcuts).
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tarsus/geometry/inertia.hpp"
#include "tarsus/io/xml.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/sensor_kind.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus::mjcf {

using Attributes = std::vector<std::pair<std::string, std::string>>;

/// Settings of <compiler>, with MuJoCo's defaults.
struct Compiler {
  bool degrees = true;
  std::string euler_sequence = "xyz";
  bool auto_limits = true;
  std::optional<bool> inertia_from_geom;  ///< nullopt: auto
  std::array<int, 2> inertia_groups{0, 5};
  std::string mesh_directory, texture_directory;
  bool strip_path = false;
  bool balance_inertia = false;
  double bound_mass = 0, bound_inertia = 0, total_mass = -1;
  bool fit_bounding_box = false;
  bool align_free = false, fuse_static = false;

  double radians(double angle) const { return degrees ? angle * (kPi / 180) : angle; }
};

/// Pose of a frame in another: p_outer = position + R(orientation) p_inner.
struct Pose {
  Vec3d position{0, 0, 0};
  Quatd orientation{1, 0, 0, 0};
};
Pose compose(const Pose& outer, const Pose& inner);
bool is_identity(const Pose& pose);

enum class Limited { automatic, no, yes };

/// Angles are as written, not yet in radians.
struct JointState {
  JointSpec spec;
  Limited limited = Limited::automatic, force_limited = Limited::automatic;
  std::array<double, 2> spring_damper{0, 0};  ///< time constant [s], damping ratio; both positive or unused
};

struct GeomState {
  GeomSpec spec;
  std::optional<std::array<double, 6>> ends;  ///< fromto
  double fit_scale = 1;
};

struct SiteState {
  SiteSpec spec;
  std::string mesh;
  std::optional<std::array<double, 6>> ends;
};

/// The law that the different actuator elements express in different ways.
struct ActuatorLawState {
  ActuatorLawState() { gain_parameters[0] = 1; }
  std::string gain_type = "fixed", bias_type = "none", dynamics = "none";
  std::array<double, 10> gain_parameters{}, bias_parameters{}, dynamics_parameters{1};
  double inherit_range = 0;
  const char* motor_element = nullptr;  ///< "dcmotor" or "pid" if such an element wrote a part of the law
  /// Constants of dcmotor and pid, from which their law is made when the element is complete.
  struct Motor {
    double constant = 0;                 ///< [N m/A], [V s/rad]
    double resistance = 0;               ///< [Ohm]
    double electric_time = 0;            ///< inductance over resistance [s]
    std::array<double, 3> saturation{};  ///< torque, current, rate of current
    std::array<double, 6> controller{};  ///< kp ki kd slewmax imax vmax
    std::array<double, 6> thermal{};     ///< resistance, capacity, time constant, dR/dT / R, its temperature, ambient
    std::array<double, 5> lugre{};       ///< bristle stiffness and damping, Coulomb and static friction, Stribeck speed
    std::array<double, 3> cogging{};     ///< torque, periods a turn, phase
    double integral = 0, integral_max = 0, slew_max = 0;  ///< pid's ki, imax, slewmax
    std::string input;                                    ///< the inputs that are present; empty: the default
    std::array<double, 2> velocity_range{0, 0}, feedforward_range{0, 0};
  };
  Motor motor;
};

struct ActuatorState : ActuatorLawState {
  ActuatorSpec spec;
  Limited control_limited = Limited::automatic, force_limited = Limited::automatic,
          activation_limited = Limited::automatic;
  double armature = 0;  ///< of the motor, before the gear
  std::array<double, 3> damping{};
  double delay = 0;  ///< delay and nsample: not used
  int samples = 0;
  int activation_count = -1;     ///< actdim; -1: what dyntype needs
  std::string kind = "general";  ///< element that last wrote the law
  /// The final law of each default class that has one, with the kind of the element that wrote it, from the outermost
  /// class to this one.
  std::vector<std::pair<std::string, ActuatorLawState>> laws;
  std::size_t outer_laws = 0;  ///< number of these laws from enclosing classes
};

struct EqualityState {
  bool active = true;
  std::vector<double> solver_reference, solver_impedance;
};

struct TendonState {
  TendonSpec spec;
  Limited limited = Limited::automatic, force_limited = Limited::automatic;
  double width = 0.003;
  std::string material;
};

/// A default class, including all that it inherits.
struct Defaults {
  JointState joint;
  GeomState geom;
  SiteState site;
  ActuatorState actuator;
  EqualityState equality;
  TendonState tendon;
  ContactPairSpec pair;
  Vec3d mesh_scale{1, 1, 1};
  std::string mesh_inertia = "legacy";
  std::map<std::string, Attributes, std::less<>> looks;  ///< material, texture, camera, light
  Pose camera, light;                                    ///< their poses
  Vec3d light_direction{0, 0, -1};
};

/// Attributes of `own` replace those of the same name.
void overlay(const Attributes& own, Attributes& attributes);

// Overlays: an element's attributes replace the values in the state. `compiler` has the units of orientations.
void overlay(const XmlElement& e, const Compiler& compiler, JointState& state);
void overlay(const XmlElement& e, const Compiler& compiler, GeomState& state);
void overlay(const XmlElement& e, const Compiler& compiler, SiteState& state);
void overlay(const XmlElement& e, TendonState& state);
void overlay(const XmlElement& e, EqualityState& state);
void overlay(const XmlElement& e, ContactPairSpec& state);
/// Any actuator element. The element's name determines the meaning of the parameters.
void overlay(const XmlElement& e, ActuatorState& state);
bool is_actuator(std::string_view element);
/// Takes the constants of a dcmotor or pid from the parameters of a <general>, in which MuJoCo saves them.
void take_motor_constants(ActuatorLawState& law);
/// For elements of looks, sizes or custom data: reports as errors attributes that MJCF does not have, invalid values,
/// and other elements.
void refuse_unknown(const XmlElement& e);
/// Reports an invalid value of an attribute that has no effect here. `kind` is a count of numbers ("4", "1-5", "*" for
/// any; "2i" for integers), "bool", one of several words ("none|edge|cross"), or any number of them ("+rgb|depth").
void check_value(const XmlElement& e, const char* attribute, std::string_view kind);
/// Checks the attribute maxhullvert of a <mesh>, which is not used.
void check_hull_limit(const XmlElement& e);
/// Refuses a delay without the history buffer that it needs.
void check_delay(const XmlElement& e, double delay, int samples);
/// Reports elements with the same tag as an earlier one in the list.
void refuse_repeated(const std::vector<XmlElement>& elements);
/// Reports attributes that only other actuators have.
void refuse_others_attributes(const XmlElement& e);
/// Reports what MuJoCo refuses of the law of a dcmotor or pid in a complete actuator of another kind.
void check_motor_law(const XmlElement& e, const ActuatorState& state);
/// Reports what MuJoCo refuses of a complete actuator.
void check_actuator(const XmlElement& e, const ActuatorState& state);
/// Reports what MuJoCo refuses of a sensor's attributes; false if one is missing. `traits` is null for kinds without
/// traits.
bool check_sensor(const XmlElement& e, const SensorTraits* traits);

void read_compiler(const XmlElement& e, Compiler& compiler);
/// @param angles in the compiler's unit, about the axes of its eulerseq
Quatd from_euler(const std::array<double, 3>& angles, const Compiler& compiler);
/// Reads quat, axisangle, euler, xyaxes or zaxis, of which at most one is allowed.
bool read_orientation(const XmlElement& e, const Compiler& compiler, Quatd& out);
bool read_limited(const XmlElement& e, const char* attribute, Limited& out);
/// Replaces the first numbers of `out`, which are a class's. A shorter list leaves the others as they are.
bool read_over(const XmlElement& e, const char* attribute, Count count, std::vector<double>& out);
/// Reads solref and solimp under their various names.
void read_solver(const XmlElement& e, const char* reference, const char* impedance, std::vector<double>& reference_out,
                 std::vector<double>& impedance_out);
/// Reads one of `words`; any other word is an error. False if absent or invalid.
bool read_word(const XmlElement& e, const char* attribute, const std::vector<std::string_view>& words,
               std::string& out);
/// Reports an error if the attribute is missing.
bool require(const XmlElement& e, const char* attribute);
/// Settles "auto" by the presence of a range. A limit without a range is an error.
bool settle_limit(const XmlElement& e, const Compiler& compiler, Limited limited, const char* limited_name,
                  const char* range_name, const std::array<double, 2>& range);
/// The pose and size of a capsule, cylinder, box or ellipsoid from its two ends.
bool place_between(const XmlElement& e, const std::array<double, 6>& ends, GeomType type, Vec3d& size, Vec3d& position,
                   Quatd& orientation);
/// Checks that the sizes that the type needs are present and positive. A plane without grid spacing gets spacing 1.
bool check_size(const XmlElement& e, GeomType type, Vec3d& size);

}  // namespace tarsus::mjcf
