// <joint>, and how links and joints make a tree.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "tarsus/math/rotation.hpp"
#include "tarsus/model/joint_parts.hpp"
#include "urdf_parts.hpp"

namespace tarsus::urdf {

namespace {

Vec3d read_axis(const XmlElement& joint) {
  Vec3d axis{1, 0, 0};  // URDF's default
  const XmlElement element = joint.child("axis");
  if (!element) return axis;
  if (!element.has("xyz")) element.error("attribute 'xyz' is missing");
  if (!element.read("xyz", axis)) return {1, 0, 0};
  const double length = norm(axis);
  if (!(length > 0) || !std::isfinite(length)) {
    element.error("the axis has no direction", "xyz");
    return {1, 0, 0};
  }
  if (std::abs(length - 1) > 1e-6)
    element.note(fmt::format("the axis has length {:.6g} and was normalised", length), "xyz");
  report_rest(element);
  return length == 1 ? axis : axis * (1 / length);
}

void read_limit(const XmlElement& joint, std::string_view type, JointSpec& out) {
  const bool ranged = type == "revolute" || type == "prismatic";
  const XmlElement element = joint.child("limit");
  if (!element) {
    if (ranged) joint.warn(fmt::format("a {} joint without <limit> is read as not limited", type));
    return;
  }
  double low = 0, high = 0, effort = kInfinity, velocity = kInfinity;
  const auto read = [&](const char* name, double& x) {
    if (!element.read(name, x, Infinities::allow)) return false;
    if (std::abs(x) >= kNoLimit) x = std::copysign(kInfinity, x);
    return true;
  };
  const bool has_low = read("lower", low), has_high = read("upper", high);
  if (ranged && (has_low || has_high)) {
    if (low >= high) {
      element.warn(fmt::format("lower {} is not below upper {}: the joint is read as not limited", low, high), "lower");
    } else {
      out.limited = std::isfinite(low) || std::isfinite(high);
      out.range = {low, high};
    }
  } else if (ranged) {
    element.warn(fmt::format("a {} joint without lower and upper is read as not limited", type));
  } else if ((has_low && low != 0) || (has_high && high != 0)) {
    element.note(fmt::format("a {} joint has no range: lower and upper are not used", type));
  }
  if (read("effort", effort)) {
    if (effort < 0) element.error(fmt::format("attribute 'effort' is {}, expected at least 0", effort), "effort");
    if (effort == 0) element.warn("effort 0 would allow no force: the effort is read as not limited", "effort");
    if (effort > 0 && std::isfinite(effort)) out.force_limited = true, out.force_range = {-effort, effort};
  }
  if (read("velocity", velocity)) {
    if (velocity < 0)
      element.error(fmt::format("attribute 'velocity' is {}, expected at least 0", velocity), "velocity");
    if (velocity > 0) out.velocity_limit = velocity;
    if (velocity == 0)
      element.warn("velocity 0 would allow no motion: the velocity is read as not limited", "velocity");
  }
  for (const char* name : {"effort", "velocity"}) {
    if (!element.has(name))
      element.note(
          fmt::format("attribute '{}' is missing: it is read as not limited, but urdfdom (ROS, Pinocchio) refuses "
                      "the file",
                      name));
  }
  report_rest(element);
}

void read_dynamics(const XmlElement& joint, JointSpec& out) {
  const XmlElement element = joint.child("dynamics");
  if (!element) return;
  for (const auto& [name, value] : {std::pair{"damping", &out.damping}, {"friction", &out.friction_loss}}) {
    if (element.read(name, *value) && *value < 0)
      element.error(fmt::format("attribute '{}' is {}, expected at least 0", name, *value), name);
  }
  report_rest(element);
}

std::optional<Mimic> read_mimic(const XmlElement& joint) {
  const XmlElement element = joint.child("mimic");
  if (!element) return {};
  Mimic out;
  out.where = element.where();
  require(element, "joint", out.joint);
  element.read("multiplier", out.multiplier);
  element.read("offset", out.offset);
  report_rest(element);
  return out;
}

/// <drake:joint type="screw">: a slide, a hinge and the equality that couples them. Only the hinge is damped.
void make_screw(const XmlElement& element, JointSpec spec, Joint& out) {
  const XmlElement thread = element.child("drake:screw_thread_pitch");
  double pitch = 0;
  if (!thread) {
    element.error("a screw joint without <drake:screw_thread_pitch>");
  } else if (require(thread, "value", pitch) && pitch == 0) {
    thread.error("the pitch of a screw joint cannot be 0", "value");
  }
  if (thread) report_rest(thread);
  Diagnostics none;  // stays empty: the axis is a unit vector
  out.joints = joint_parts(spec, none);
  JointSpec &slide = out.joints[0], &hinge = out.joints[1];
  slide.damping = slide.friction_loss = 0, hinge.force_limited = slide.force_limited = false;
  EqualitySpec& thread_row = out.coupling.emplace();
  thread_row.name = spec.name, thread_row.type = EqualityType::joint, thread_row.where = spec.where;
  thread_row.first = slide.name, thread_row.second = hinge.name;
  thread_row.polynomial = {0, pitch / (2 * kPi), 0, 0, 0};
}

/// Makes the joints for one URDF joint: none for a fixed joint, two with their coupling for a screw.
void make_joints(const XmlElement& element, Joint& out) {
  const std::string& type = out.type;
  JointSpec spec;
  spec.name = out.name;
  spec.where = element.where();
  if (type == "fixed") return element.mark_all_children();  // axis, limit and the like have no meaning for it
  read_limit(element, type, spec);
  read_dynamics(element, spec);
  const std::string known = type == "continuous" ? "revolute" : type == "ball" ? "spherical" : type;
  const bool screw = type == "screw", universal = type == "universal";
  spec.type = find_urdf_joint_type(screw ? "drake:cylindrical" : universal ? "drake:universal" : known)->type;
  if (universal)  // Drake's axes; <axis> is ignored
    spec.axis = {1, 0, 0}, spec.second_axis = {0, 1, 0};
  else if (traits(spec.type).axes > 0)
    spec.axis = read_axis(element);
  else
    element.child("axis");
  if (screw) return make_screw(element, spec, out);
  out.joints = {spec};
}

std::unordered_map<std::string, int> index_links(const std::vector<Link>& links, DiagnosticSink& sink) {
  std::unordered_map<std::string, int> out;
  for (std::size_t i = 0; i < links.size(); ++i) {
    const BodySpec& body = links[i].body;
    const auto [it, fresh] = out.emplace(body.name, static_cast<int>(i));
    if (!fresh) {
      sink.add(Severity::error, body.where,
               fmt::format("a second link named {}; the first is in line {}", quote(body.name),
                           links[it->second].body.where.line));
    }
  }
  return out;
}

/// "a → b → a" for the loop that contains link i or an ancestor of it. Precondition: every link on the way has a
/// parent.
std::string loop_text(const std::vector<Link>& links, const std::vector<Joint>& joints, int i) {
  std::vector<bool> seen(links.size(), false);
  const auto parent = [&](int k) { return joints[links[k].parent_joint].parent_link; };
  for (; !seen[i]; i = parent(i)) seen[i] = true;
  std::vector<std::string> names{links[i].body.name};
  for (int k = parent(i); k != i && names.size() < 8; k = parent(k)) names.push_back(links[k].body.name);
  std::reverse(names.begin() + 1, names.end());
  std::string out;
  for (const std::string& name : names) out += quote(name) + " → ";
  return out + quote(links[i].body.name);
}

void attach(std::vector<Link>& links, std::vector<Joint>& joints, DiagnosticSink& sink,
            const std::unordered_map<std::string, int>& index) {
  std::unordered_map<std::string, int> joint_names;
  for (std::size_t j = 0; j < joints.size(); ++j) {
    Joint& joint = joints[j];
    const auto error = [&](const std::string& message) { sink.add(Severity::error, joint.where, message); };
    if (const auto [it, fresh] = joint_names.emplace(joint.name, static_cast<int>(j)); !fresh) {
      error(fmt::format("a second joint named {}; the first is in line {}", quote(joint.name),
                        joints[it->second].where.line));
    }
    const auto parent = index.find(joint.parent), child = index.find(joint.child);
    if (parent == index.end() && !joint.parent.empty())
      error(fmt::format("no link is named {}, the joint's parent", quote(joint.parent)));
    if (child == index.end() && !joint.child.empty())
      error(fmt::format("no link is named {}, the joint's child", quote(joint.child)));
    if (parent == index.end() || child == index.end()) continue;
    if (parent == child) {
      error(fmt::format("link {} is its own parent", quote(joint.parent)));
      continue;
    }
    Link& link = links[child->second];
    if (link.parent_joint >= 0) {
      error(fmt::format("link {} has two parent joints: joint {} in line {} is the other", quote(joint.child),
                        quote(joints[link.parent_joint].name), joints[link.parent_joint].where.line));
      continue;
    }
    joint.parent_link = parent->second;
    joint.child_link = child->second;
    link.parent_joint = static_cast<int>(j);
    links[parent->second].child_joints.push_back(static_cast<int>(j));
  }
}

}  // namespace

Joint read_joint(const XmlElement& element) {
  static constexpr std::string_view kTypes[] = {"revolute", "continuous", "prismatic", "fixed",
                                                "floating", "planar",     "spherical"};
  static constexpr std::string_view kDrakeTypes[] = {"ball", "planar", "screw", "universal"};
  const bool drake = element.is("drake:joint");
  const std::span<const std::string_view> types =
      drake ? std::span<const std::string_view>(kDrakeTypes) : std::span<const std::string_view>(kTypes);
  Joint joint;
  joint.where = element.where();
  require(element, "name", joint.name);
  require(element, "type", joint.type);
  for (const auto& [tag, name] : {std::pair{"parent", &joint.parent}, {"child", &joint.child}}) {
    if (const XmlElement end = element.child(tag)) {
      require(end, "link", *name);
      report_rest(end);
    } else {
      element.error(fmt::format("<{}> without <{}>", element.name(), tag));
    }
  }
  joint.origin = read_origin(element);
  if (std::find(types.begin(), types.end(), joint.type) == types.end()) {
    const auto word = [&](std::string_view type) { return type == joint.type; };
    if (!drake && std::any_of(std::begin(kDrakeTypes), std::end(kDrakeTypes), word)) {
      element.error(fmt::format("a joint of type {} must be written as <drake:joint>", quote(joint.type)), "type");
    } else if (!joint.type.empty()) {
      element.error(fmt::format("unknown joint type {}; known are {}", quote(joint.type), fmt::join(types, ", ")),
                    "type");
    }
    return joint;
  }
  joint.mimic = read_mimic(element);
  make_joints(element, joint);
  for (const char* tag : {"safety_controller", "calibration"}) {
    if (element.child(tag)) element.note(fmt::format("<{}> has no effect", tag));
  }
  report_rest(element);
  return joint;
}

int connect(std::vector<Link>& links, std::vector<Joint>& joints, DiagnosticSink& sink, const Location& robot) {
  if (links.empty()) {
    sink.add(Severity::error, robot, "the robot has no link");
    return -1;
  }
  attach(links, joints, sink, index_links(links, sink));
  if (sink.failed()) return -1;  // building the tree would only repeat these errors
  std::vector<int> roots;
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (links[i].parent_joint < 0) roots.push_back(static_cast<int>(i));
  }
  if (roots.empty()) {
    sink.add(Severity::error, robot,
             fmt::format("there is no root link: the links {} form a loop", loop_text(links, joints, 0)));
    return -1;
  }
  for (std::size_t k = 1; k < roots.size(); ++k) {
    sink.add(Severity::error, links[roots[k]].body.where,
             fmt::format("there is a second root: no joint has link {} as its child (the first root is {})",
                         quote(links[roots[k]].body.name), quote(links[roots[0]].body.name)));
  }
  std::vector<int> open = roots;
  std::vector<bool> reached(links.size(), false);
  while (!open.empty()) {
    const int i = open.back();
    open.pop_back();
    reached[i] = true;
    for (int j : links[i].child_joints) open.push_back(joints[j].child_link);
  }
  const auto lost = std::find(reached.begin(), reached.end(), false);
  if (lost != reached.end()) {
    const int i = static_cast<int>(lost - reached.begin());
    sink.add(Severity::error, links[i].body.where,
             fmt::format("link {} is not connected to the root: the links {} form a loop", quote(links[i].body.name),
                         loop_text(links, joints, i)));
  }
  return sink.failed() ? -1 : roots[0];
}

}  // namespace tarsus::urdf
