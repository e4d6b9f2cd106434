// ModelSpec: an editable model, close to its source text. Readers (io) fill it, compile() turns it into an immutable
// Model, and writers turn it back into text. It contains no derived quantities. Units are SI and radians throughout:
// angles are already converted, defaults and childclasses applied, <frame> and <replicate> expanded.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/math/vec.hpp"
#include "tarsus/model/joint_type.hpp"

namespace tarsus {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One joint of a body. The joints of a body act in order; each moves the body frame of the following ones.
struct JointSpec {
  std::string name;
  JointType type = JointType::hinge;
  Vec3d position{0, 0, 0};      ///< anchor in the body frame [m]; unused by free
  Vec3d axis{0, 0, 1};          ///< unit, body frame; for types with has_axis() and chains (joint_type.hpp)
  Vec3d second_axis{0, 0, 0};   ///< unit, perpendicular to axis; for chains with two axes; zero: chosen automatically
  double reference = 0;         ///< value of qpos in the pose that the file defines [rad | m]; hinge and slide
  double spring_reference = 0;  ///< qpos at which the spring exerts no force [rad | m]; hinge and slide
  double stiffness = 0;         ///< spring k [N m/rad | N/m]
  double damping = 0;           ///< viscous d [N m s/rad | N s/m]
  std::array<double, 2> stiffness_polynomial{0, 0};  ///< spring force -(k + k1 x + k2 x²) x; hinge and slide
  std::array<double, 2> damping_polynomial{0, 0};    ///< damping force -(d + d1 |v| + d2 v²) v
  double armature = 0;                               ///< added to the diagonal of M [kg m² | kg]
  double friction_loss = 0;                          ///< dry friction [N m | N]
  bool limited = false;
  std::array<double, 2> range{0, 0};  ///< [rad | m]; ball: (0, largest angle)
  bool force_limited = false;
  std::array<double, 2> force_range{0, 0};     ///< limits on the total actuator force on this joint [N m | N]
  bool actuator_gravity_compensation = false;  ///< actuators apply the gravity compensation of bodies at this joint
  double velocity_limit = kInfinity;           ///< from URDF [rad/s | m/s]; kept but not enforced
  double margin = 0;                           ///< distance from the range at which the limit begins to act [rad | m]
  std::vector<double> solver_limit, solver_impedance;  ///< MJCF solreflimit, solimplimit as written
  std::vector<double> solver_friction_limit, solver_friction_impedance;
  int group = 0;
  std::vector<double> user;
  Location where;
};

/// Mass properties of one body, in the body frame.
struct InertialSpec {
  double mass = 0;                  ///< [kg]
  Vec3d com{0, 0, 0};               ///< centre of mass [m]
  Sym3d inertia{0, 0, 0, 0, 0, 0};  ///< about the centre of mass, in the body frame's axes [kg m²]
  Location where;
  std::optional<Quatd> axes{};  ///< principal axes, if the file gives them
};

enum class GeomType { plane, sphere, capsule, ellipsoid, cylinder, box, mesh, height_field, sdf };
const char* name(GeomType type);

/// A shape fixed to a body, for display, contact or both.
struct GeomSpec {
  std::string name;
  GeomType type = GeomType::sphere;
  Vec3d size{
      0, 0,
      0};  ///< MuJoCo's half-sizes: sphere (r), capsule and cylinder (r, half length), box and ellipsoid (x, y, z)
  Vec3d position{0, 0, 0};  ///< in the body frame [m]
  Quatd orientation{1, 0, 0, 0};
  std::string mesh;  ///< name of a MeshSpec, for mesh and for primitives fitted to a mesh
  /// Centre of mass and principal axes of the mesh in the geom's frame, i.e. MuJoCo's frame of the geom. Set for geoms
  /// that frame sensors name and for those with `fluid_ellipsoid`.
  Vec3d mesh_centre{0, 0, 0};
  Quatd mesh_axes{1, 0, 0, 0};
  std::string height_field;  ///< name of a height field asset
  int contype = 1, conaffinity = 1, condim = 3, priority = 0, group = 0;
  std::array<double, 3> friction{1, 0.005, 0.0001};        ///< sliding, torsional [m], rolling [m]
  std::vector<double> solver_reference, solver_impedance;  ///< MJCF solref, solimp as written
  double solver_mix = 1, margin = 0, gap = 0;
  std::optional<double> mass;    ///< [kg]; overrides density
  double density = 1000;         ///< [kg/m³]
  bool shell_inertia = false;    ///< mass on the surface, not in the volume
  bool fluid_ellipsoid = false;  ///< fluid forces from the ellipsoid model; false: from the body's inertia box
  std::array<double, 5> fluid_coefficients{0.5, 0.25, 1.5, 1, 1};  ///< drag blunt, slender, angular; lift Kutta, Magnus
  std::array<float, 4> rgba{0.5f, 0.5f, 0.5f, 1};
  std::string material;
  bool visual_only = false;  ///< URDF <visual>
  std::vector<double> user;
  Location where;
};

struct SiteSpec {
  std::string name;
  GeomType type = GeomType::sphere;
  Vec3d size{0.005, 0.005, 0.005};  ///< as GeomSpec's [m]
  Vec3d position{0, 0, 0};          ///< in the body frame [m]
  Quatd orientation{1, 0, 0, 0};
  int group = 0;
  std::array<float, 4> rgba{0.5f, 0.5f, 0.5f, 1};
  std::string material;
  std::vector<double> user;
  Location where;
};

/// bodies[0] is the world; every other body has parent < its own index.
struct BodySpec {
  BodySpec() = default;
  explicit BodySpec(std::string body_name) : name(std::move(body_name)) {}

  std::string name;
  int parent = -1;
  Vec3d position{0, 0, 0};  ///< of the body frame in the parent's frame, at qpos = reference [m]
  Quatd orientation{1, 0, 0, 0};
  bool mocap = false;               ///< its pose is an input (Data::mocap_pos)
  double gravity_compensation = 0;  ///< share of its weight that is compensated; 1: all
  std::vector<JointSpec> joints;    ///< empty: welded to the parent
  std::optional<InertialSpec>
      inertial;  ///< final mass properties, from <inertial> or from geoms; nullopt: none (mass zero)
  bool inertial_from_geoms = false;  ///< origin of `inertial`, for writing back
  std::vector<GeomSpec> geoms;
  std::vector<SiteSpec> sites;
  std::vector<double> user;
  Location where;
};

/// A triangle mesh, scaled, in the frame in which geoms place it.
struct MeshSpec {
  std::string name;
  std::string file;      ///< absolute path of the file that was read; as written if none was; empty for inline meshes
  Vec3d scale{1, 1, 1};  ///< vertices: S Rᵀ (v - p) of the file's v, with the scale and this position and orientation
  Vec3d reference_position{0, 0, 0};
  Quatd reference_orientation{1, 0, 0, 0};
  std::string inertia = "legacy";             ///< MJCF's keyword for the computation of its mass
  std::vector<Vec3d> vertices;                ///< [m]; empty if the file is missing and that is allowed
  std::vector<std::array<int, 3>> triangles;  ///< counter-clockwise from outside
  Location where;
};

/// A terrain as in MJCF: heights from 0 to 1 over a rectangle, in the frame of the geoms that use it.
struct HeightFieldSpec {
  std::string name;
  std::string file;              ///< as written; empty if the heights are in the text
  std::array<double, 4> size{};  ///< half x, half y, height of 1, thickness of the base below 0 [m]
  int rows = 0, columns = 0;     ///< points along y and along x; 0 if the file was not read
  std::vector<float> elevation;  ///< [rows * columns] row by row from -y to y; empty: flat, or the file was not read
  Location where;
};

enum class TransmissionType { joint, joint_in_parent, tendon, site, body, slider_crank, none };

/// The law of a gain or bias. other: not implemented (user, plugin).
enum class ActuatorLaw { none, fixed, affine, muscle, other };

/// MuJoCo's <dcmotor> and <pid> with states, several controls or a law that is not affine; control/motor.hpp has the
/// equations. A parameter of 0 disables the part that it belongs to.
struct MotorSpec {
  bool electric = false;  ///< dcmotor: the controller's torque acts through a winding; false: pid, it acts directly
  bool position = false, velocity = false, feedforward = false, voltage = false;  ///< its controls, in this order
  double kp = 0, ki = 0, kd = 0;                                                  ///< of the controller, torques
  double slew_max = 0, integral_max = 0, voltage_max = 0;      ///< [1/s] of the first control; |∫|; [V]
  double constant = 0, resistance = 0;                         ///< K [N m/A = V s], R [Ohm]
  double electric_time = 0, rate_max = 0;                      ///< L/R [s]; of the current [A/s]
  double heat_resistance = 0, heat_capacity = 0, ambient = 0;  ///< [K/W], [J/K]; ambient temperature
  double resistance_slope = 0, resistance_at = 0;              ///< of R, relative [1/K]; temperature at which R applies
  std::array<double, 3> cogging{};                             ///< amplitude, periods per turn, phase
  double bristle_stiffness = 0, bristle_damping = 0;           ///< LuGre
  double sliding_friction = 0, static_friction = 0, slide_speed = 0;  ///< LuGre: Coulomb, Stribeck

  int controls() const { return position + velocity + feedforward + voltage; }
  int activations() const {
    return (slew_max > 0) + (ki > 0) + (heat_resistance > 0) + (bristle_stiffness > 0) + (electric_time > 0);
  }
  bool controlled() const { return !electric || position || velocity || feedforward; }
  bool operator==(const MotorSpec&) const = default;
};

/// Scalar force on a transmission: gain(l, l̇) · (control or activation) + bias(l, l̇), MuJoCo's actuator.
struct ActuatorSpec {
  std::string name;
  std::string kind;  ///< name of the source element: motor, position, velocity, general, …
  TransmissionType transmission = TransmissionType::joint;
  std::string target;     ///< name of a joint, tendon, site (of the crank) or body
  std::string reference;  ///< site: refsite; slider_crank: slidersite; otherwise empty
  double crank_length = 0;
  std::array<double, 6> gear{1, 0, 0, 0, 0, 0};
  ActuatorLaw gain_law = ActuatorLaw::fixed, bias_law = ActuatorLaw::none;
  std::array<double, 3> gain{1, 0, 0};  ///< gain = gain[0] + gain[1] length + gain[2] velocity
  std::array<double, 3> bias{0, 0, 0};  ///< bias = bias[0] + bias[1] length + bias[2] velocity
  /// muscle: range (2), force, scale, lmin, lmax, vmax, fpmax, fvmax
  std::array<double, 9> muscle_gain{}, muscle_bias{};
  std::array<double, 2> length_range{0, 0};  ///< muscle: of the transmission
  bool control_limited = false;
  std::array<double, 2> control_range{0, 0};
  bool force_limited = false;
  std::array<double, 2> force_range{0, 0};
  bool activation_limited = false;
  std::array<double, 2> activation_range{0, 0};
  bool activation_early = false;  ///< the force uses the activation of the end of the step
  std::string dynamics;           ///< "" for none; else MuJoCo's dyntype
  int user_states = 1;  ///< number of activations; dyntype "user" and motors in a <general> may have more than one
  std::vector<double> dynamics_parameters;
  std::optional<MotorSpec> motor;  ///< replaces gain, bias and dynamics
  /// Ranges of the motor's controls after the first; low >= high: none.
  std::vector<std::array<double, 2>> more_control_ranges;
  int group = 0;
  std::vector<double> user;
  Location where;

  int controls() const { return motor ? motor->controls() : 1; }
  int activations() const { return motor ? motor->activations() : dynamics.empty() ? 0 : user_states; }
  /// Whether all parts of its law are implemented.
  bool computed() const {
    const bool known = dynamics.empty() || dynamics == "integrator" || dynamics == "filter" ||
                       dynamics == "filterexact" || dynamics == "muscle";
    return known && gain_law != ActuatorLaw::other && bias_law != ActuatorLaw::other;
  }
};

enum class EqualityType { connect, weld, joint, tendon, distance };

struct EqualitySpec {
  std::string name;
  EqualityType type = EqualityType::connect;
  std::string first,
      second;  ///< bodies or sites (connect, weld), joints (joint); an empty second means the world or a constant
  bool sites = false;  ///< first and second are sites
  bool active = true;
  bool idle = false;      ///< set by compile(): the constraint always holds without it
  Vec3d anchor{0, 0, 0};  ///< connect: in first's frame; weld: in second's frame [m]
  bool has_relative_pose = false;
  Vec3d relative_position{0, 0, 0};  ///< weld: pose of second in first's frame
  Quatd relative_orientation{1, 0, 0, 0};
  double torque_scale = 1;
  std::array<double, 5> polynomial{0, 1, 0, 0, 0};  ///< joint: first - ref = sum c_k (second - ref)^k
  std::vector<double> solver_reference, solver_impedance;
  Location where;

  bool acts() const { return active && !idle; }
};

/// A linear combination of joint positions, or a path through sites and around geoms.
struct TendonSpec {
  std::string name;
  bool spatial = false;
  struct Term {
    std::string joint;
    double coefficient = 0;
  };
  std::vector<Term> terms;  ///< of a fixed tendon
  enum class PathKind { site, geom, pulley };
  struct PathPoint {
    PathKind kind = PathKind::site;
    std::string name;       ///< of the site or geom
    std::string side_site;  ///< geom: site on the side on which the path goes around it; may be empty
    double divisor = 1;     ///< pulley: divides the lengths that follow
  };
  std::vector<PathPoint> path;  ///< of a spatial tendon
  double stiffness = 0, damping = 0, friction_loss = 0;
  std::array<double, 2> stiffness_polynomial{0, 0}, damping_polynomial{0, 0};  ///< as JointSpec's
  bool limited = false;
  std::array<double, 2> range{0, 0};
  bool force_limited = false;
  std::array<double, 2> force_range{0, 0};      ///< limits on the total actuator force along it [N | N m]
  std::array<double, 2> spring_length{-1, -1};  ///< dead band; -1: the length at qpos0
  double armature = 0, margin = 0;
  Location where;
};

struct ContactPairSpec {
  std::string name, geom1, geom2;
  std::vector<double> friction, solver_reference, solver_impedance;
  int condim = 3;
  double margin = 0, gap = 0;
  Location where;
};

struct ContactExcludeSpec {
  std::string name, body1, body2;
  Location where;
};

struct KeyframeSpec {
  std::string name;
  double time = 0;
  std::vector<double> qpos, qvel, act, ctrl, mocap_position, mocap_orientation;  ///< empty: model's default
  Location where;
};

/// As it was read; SensorSet (sim/sensor.hpp) knows what it means.
struct SensorSpec {
  std::string kind, name;
  std::vector<std::pair<std::string, std::string>> attributes;
  Location where;
};

/// Materials, textures and lights as they were read, for the viewer and for writing back.
struct CosmeticSpec {
  std::string kind;  ///< material, texture, light, camera, headlight, …
  std::string name;
  int body = 0;  ///< body that it is attached to
  std::vector<std::pair<std::string, std::string>> attributes;
  Location where;
};

struct OptionSpec {
  double timestep = 0.002;            ///< [s]
  Vec3d gravity{0, 0, -9.81};         ///< world frame [m/s²]
  Vec3d wind{0, 0, 0};                ///< velocity of the medium, world frame [m/s]
  double density = 0, viscosity = 0;  ///< of the surrounding medium [kg/m³, Pa s]
  Vec3d magnetic{0, -0.5, 0};         ///< magnetic flux density, world frame, for magnetometers
  double impact_ratio = 1;
  std::string integrator = "Euler", solver = "Newton", cone = "pyramidal";
  int iterations = 100;
  double tolerance = 1e-8;
  bool contact_enabled = true, gravity_enabled = true;
  bool actuation_enabled = true, spring_enabled = true, damper_enabled = true, clamp_controls = true;
  bool limit_enabled = true, friction_loss_enabled = true, equality_enabled = true;
  /// Attributes and flags without a meaning here, mostly of MuJoCo's own algorithms, kept unchanged for writing back.
  std::vector<std::pair<std::string, std::string>> kept, kept_flags;
};

/// How a model was read, so that a program can read it again.
struct ModelOrigin {
  std::string file;    ///< as given to the reader, or a built-in scene such as balls:4:4; empty: text, or made in code
  std::string folder;  ///< the current one when it was read
  std::vector<std::string> options;  ///< of the reader, as the command line takes them
};

struct ModelSpec {
  std::string name;
  std::string directory;           ///< directory of the main file, for relative paths
  std::vector<std::string> files;  ///< MJCF: canonical paths of the main, the included and the attached files
  OptionSpec option;
  std::vector<BodySpec> bodies = {BodySpec("world")};
  std::vector<MeshSpec> meshes;
  std::vector<HeightFieldSpec> height_fields;
  std::vector<ActuatorSpec> actuators;
  std::vector<EqualitySpec> equalities;
  std::vector<TendonSpec> tendons;
  std::vector<ContactPairSpec> contact_pairs;
  std::vector<ContactExcludeSpec> contact_excludes;
  std::vector<KeyframeSpec> keyframes;
  std::vector<SensorSpec> sensors;
  std::vector<CosmeticSpec> cosmetics;
  Diagnostics diagnostics;  ///< notes and warnings of the reader; errors are thrown
  ModelOrigin origin;
};

}  // namespace tarsus
