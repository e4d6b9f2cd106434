// URDF → ModelSpec: reads the parts, connects them, and lays the tree out depth first.
#include "tarsus/io/urdf.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model_origin.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/welded_inertia.hpp"
#include "urdf_parts.hpp"

namespace tarsus {

namespace urdf {

Quatd from_rpy(const Vec3d& rpy) {
  Quatd out{1, 0, 0, 0};
  for (int i = 2; i >= 0; --i) {
    Vec3d axis{0, 0, 0};
    axis[i] = 1;
    if (rpy[i] != 0) out = out * axis_angle(axis, rpy[i]);
  }
  return out;
}

Pose read_origin(const XmlElement& owner) {
  Pose pose;
  const XmlElement origin = owner.child("origin");
  if (!origin) return pose;
  Vec3d rpy{0, 0, 0};
  origin.read("xyz", pose.position);
  if (origin.read("rpy", rpy)) {
    pose.orientation = from_rpy(rpy);
    for (int i = 0; i < 3; ++i) {
      if (std::abs(rpy[i]) > 1e6) origin.error("an angle is larger than 1e6 radians", "rpy");
    }
  }
  report_rest(origin);
  return pose;
}

void report_rest(const XmlElement& element) { element.report_unread(Severity::warning); }

bool require(const XmlElement& element, const char* attribute, std::string& out) {
  if (!element.read(attribute, out) || out.empty()) {
    element.error(fmt::format("attribute '{}' is missing or empty", attribute));
    return false;
  }
  return true;
}

bool require(const XmlElement& element, const char* attribute, double& out) {
  if (!element.has(attribute)) {
    element.error(fmt::format("attribute '{}' is missing", attribute));
    return false;
  }
  return element.read(attribute, out);
}

namespace {

class Reader {
 public:
  Reader(const XmlDocument& document, const std::string& directory, const ReadOptions& options, DiagnosticSink& sink)
      : robot_(document.root()), options_(options), sink_(sink), meshes_(spec_, options) {
    spec_.directory = directory;
    spec_.bodies[0].where = robot_.where();
  }

  ModelSpec read();

 private:
  void read_parts();
  void add_world();
  void name_unused(const std::map<std::string, int>& unused, const std::map<std::string, XmlElement>& first);
  void lay_out(int root);
  void add_body(int link, int parent, bool parent_is_static);
  void place_free(BodySpec& body, const Location& where, bool parent_is_static);
  void add_mimics();
  void check_mimic_loops(const std::unordered_map<std::string, const Joint*>& joints);
  void check_masses();
  void check_negative();
  void check_geom_names();

  XmlElement robot_;
  const ReadOptions& options_;
  DiagnosticSink& sink_;
  ModelSpec spec_;
  MeshCache meshes_;
  std::vector<Link> links_;
  std::vector<Joint> joints_;
  std::map<int, std::string> negative_;  ///< by body: Link::negative
};

void Reader::read_parts() {
  if (!robot_.is("robot")) {
    const std::string root(robot_.name());
    robot_.error(root == "sdf" ? "SDF files are not supported; models are MJCF or URDF"
                               : fmt::format("the root element of a URDF is <robot>, not <{}>", root));
    return;
  }
  const std::vector<XmlElement> elements = robot_.children();
  spec_.name = robot_.text("name");
  if (spec_.name.empty()) robot_.warn("the robot has no name");
  const bool macros = std::any_of(elements.begin(), elements.end(),
                                  [](const XmlElement& e) { return e.name().substr(0, 6) == "xacro:"; });
  if (macros) {  // other findings would concern unexpanded text
    return robot_.error(
        "this is a xacro file, which contains macros: expand it with \"xacro FILE.xacro > FILE.urdf\" (ROS's package "
        "xacro, or pip install xacro) and read the result");
  }
  robot_.ignore({"version", "xmlns:xacro", "xmlns:drake", "xmlns:xsi", "xsi:schemaLocation", "xmlns"});
  Materials materials;
  std::map<std::string, int> unused;
  std::map<std::string, XmlElement> first;
  std::size_t links = 0, joints = 0;
  for (const XmlElement& e : elements) {
    if (e.is("material")) read_material(e, materials);
    links += e.is("link"), joints += e.is("joint") || e.is("drake:joint");
  }
  links_.reserve(links);
  joints_.reserve(joints);
  for (const XmlElement& e : elements) {
    if (e.is("link")) {
      links_.push_back(read_link(e, materials, meshes_, options_));
    } else if (e.is("joint") || e.is("drake:joint")) {
      joints_.push_back(read_joint(e));
    } else if (!e.is("material")) {
      if (unused[std::string(e.name())]++ == 0) first[std::string(e.name())] = e;
    }
  }
  name_unused(unused, first);
  add_world();
  report_rest(robot_);
}

/// Adds a link "world" if a joint has it as parent and the file does not define it.
void Reader::add_world() {
  const auto is_world = [](const Link& link) { return link.body.name == "world"; };
  if (std::any_of(links_.begin(), links_.end(), is_world)) return;
  const auto joint = std::find_if(joints_.begin(), joints_.end(), [](const Joint& j) { return j.parent == "world"; });
  if (joint == joints_.end()) return;
  sink_.add(Severity::note, joint->where,
            "there is no link named 'world': the joint's parent is taken to be the world");
  Link world;
  world.body.name = "world";
  world.body.where = joint->where;
  links_.push_back(std::move(world));
}

void Reader::name_unused(const std::map<std::string, int>& unused, const std::map<std::string, XmlElement>& first) {
  for (const auto& [name, count] : unused) {
    const Severity severity = name == "gazebo" || name == "transmission" ? Severity::note : Severity::warning;
    sink_.add(severity, first.at(name).where(), fmt::format("<{}> has no effect here; the file has {}", name, count));
  }
}

/// Adds the bodies depth first, with an explicit stack, so that a chain may have any length.
void Reader::lay_out(int root) {
  struct Entry {
    int link, parent;
    bool parent_is_static;
  };
  std::vector<Entry> open{{root, 0, true}};
  spec_.bodies.reserve(links_.size() + 1);
  while (!open.empty()) {
    const Entry e = open.back();
    open.pop_back();
    add_body(e.link, e.parent, e.parent_is_static);
    const int body =
        e.link == root && links_[root].body.name == "world" ? 0 : static_cast<int>(spec_.bodies.size()) - 1;
    const bool is_static = e.parent_is_static && spec_.bodies[body].joints.empty();
    const std::vector<int>& children = links_[e.link].child_joints;
    for (auto j = children.rbegin(); j != children.rend(); ++j)
      open.push_back({joints_[*j].child_link, body, is_static});
  }
}

void Reader::add_body(int index, int parent, bool parent_is_static) {
  Link& link = links_[index];
  BodySpec body = std::move(link.body);
  link.body.name = body.name;
  body.parent = parent;
  if (link.parent_joint < 0) {
    if (body.name == "world") {
      if (options_.floating_base)
        sink_.add(Severity::warning, body.where, "the link named 'world' is the world, which cannot float");
      body.parent = -1;
      spec_.bodies[0] = std::move(body);
      return;
    }
    if (options_.floating_base) {
      JointSpec joint;
      joint.name = "root_joint";
      joint.type = JointType::free;
      joint.where = body.where;
      body.joints = {joint};
    }
  } else {
    Joint& joint = joints_[link.parent_joint];
    body.position = joint.origin.position;
    body.orientation = joint.origin.orientation;
    body.joints = std::move(joint.joints);
    if (joint.coupling) spec_.equalities.push_back(*joint.coupling);
    if (joint.type == "floating") place_free(body, joint.where, parent_is_static);
    if (body.name == "world") sink_.add(Severity::error, body.where, "only the root link may be named 'world'");
  }
  if (!link.negative.empty()) negative_[static_cast<int>(spec_.bodies.size())] = link.negative;
  spec_.bodies.push_back(std::move(body));
}

/// Makes the world the parent of a body with a free joint, because the joint's qpos is a pose in the world.
void Reader::place_free(BodySpec& body, const Location& where, bool parent_is_static) {
  if (!parent_is_static) {
    sink_.add(Severity::error, where, "a floating joint below a link that moves is not supported");
    return;
  }
  for (int p = body.parent; p > 0; p = spec_.bodies[p].parent) {
    const BodySpec& up = spec_.bodies[p];
    body.position = rotate(up.orientation, body.position) + up.position;
    body.orientation = up.orientation * body.orientation;
  }
  body.parent = 0;
}

void Reader::add_mimics() {
  std::unordered_map<std::string, const Joint*> by_name;
  for (const Joint& joint : joints_) by_name.emplace(joint.name, &joint);
  const auto one_axis = [](const Joint& j) {
    return j.type == "revolute" || j.type == "continuous" || j.type == "prismatic";
  };
  for (const Joint& joint : joints_) {
    if (!joint.mimic) continue;
    const Mimic& mimic = *joint.mimic;
    const auto error = [&](const std::string& message) { sink_.add(Severity::error, mimic.where, message); };
    const auto other = by_name.find(mimic.joint);
    if (other == by_name.end()) {
      error(fmt::format("no joint is named {}", quote(mimic.joint)));
    } else if (other->second == &joint) {
      error("the joint mimics itself");
    } else if (joint.type == "fixed") {
      sink_.add(Severity::warning, mimic.where, "a fixed joint cannot mimic: <mimic> has no effect");
    } else if (!one_axis(joint) || !one_axis(*other->second)) {
      error(fmt::format("a {} joint cannot mimic a {} joint: both need one axis", joint.type, other->second->type));
    } else {
      EqualitySpec equality;
      equality.name = joint.name + "_mimic";
      equality.type = EqualityType::joint;
      equality.first = joint.name;
      equality.second = mimic.joint;
      equality.polynomial = {mimic.offset, mimic.multiplier, 0, 0, 0};
      equality.where = mimic.where;
      spec_.equalities.push_back(std::move(equality));
    }
  }
  check_mimic_loops(by_name);
}

void Reader::check_mimic_loops(const std::unordered_map<std::string, const Joint*>& joints) {
  std::unordered_map<const Joint*, int> seen;  // number of the walk that first visited the joint
  int walk = 0;
  for (const Joint& start : joints_) {
    ++walk;
    const Joint* at = &start;
    while (at && at->mimic && seen.emplace(at, walk).second) {
      const auto next = joints.find(at->mimic->joint);
      at = next == joints.end() || next->second == at ? nullptr : next->second;
    }
    if (at && at->mimic && seen[at] == walk)
      sink_.add(Severity::error, at->mimic->where, "these joints mimic each other in a loop");
  }
}

/// Reports inertias that are not positive definite. They are a warning if the link does not move, or if the total
/// inertia of the links fixed to it is positive definite. Otherwise they are an error.
void Reader::check_negative() {
  for (const auto& [body, message] : negative_) {
    const WeldedInertia welded = welded_inertia(spec_, body);
    const bool good = !welded.moves || welded.positive();
    sink_.add(
        good ? Severity::warning : Severity::error, spec_.bodies[body].inertial->where,
        message + (!welded.moves ? "; it is kept, because the link does not move"
                   : good ? "; it is kept, because the total inertia with the links fixed to it is positive definite"
                          : " (--fix balance makes all three moments their mean)"));
  }
}

/// Reports moving links without mass: a note if the link or its subtree has mass or inertia, else a warning.
void Reader::check_masses() {
  std::vector<char> massive(spec_.bodies.size(), false);
  for (std::size_t i = spec_.bodies.size(); i-- > 1;) {
    const BodySpec& body = spec_.bodies[i];
    const auto& inertial = body.inertial;
    if (inertial && (inertial->mass > 0 || eigen(inertial->inertia).values.x > 0)) massive[i] = true;
    if (massive[i] && body.parent > 0) massive[body.parent] = true;
    if (body.joints.empty() || (inertial && inertial->mass > 0)) continue;
    const std::string what = inertial ? "has mass zero" : "has no <inertial>";
    if (massive[i]) {
      sink_.add(Severity::note, body.where, fmt::format("link {} moves and {}", quote(body.name), what));
    } else {
      sink_.add(
          Severity::warning, body.where,
          fmt::format("link {} moves and {}, and the links below it have no mass either: forward dynamics are singular",
                      quote(body.name), what));
    }
  }
}

/// Clears the names of geoms whose name an earlier geom has.
void Reader::check_geom_names() {
  std::set<std::string> seen;
  for (BodySpec& body : spec_.bodies) {
    for (GeomSpec& geom : body.geoms) {
      if (geom.name.empty() || seen.insert(geom.name).second) continue;
      sink_.add(Severity::note, geom.where,
                fmt::format("a second shape is named {}: the name of this one is dropped", quote(geom.name)));
      geom.name.clear();
    }
  }
}

ModelSpec Reader::read() {
  read_parts();
  sink_.throw_if_failed();
  const int root = connect(links_, joints_, sink_, robot_.where());
  sink_.throw_if_failed();
  lay_out(root);
  add_mimics();
  check_masses();
  check_negative();
  check_geom_names();
  sink_.throw_if_failed();
  Diagnostics found = sink_.take();
  spec_.diagnostics.insert(spec_.diagnostics.begin(), found.begin(), found.end());
  return std::move(spec_);
}

}  // namespace

}  // namespace urdf

namespace {

ModelSpec read_document(const XmlDocument& document, const std::filesystem::path& directory, const ReadOptions& options,
                        DiagnosticSink& sink, const std::filesystem::path& file = {}) {
  ModelSpec spec = urdf::Reader(document, directory.string(), options, sink).read();
  spec.origin = model_origin(file, options);
  return spec;
}

}  // namespace

ModelSpec read_urdf(const std::filesystem::path& file, const ReadOptions& options) {
  DiagnosticSink sink;
  const XmlDocument document = XmlDocument::load(file, sink);
  return read_document(document, file.parent_path(), options, sink, file);
}

ModelSpec parse_urdf(std::string text, const std::string& name, const std::filesystem::path& directory,
                     const ReadOptions& options) {
  DiagnosticSink sink;
  const XmlDocument document = XmlDocument::parse(std::move(text), name, sink);
  return read_document(document, directory, options, sink);
}

}  // namespace tarsus
