// The links and joints of a URDF file, between its text and a ModelSpec. They have source positions and are not yet
// connected to a tree.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "tarsus/io/read_options.hpp"
#include "tarsus/io/xml.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus::urdf {

constexpr double kNoLimit = 1e10;  ///< a limit of at least this means no limit, because urdfdom does not read "inf"

struct Pose {
  Vec3d position{0, 0, 0};
  Quatd orientation{1, 0, 0, 0};
};

struct Link {
  BodySpec body;  ///< name, inertial, geoms
  bool has_inertial = false;
  std::string negative;  ///< the message about an inertia that is not positive definite, else empty
  std::vector<int> child_joints;
  int parent_joint = -1;
};

struct Mimic {
  std::string joint;
  double multiplier = 1, offset = 0;
  Location where;
};

struct Joint {
  std::string name, type;
  Location where;
  std::string parent, child;
  int parent_link = -1, child_link = -1;
  Pose origin;
  std::vector<JointSpec> joints;         ///< none for a fixed joint, two for a screw
  std::optional<EqualitySpec> coupling;  ///< the equality of a screw
  std::optional<Mimic> mimic;
};

/// Reads each mesh once, even if several geoms share it.
class MeshCache {
 public:
  MeshCache(ModelSpec& spec, const ReadOptions& options) : spec_(spec), options_(options) {}
  /// Name of the MeshSpec for this file and scale. Reads the file on the first call. A mesh that cannot be read is
  /// reported to the element's sink: as a note for looks, as a warning for the first <collision> that uses it.
  std::string name_of(const XmlElement& mesh, const std::string& uri, const Vec3d& scale, bool looks);

 private:
  struct Known {
    std::string name;
    std::string missing;  ///< the reason why there is no surface; empty if there is one
    bool told = false;
  };
  std::string unused_name(const std::string& uri);
  MeshSpec read(const XmlElement& element, const std::string& uri, const Vec3d& scale, Known& known);

  ModelSpec& spec_;
  const ReadOptions& options_;
  std::map<std::string, Known> known_;  ///< by uri and scale
  std::set<std::string> used_;
};

struct Material {
  std::optional<std::array<float, 4>> rgba;
};
using Materials = std::map<std::string, Material>;

/// The pose of a child <origin> (`xyz`, `rpy`); the identity if there is none.
Pose read_origin(const XmlElement& owner);
/// Rotation about fixed axes: roll about x, then pitch about y, then yaw about z.
Quatd from_rpy(const Vec3d& rpy);
/// Warns about unread attributes and children; each kind of child once.
void report_rest(const XmlElement& element);
/// Reads the attribute. If it is missing or invalid, reports an error and returns false.
bool require(const XmlElement& element, const char* attribute, std::string& out);
bool require(const XmlElement& element, const char* attribute, double& out);

Link read_link(const XmlElement& element, const Materials& materials, MeshCache& meshes, const ReadOptions& options);
Joint read_joint(const XmlElement& element);
void read_material(const XmlElement& element, Materials& materials);

/// Connects links and joints and checks that they form one tree. Reports to `sink`.
/// @return index of the root link, -1 if there is none
int connect(std::vector<Link>& links, std::vector<Joint>& joints, DiagnosticSink& sink, const Location& robot);

}  // namespace tarsus::urdf
