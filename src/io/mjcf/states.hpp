// What MJCF elements say while default classes are being overlaid: the spec's fields plus what can only be settled when
// the whole element is known (angles, limits left to "auto", fromto, gains of shortcuts).
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

/// <compiler>, MuJoCo's defaults.
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

/// A frame in another: p_outer = position + R(orientation) p_inner.
struct Pose {
  Vec3d position{0, 0, 0};
  Quatd orientation{1, 0, 0, 0};
};
Pose compose(const Pose& outer, const Pose& inner);
bool is_identity(const Pose& pose);

enum class Limited { automatic, no, yes };

/// Angles as written, not yet radians.
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
  std::optional<std::array<double, 6>> ends;
};

/// What the elements of actuators say in different ways.
struct ActuatorLawState {
  ActuatorLawState() { gain_parameters[0] = 1; }
  std::string gain_type = "fixed", bias_type = "none", dynamics = "none";
  std::array<double, 10> gain_parameters{}, bias_parameters{}, dynamics_parameters{1};
  double inherit_range = 0;
  bool of_pid = false;  ///< a <pid> wrote some of it
  /// dcmotor and pid: what their law is made of when the element is complete.
  struct Motor {
    double constant = 0;                 ///< [N m/A], [V s/rad]
    double resistance = 0;               ///< [Ohm]
    double electric_time = 0;            ///< inductance over resistance
    std::array<double, 3> saturation{};  ///< torque, current, the current's rate
    std::array<double, 6> controller{};  ///< kp ki kd slewmax imax vmax
    std::array<double, 6> thermal{};     ///< resistance, capacity, time constant, dR/dT / R, at, around
    std::array<double, 5> lugre{};       ///< bristle's stiffness and damping, Coulomb, static, Stribeck's speed
    std::array<double, 3> cogging{};     ///< torque, periods in a turn, phase
    double integral = 0, integral_max = 0, slew_max = 0;  ///< pid's ki, imax, slewmax
    std::string input;                                    ///< which of its inputs there are; empty: its default
    std::array<double, 2> velocity_range{0, 0}, feedforward_range{0, 0};
  };
  Motor motor;
};

struct ActuatorState : ActuatorLawState {
  ActuatorSpec spec;
  Limited control_limited = Limited::automatic, force_limited = Limited::automatic,
          activation_limited = Limited::automatic;
  double armature = 0;  ///< of the motor, before its gear
  std::array<double, 3> damping{};
  int activation_count = -1;     ///< actdim; -1: what dyntype needs
  std::string kind = "general";  ///< of the element that wrote the law last
  /// The last law of each default class that has one, its own last, with the kind of the element that wrote it.
  std::vector<std::pair<std::string, ActuatorLawState>> laws;
  std::size_t outer_laws = 0;  ///< how many are of the classes around its own
};

struct EqualityState {
  bool active = true;
  std::vector<double> solver_reference, solver_impedance;
};

struct TendonState {
  TendonSpec spec;
  Limited limited = Limited::automatic, force_limited = Limited::automatic;
};

/// One default class, with everything inherited from its parents already in it.
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
  Pose camera, light;                                    ///< their places
  Vec3d light_direction{0, 0, -1};
};

/// Attributes of `own` replace those of the same name.
void overlay(const Attributes& own, Attributes& attributes);

// Overlays: what the element says replaces what the state holds. `compiler` for the units of orientations.
void overlay(const XmlElement& e, const Compiler& compiler, JointState& state);
void overlay(const XmlElement& e, const Compiler& compiler, GeomState& state);
void overlay(const XmlElement& e, const Compiler& compiler, SiteState& state);
void overlay(const XmlElement& e, TendonState& state);
void overlay(const XmlElement& e, EqualityState& state);
void overlay(const XmlElement& e, ContactPairSpec& state);
/// Any of the actuator elements; the element's name decides what the parameters mean.
void overlay(const XmlElement& e, ActuatorState& state);
bool is_actuator(std::string_view element);
/// Errors at attributes that MJCF does not give to an element of looks, sizes or custom data, at values that are not
/// theirs, and at other elements.
void refuse_unknown(const XmlElement& e);
/// An error where the value of an attribute without effect here is not what MJCF has there. `kind`: how many numbers
/// ("4", "1-5", "*" for any; with i behind it whole ones: "2i"), "bool", words ("none|edge|cross"), or several of them
/// ("+rgb|depth").
void check_value(const XmlElement& e, const char* attribute, std::string_view kind);
/// Errors at elements whose name an earlier one of the list has.
void refuse_repeated(const std::vector<XmlElement>& elements);
/// Errors at attributes that MJCF gives to other actuators.
void refuse_others_attributes(const XmlElement& e);
/// Errors for what MuJoCo refuses of a complete one.
void check_actuator(const XmlElement& e, const ActuatorState& state);
/// Errors for what MuJoCo refuses of a sensor's attributes; false where it lacks one. `traits`: null for other kinds.
bool check_sensor(const XmlElement& e, const SensorTraits* traits);

void read_compiler(const XmlElement& e, Compiler& compiler);
/// @param angles in the compiler's unit, about the axes of its eulerseq
Quatd from_euler(const std::array<double, 3>& angles, const Compiler& compiler);
/// quat, axisangle, euler, xyaxes or zaxis; at most one.
bool read_orientation(const XmlElement& e, const Compiler& compiler, Quatd& out);
bool read_limited(const XmlElement& e, const char* attribute, Limited& out);
/// Numbers in the place of the first ones of `out`, a class's: what a shorter list leaves out stays.
bool read_over(const XmlElement& e, const char* attribute, Count count, std::vector<double>& out);
/// solref and solimp under their various names.
void read_solver(const XmlElement& e, const char* reference, const char* impedance, std::vector<double>& reference_out,
                 std::vector<double>& impedance_out);
/// One of `words`, else an error; false if absent or bad.
bool read_word(const XmlElement& e, const char* attribute, const std::vector<std::string_view>& words,
               std::string& out);
/// Reports an error if the attribute is missing.
bool require(const XmlElement& e, const char* attribute);
/// "auto" settled by the range, and a limit without a range is an error.
bool settle_limit(const XmlElement& e, const Compiler& compiler, Limited limited, const char* limited_name,
                  const char* range_name, const std::array<double, 2>& range);
/// A capsule's, cylinder's, box's or ellipsoid's place from its two ends.
bool place_between(const XmlElement& e, const std::array<double, 6>& ends, GeomType type, Vec3d& size, Vec3d& position,
                   Quatd& orientation);
/// Sizes that the type needs are there and positive; a plane's grid gets its spacing.
bool check_size(const XmlElement& e, GeomType type, Vec3d& size);

}  // namespace tarsus::mjcf
