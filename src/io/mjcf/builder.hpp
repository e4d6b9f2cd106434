// Typed tree → ModelSpec. A model has one Builder, and a Source for each file that it attaches.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/mjcf/source.hpp"
#include "tarsus/model/sensor_kind.hpp"

namespace tarsus::mjcf {

/// The prefix and suffix that <attach> and <replicate> add to names.
struct Naming {
  std::string prefix, suffix;
  auto operator<=>(const Naming&) const = default;
  std::string of(std::string_view name) const {
    return name.empty() ? std::string() : prefix + std::string(name) + suffix;
  }
};

/// A source as it is used in the model: the main model, or one attachment of another.
struct Scope {
  const Source* source = nullptr;
  Naming naming;
  int level = 0;               ///< depth of attachment; above 0, elements with unattached references are left out
  int replica = 0;             ///< index of the innermost enclosing replica, in the order of the walk; 0: none
  int order = 0;               ///< index of the attachment among all attachments and replicas of the walk
  bool world_is_body = false;  ///< the model's world was attached as a body, which "world" then names
};

enum class Kind {
  body,
  joint,
  geom,
  site,
  mesh,
  height_field,
  material,
  texture,
  actuator,
  equality,
  tendon,
  pair,
  exclude,
  key,
  sensor,
  camera,
  light,
  numeric,
  text,
  tuple,
  frame,
  count
};
const char* name(Kind kind);

/// An attribute that names another element.
struct Reference {
  const char* attribute;
  Kind kind;
};
/// The references in an element of a section, without those in a tendon's child elements. Marks nothing as read.
std::vector<Reference> references(const XmlElement& e);

class Builder {
 public:
  Builder(const ReadOptions& options, DiagnosticSink& sink) : options_(options), sink_(sink) {}
  /// @throws InputError with all findings
  ModelSpec build(const Source& main, std::string directory);

 private:
  /// An element waiting to be visited. The walk keeps tasks on an explicit stack.
  struct Task {
    XmlElement element;
    Scope scope;
    int body = 0;
    Pose frame;                          ///< pose of the element's frame in the body
    const Defaults* defaults = nullptr;  ///< those of the nearest childclass
    int replica = -1;                    ///< index of the copy in its <replicate>; -1 before the <replicate> is opened
  };

  /// Identifies a body, joint or actuator by its element and names. The element is the same in a model read by itself
  /// and where that model is attached; the names differ.
  struct Origin {
    const void* element;
    Naming naming;
    auto operator<=>(const Origin&) const = default;
  };
  static Origin origin(const XmlElement& e, const Scope& scope) { return {e.id(), scope.naming}; }
  /// The place of an element's numbers in the two lists of a keyframe that belong to its kind.
  struct KeyPart {
    Origin origin;
    std::size_t kind, at[2], size[2];
  };
  std::vector<KeyPart> key_parts() const;

  // builder.cpp
  std::vector<Scope> read_bodies(const Source& main);

  // tree.cpp
  void walk(const Scope& scope);
  void visit(const Task& task);
  void push(const std::vector<XmlElement>& elements, const Task& like);
  void push_children(const XmlElement& parent, const Task& like);
  Task add_body(BodySpec body, const XmlElement& e, const Task& task);
  void open_body(const Task& task);
  void open_frame(const Task& task);
  void open_replicate(const Task& task);
  void open_replica(const Task& task);
  void enter_replica(Scope& scope);
  void attach(const Task& task);
  const Source* attached_source(const XmlElement& e, const Scope& scope, const std::string& model);
  const Source* load_source(const XmlElement& asset, const std::filesystem::path& path);
  void count_element(const XmlElement& e);

  // elements.cpp
  void add_joint(const Task& task);
  void finish_joint(const XmlElement& e, const Compiler& compiler, JointState& state);
  void check_joints(const XmlElement& e, int body, const JointSpec& joint);
  void add_inertial(const Task& task);
  void add_geom(const Task& task);
  void fit_to_mesh(const XmlElement& e, const Compiler& compiler, double scale, GeomSpec& spec);
  void add_site(const Task& task);
  void add_camera_or_light(const Task& task);

  // assets.cpp
  void read_assets(const Scope& scope);
  void read_mesh_asset(const XmlElement& e, const Scope& scope);
  void read_inline_mesh(const XmlElement& e, MeshSpec& mesh);
  bool load_mesh(const XmlElement& e, const Scope& scope, const std::string& content_type, MeshSpec& mesh,
                 std::vector<std::array<int, 2>>& objects);
  void read_height_field(const XmlElement& e, const Scope& scope);
  void load_height_field(const XmlElement& e, const Scope& scope, const std::string& content_type,
                         HeightFieldSpec& field);
  void keep(const XmlElement& e, const Scope& scope, Kind kind, int body, Attributes attributes);
  void check_looks();
  const ShapeInertia* mesh_mass(int mesh, const XmlElement* used_by);

  // body_inertia.cpp
  void settle_inertias();
  std::optional<InertialSpec> from_geoms(int body);
  std::optional<ShapeInertia> geom_mass(const GeomSpec& geom);
  void check_inertia(int body);
  void check_moving_bodies();

  // sections.cpp
  void read_settings(const Scope& scope);
  void read_option(const XmlElement& e);
  void read_flags(const XmlElement& e);
  void read_sections(const std::vector<Scope>& scopes);
  std::vector<std::pair<XmlElement, Scope>> elements(std::string_view section, const std::vector<Scope>& scopes);
  void read_contact(const XmlElement& e, const Scope& scope);
  void read_equality(const XmlElement& e, const Scope& scope);
  void read_tendon(const XmlElement& e, const Scope& scope);
  bool read_path(const XmlElement& e, const Scope& scope, TendonSpec& tendon);
  void read_actuator(const XmlElement& e, const Scope& scope);
  bool find_transmission(const XmlElement& e, const Scope& scope, ActuatorSpec& spec);
  void settle_actuator(const XmlElement& e, const Compiler& compiler, ActuatorState& state);
  void settle_motor(const XmlElement& e, ActuatorState& state);
  void add_motor(const ActuatorState& state);
  void inherit_range(const XmlElement& e, ActuatorState& state);
  void name_default_softness(const XmlElement& root);

  // keyframes.cpp
  void read_keyframes(const std::vector<Scope>& scopes);
  KeyframeSpec drawn_key() const;
  KeyframeSpec key_numbers(const XmlElement& e);
  KeyframeSpec attached_key(const XmlElement& e, const Scope& scope);
  /// Normalises the quaternions of a keyframe. A zero quaternion becomes the identity, as in MuJoCo, with a warning.
  void check_rotations(const XmlElement& e, KeyframeSpec& key);
  Builder& stand_alone(const Source& source);

  // sensors.cpp
  bool find_sensed(const XmlElement& e, const Scope& scope, SensorSpec& sensor);
  void check_sensed(const XmlElement& e, const SensorTraits& traits, const SensorSpec& sensor);
  void find_mesh_frame(const XmlElement& e, GeomSpec& geom);
  void find_mesh_frames(const XmlElement& e, const SensorSpec& sensor);
  void read_sensor(const XmlElement& e, const Scope& scope);

  // reference_inertia.cpp
  void settle_by_inertia();

  // Names.
  /// Registers a name; false (and an error) if it is taken. With a scope, also records that the scope's replica
  /// declares the original name.
  bool declare(Kind kind, const std::string& name, const XmlElement& e, const Scope* scope = nullptr);
  int find(Kind kind, const std::string& name) const;
  /// The joint with this number in document order.
  JointSpec& joint(int number);
  /// Index of the element that `attribute` names. -1 if the attribute is absent. -2 if there is no such element, with
  /// an error or, in an attached scope, a note.
  int reference(const XmlElement& e, const char* attribute, Kind kind, const Scope& scope,
                std::string* full_name = nullptr);
  /// The scopes in which to read an element of a section: its own, or one for each replica with the elements that it
  /// refers to. With `whole`, only replicas that contain all of them.
  std::vector<Scope> instances(const XmlElement& e, const Scope& scope, bool whole);
  /// Reports a name that belongs both to a replica of one element and to another element that is replicated.
  void refuse_ambiguous(const XmlElement& e, const Reference& reference, const Scope& scope) const;
  /// Replicas in which the name was declared; null if there are none.
  const std::set<int>* made_in(Kind kind, const std::string& name) const;

  const ReadOptions& options_;
  DiagnosticSink& sink_;
  ModelSpec spec_;
  std::vector<Task> tasks_;
  std::size_t elements_ = 0;
  std::vector<Scope> attachments_;
  std::map<std::string, std::unique_ptr<Source>> sources_;  ///< attached models by file
  std::set<std::pair<const Source*, std::string>> assets_read_;

  std::unordered_map<std::string, int> names_[static_cast<int>(Kind::count)];
  struct Replicas {
    struct Replica {
      std::string suffix;
      int outer = 0;
      int order = 0;  ///< among all attachments and replicas of the walk
    };
    std::vector<Replica> all{{}};                         ///< in the walk's order; the first: outside all replicas
    std::unordered_map<std::string, std::set<int>> made;  ///< "kind/name" → replicas that declare it
    int opened = 0;                                       ///< number of attachments and replicas opened so far
    std::set<std::string> actuators_left_out;             ///< they refer to replicated and to other elements
  };
  Replicas replicas_;

  // Parallel to spec_.bodies: the compiler settings, and whether <inertial> was given.
  std::vector<const Compiler*> body_compiler_{nullptr};
  std::vector<bool> explicit_inertia_{false};
  struct Origins {
    struct OfBody {
      Origin own;
      std::vector<Origin> joints;
    };
    std::vector<OfBody> bodies{{}};
    std::vector<Origin> actuators;
    std::map<const Source*, std::unique_ptr<Builder>> alone;  ///< attached models, each read as a main model
  };
  Origins origins_;
  std::vector<std::pair<int, int>> joint_place_;  ///< [number in document order] (body, index in the body)
  std::vector<std::optional<ShapeInertia>> mesh_mass_;
  std::vector<std::vector<std::array<int, 2>>> mesh_objects_;  ///< [mesh] MeshData::object
  struct Springs {                                             ///< a joint whose spring has a time constant and a ratio
    int joint;
    std::array<double, 2> spring_damper;
  };
  std::vector<Springs> springs_;
  std::vector<std::pair<int, double>> damping_ratios_;  ///< (actuator, ratio)
  int controls_ = 0, activations_ = 0;
};

}  // namespace tarsus::mjcf
