#include "tarsus/io/urdf_writer.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "tarsus/math/elementary.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/joint_parts.hpp"
#include "urdf_parts.hpp"
#include "xml_writer.hpp"

namespace tarsus {

namespace {

/// Roll, pitch, yaw about fixed axes: R = Rz(yaw) Ry(pitch) Rx(roll). At pitch ±90° roll is zero.
Vec3d to_rpy(const Quatd& q) {
  const Mat3d r = rotation(normalized(q));
  const double cosine = elementary::hypot(r.xx, r.yx);
  if (cosine > 1e-12)
    return {elementary::atan2(r.zy, r.zz), elementary::atan2(-r.zx, cosine), elementary::atan2(r.yx, r.xx)};
  return {0, elementary::atan2(-r.zx, cosine), elementary::atan2(-r.xy, r.yy)};
}

void write_origin(const XmlWriter& parent, const Vec3d& position, const Quatd& orientation) {
  const XmlWriter e = parent.child("origin");
  e.set("xyz", position);
  if (orientation.x != 0 || orientation.y != 0 || orientation.z != 0) e.set("rpy", to_rpy(orientation));
}

/// Whether a shape may touch others, a <collision> of URDF.
bool collides(const GeomSpec& geom) { return !geom.visual_only && (geom.contype != 0 || geom.conaffinity != 0); }

class UrdfWriter {
 public:
  UrdfWriter(const ModelSpec& spec, const std::filesystem::path& folder)
      : spec_(spec), folder_(folder), anchors_(spec.bodies.size(), Vec3d{0, 0, 0}) {}
  std::string write(std::vector<std::string>* losses);

 private:
  void refuse(const Location& where, const std::string& message) {
    errors_.push_back({Severity::error, where, message});
  }
  void check();
  void check_joint(const BodySpec& body, const JointSpec& joint);
  void check_equality(const EqualitySpec& equality);
  void check_contacts();
  void name_everything();
  /// Names in use. The value is the suffix to try next if the name is requested again.
  using Names = std::map<std::string, int>;
  static std::string unused(Names& used, const std::string& wish);
  void write_body(const XmlWriter& robot, std::size_t index);
  void write_joint(const XmlWriter& robot, const std::string& name, const JointSpec* joint, const std::string& parent,
                   const std::string& child, const Vec3d& position, const Quatd& orientation);
  void write_contents(const XmlWriter& link, const BodySpec& body, const Vec3d& anchor);
  void write_shape(const XmlWriter& link, const GeomSpec& geom, const Vec3d& anchor);

  const ModelSpec& spec_;
  const std::filesystem::path& folder_;
  Diagnostics errors_;
  std::map<std::string, int> lost_;
  Names used_{{"world", 2}}, joint_names_;
  std::vector<std::string> links_;
  std::map<const JointSpec*, std::string> joints_;
  std::vector<Vec3d> anchors_;  ///< [body] origin of the body's link in the body's frame
};

void UrdfWriter::check_joint(const BodySpec& body, const JointSpec& joint) {
  if (joint.stiffness != 0) refuse(joint.where, "URDF has no springs: the joint's stiffness cannot be written");
  if (joint.armature != 0) refuse(joint.where, "URDF has no armature: the joint's armature cannot be written");
  if (joint.damping_polynomial != JointSpec().damping_polynomial)
    refuse(joint.where, "URDF's damping is linear: this joint's cannot be written");
  if (joint.limited && joint.margin != 0)
    refuse(joint.where, "URDF's ranges have no margin: this one cannot be written");
  if (turns_freely(joint.type) && joint.limited)
    refuse(joint.where, "URDF has no limit for a ball joint: this one cannot be written");
  if (joint.force_limited && joint.force_range[0] != -joint.force_range[1])
    refuse(joint.where, "URDF's effort is the same in both directions: this force range cannot be written");
  if (moves_freely(joint.type) && body.parent != 0)
    refuse(joint.where, "in URDF a free joint is possible only for a child of the world");
}

void UrdfWriter::check_equality(const EqualitySpec& q) {
  if (q.idle) return;
  const bool linear = q.type == EqualityType::joint && q.active && !q.second.empty() && q.polynomial[2] == 0 &&
                      q.polynomial[3] == 0 && q.polynomial[4] == 0;
  if (!linear) refuse(q.where, "URDF can only couple two joints linearly: this equality cannot be written");
}

/// URDF has no rules of contact: all shapes of different links touch one another, with the reader's friction.
void UrdfWriter::check_contacts() {
  lost_["contact pairs and excludes"] = static_cast<int>(spec_.contact_pairs.size() + spec_.contact_excludes.size());
  if (!spec_.option.contact_enabled) lost_["<flag contact=\"disable\"/>"] = 1;
  std::vector<const GeomSpec*> shapes;
  for (const BodySpec& body : spec_.bodies) {
    for (const GeomSpec& geom : body.geoms) {
      if (collides(geom)) shapes.push_back(&geom);
    }
  }
  const GeomSpec usual;
  for (const GeomSpec* a : shapes) {
    lost_["friction, condim, margins and softness of contacts"] +=
        a->condim != usual.condim || a->friction != usual.friction || a->margin != usual.margin ||
        a->gap != usual.gap || a->priority != usual.priority || a->solver_mix != usual.solver_mix ||
        !a->solver_reference.empty() || !a->solver_impedance.empty();
    lost_["contact masks (contype, conaffinity)"] += std::ranges::any_of(shapes, [&](const GeomSpec* b) {
      return a != b && (a->contype & b->conaffinity) == 0 && (b->contype & a->conaffinity) == 0;
    });
  }
}

void UrdfWriter::check() {
  for (const BodySpec& body : spec_.bodies) {
    if (body.mocap) refuse(body.where, "URDF has no mocap bodies");
    if (body.gravity_compensation != 0) refuse(body.where, "URDF has no gravity compensation");
    for (const JointSpec& joint : body.joints) check_joint(body, joint);
    lost_["sites"] += static_cast<int>(body.sites.size());
  }
  for (const EqualitySpec& q : spec_.equalities) check_equality(q);
  for (const TendonSpec& t : spec_.tendons) refuse(t.where, "URDF has no tendons");
  if (spec_.option.density != 0 || spec_.option.viscosity != 0) refuse({}, "URDF has no fluid (density, viscosity)");
  const Vec3d usual = OptionSpec().gravity, &g = spec_.option.gravity;
  if (g.x != usual.x || g.y != usual.y || g.z != usual.z || !spec_.option.gravity_enabled) {
    refuse({}, "URDF has no element for gravity: " +
                   (spec_.option.gravity_enabled ? to_text(g) : std::string("disabled gravity")) +
                   " cannot be written");
  }
  if (!errors_.empty()) throw InputError(errors_);
  lost_["actuators"] = static_cast<int>(spec_.actuators.size());
  lost_["sensors"] = static_cast<int>(spec_.sensors.size());
  lost_["keyframes"] = static_cast<int>(spec_.keyframes.size());
  lost_["the time step"] = spec_.option.timestep != OptionSpec().timestep;
  check_contacts();
  lost_["materials, lights and other looks"] = static_cast<int>(spec_.cosmetics.size());
}

std::string UrdfWriter::unused(Names& used, const std::string& wish) {
  std::string name = wish;
  auto [taken, done] = used.emplace(wish, 2);
  while (!done) {
    name = fmt::format("{}_{}", wish, taken->second++);
    done = used.emplace(name, 2).second;
  }
  return name;
}

void UrdfWriter::name_everything() {
  links_.assign(spec_.bodies.size(), "world");
  for (std::size_t i = 1; i < links_.size(); ++i)
    links_[i] = unused(used_, spec_.bodies[i].name.empty() ? fmt::format("body_{}", i) : spec_.bodies[i].name);
  for (const BodySpec& body : spec_.bodies) {
    for (const JointSpec& joint : body.joints) joint_names_.emplace(joint.name, 2);
  }
  for (const BodySpec& body : spec_.bodies) {
    for (const JointSpec& joint : body.joints)
      joints_[&joint] = joint.name.empty() ? unused(joint_names_, "joint") : joint.name;
  }
}

void UrdfWriter::write_joint(const XmlWriter& robot, const std::string& name, const JointSpec* joint,
                             const std::string& parent, const std::string& child, const Vec3d& position,
                             const Quatd& orientation) {
  const XmlWriter e = robot.child("joint");
  e.set("name", name);
  const bool axial = joint && has_axis(joint->type);
  const bool continuous = joint && turns_on_axis(joint->type) && !joint->limited;
  const char* type = !joint ? "fixed" : continuous ? "continuous" : traits(joint->type).urdf;
  e.set("type", type);
  Vec3d p = position;
  Quatd q = orientation;
  if (axial && joint->reference != 0) {  // a URDF shows the pose at position 0
    if (turns_on_axis(joint->type))
      q = q * axis_angle(joint->axis, -joint->reference);
    else
      p = p - rotate(q, joint->axis * joint->reference);
  }
  write_origin(e, p, q);
  e.child("parent").set("link", parent);
  e.child("child").set("link", child);
  if (!joint) return;
  if (axial) e.child("axis").set("xyz", joint->axis);
  const bool slides = slides_on_axis(joint->type);  // urdfdom requires a range for each slide
  if (axial && (slides || joint->limited || joint->force_limited || std::isfinite(joint->velocity_limit))) {
    const XmlWriter l = e.child("limit");
    const auto set = [&](const char* name, double x) { l.set(name, std::clamp(x, -urdf::kNoLimit, urdf::kNoLimit)); };
    if (joint->limited)
      set("lower", joint->range[0]), set("upper", joint->range[1]);
    else if (slides)
      set("lower", -kInfinity), set("upper", kInfinity);
    set("effort", joint->force_limited ? std::max(-joint->force_range[0], joint->force_range[1]) : urdf::kNoLimit);
    set("velocity", joint->velocity_limit);
  }
  if (joint->damping != 0 || joint->friction_loss != 0) {
    const XmlWriter d = e.child("dynamics");
    d.set("damping", joint->damping);
    d.set("friction", joint->friction_loss);
  }
  for (const EqualitySpec& equality : spec_.equalities) {
    if (equality.first != joint->name || joint->name.empty() || equality.idle) continue;
    const XmlWriter m = e.child("mimic");
    m.set("joint", equality.second);
    m.set("multiplier", equality.polynomial[1]);
    m.set("offset", equality.polynomial[0]);
  }
}

void UrdfWriter::write_shape(const XmlWriter& link, const GeomSpec& geom, const Vec3d& anchor) {
  const MeshSpec* mesh = nullptr;
  for (const MeshSpec& m : spec_.meshes) {
    if (geom.type == GeomType::mesh && m.name == geom.mesh) mesh = &m;
  }
  const bool known = geom.type == GeomType::sphere || geom.type == GeomType::capsule ||
                     geom.type == GeomType::cylinder || geom.type == GeomType::box || (mesh && !mesh->file.empty());
  if (!known) {
    ++lost_["planes, height fields, ellipsoids and meshes without a file"];
    return;
  }
  const XmlWriter e = link.child(collides(geom) ? "collision" : "visual");
  e.set_name(geom.name);
  Vec3d position = geom.position;
  Quatd orientation = geom.orientation;
  if (mesh) {  // its file lacks the reference pose: S Rᵀ (v - p) = Rᵀ S v - Rᵀ S p, if S is a multiple of 1 or R is 1
    const Vec3d &p = mesh->reference_position, &s = mesh->scale;
    const Quatd back = conjugate(mesh->reference_orientation);
    const bool turned = back.x != 0 || back.y != 0 || back.z != 0;
    if (turned && (s.x != s.y || s.y != s.z)) ++lost_["reference orientations of meshes that are scaled unevenly"];
    position = position - rotate(orientation * back, Vec3d{s.x * p.x, s.y * p.y, s.z * p.z});
    orientation = orientation * back;
  }
  write_origin(e, position - anchor, orientation);
  const XmlWriter g = e.child("geometry");
  if (mesh) {
    const XmlWriter m = g.child("mesh");
    if (!std::filesystem::path(mesh->file).is_absolute())
      ++lost_["places of missing mesh files, named as in the source"];
    m.set("filename", seen_from(folder_, mesh->file));
    if (mesh->scale.x != 1 || mesh->scale.y != 1 || mesh->scale.z != 1) m.set("scale", mesh->scale);
  } else if (geom.type == GeomType::box) {
    g.child("box").set("size", geom.size * 2);
  } else {
    const char* kind = geom.type == GeomType::sphere    ? "sphere"
                       : geom.type == GeomType::capsule ? "capsule"
                                                        : "cylinder";
    const XmlWriter s = g.child(kind);
    s.set("radius", geom.size.x);
    if (geom.type != GeomType::sphere) s.set("length", 2 * geom.size.y);
  }
  if (geom.rgba == GeomSpec().rgba) return;
  const XmlWriter material = e.child("material");
  material.set("name", "");
  material.child("color").set_list("rgba", geom.rgba);
}

void UrdfWriter::write_contents(const XmlWriter& link, const BodySpec& body, const Vec3d& anchor) {
  if (body.inertial) {
    const XmlWriter e = link.child("inertial");
    write_origin(e, body.inertial->com - anchor, {1, 0, 0, 0});
    e.child("mass").set("value", body.inertial->mass);
    const Sym3d& s = body.inertial->inertia;
    const XmlWriter i = e.child("inertia");
    for (const auto& [name, value] :
         {std::pair{"ixx", s.xx}, {"ixy", s.xy}, {"ixz", s.xz}, {"iyy", s.yy}, {"iyz", s.yz}, {"izz", s.zz}})
      i.set(name, value);
  }
  for (const GeomSpec& geom : body.geoms) write_shape(link, geom, anchor);
}

void UrdfWriter::write_body(const XmlWriter& robot, std::size_t index) {
  const BodySpec& body = spec_.bodies[index];
  if (index == 0) {
    const XmlWriter link = robot.child("link");
    link.set("name", "world");
    return write_contents(link, body, {0, 0, 0});
  }
  // A chain of links, one for each joint. All but the last, which is the body, are massless.
  const std::size_t parent_body = static_cast<std::size_t>(body.parent);
  std::string parent = links_[parent_body];
  Vec3d from = body.position - anchors_[parent_body];
  Quatd turn = body.orientation;
  Vec3d anchor{0, 0, 0};
  for (std::size_t k = 0; k < body.joints.size(); ++k) {
    const JointSpec& joint = body.joints[k];
    const bool last = k + 1 == body.joints.size();
    const std::string child = last ? links_[index] : unused(used_, fmt::format("{}_part_{}", links_[index], k));
    if (!last) robot.child("link").set("name", child);
    const Vec3d next = moves_freely(joint.type) ? Vec3d{0, 0, 0} : joint.position;
    write_joint(robot, joints_.at(&joint), &joint, parent, child, from + rotate(turn, next - anchor), turn);
    parent = child, anchor = next, from = {0, 0, 0}, turn = {1, 0, 0, 0};
  }
  if (body.joints.empty())
    write_joint(robot, unused(joint_names_, links_[index] + "_weld"), nullptr, parent, links_[index], from, turn);
  anchors_[index] = anchor;
  const XmlWriter link = robot.child("link");
  link.set("name", links_[index]);
  write_contents(link, body, anchor);
}

std::string UrdfWriter::write(std::vector<std::string>* losses) {
  check();
  name_everything();
  pugi::xml_document document;
  const XmlWriter robot = XmlWriter(document).child("robot");
  robot.set("name", spec_.name.empty() ? "robot" : spec_.name);
  for (std::size_t i = 0; i < spec_.bodies.size(); ++i) write_body(robot, i);
  write_losses(document, lost_, losses);
  return to_text(document);
}

}  // namespace

/// The spec without what its flags disable, which URDF could only write as enabled.
static ModelSpec as_it_acts(ModelSpec spec) {
  const OptionSpec& option = spec.option;
  for (BodySpec& body : spec.bodies) {
    for (JointSpec& joint : body.joints) {
      if (!option.spring_enabled) joint.stiffness = 0, joint.stiffness_polynomial = {};
      if (!option.damper_enabled) joint.damping = 0, joint.damping_polynomial = {};
      if (!option.limit_enabled) joint.limited = false;
      if (!option.friction_loss_enabled) joint.friction_loss = 0;
    }
  }
  if (!option.equality_enabled) spec.equalities.clear();
  return spec;
}

std::string write_urdf(const ModelSpec& spec, const std::filesystem::path& folder, std::vector<std::string>* losses) {
  return UrdfWriter(as_it_acts(without_chains(spec)), folder).write(losses);
}

}  // namespace tarsus
