// The elements of a body: joints, inertial, geoms, sites, cameras and lights.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/mjcf/builder.hpp"

namespace tarsus::mjcf {

void Builder::add_joint(const Task& task) {
  const XmlElement& e = task.element;
  if (task.body == 0) return e.error("the world has no joints");
  const Source& source = *task.scope.source;
  JointState state;
  if (e.is("freejoint")) {
    state.spec.type = JointType::free;
    e.read("group", state.spec.group);
    std::string align;
    if (read_word(e, "align", {"true", "false", "auto"}, align) && align == "true") e.unsupported({"align"});
  } else {
    state = source.defaults(e, *task.defaults).joint;
    overlay(e, source.compiler(), state);
  }
  JointSpec& joint = state.spec;
  joint.name = task.scope.naming.of(e.text("name"));
  joint.where = e.where();
  e.report_unread(Severity::error);
  joint.position = task.frame.position + rotate(task.frame.orientation, joint.position);
  joint.axis = rotate(task.frame.orientation, joint.axis);
  finish_joint(e, source.compiler(), state);
  if (joint.friction_loss > 0 && (!joint.solver_friction_limit.empty() || !joint.solver_friction_impedance.empty()))
    e.warn("solreffriction and solimpfriction have no effect: the step enforces dry friction as accurately as it can");
  if (!has_axis(joint.type)) {
    if (joint.stiffness_polynomial != std::array<double, 2>{})
      e.warn(fmt::format("'stiffness' of a {} joint: only the first number has an effect", name(joint.type)));
    joint.stiffness_polynomial = {};
  }
  check_joints(e, task.body, joint);
  int below = task.body;
  while (below > 0 && !spec_.bodies[static_cast<std::size_t>(below)].mocap)
    below = spec_.bodies[static_cast<std::size_t>(below)].parent;
  if (below > 0)
    e.warn(
        "this joint is below a mocap body: the bodies that it carries stay where they are when the mocap body moves");
  declare(Kind::joint, joint.name, e, &task.scope);
  BodySpec& body = spec_.bodies[static_cast<std::size_t>(task.body)];
  if (state.spring_damper[0] != 0 || state.spring_damper[1] != 0) {
    if (state.spring_damper[0] > 0 && state.spring_damper[1] > 0) {
      joint.stiffness = joint.damping = 0;  // settle_by_inertia() sets them; actuators add to the damping
      springs_.push_back({static_cast<int>(joint_place_.size()), state.spring_damper});
    } else
      e.error("attribute 'springdamper': both numbers must be positive", "springdamper");
  }
  origins_.bodies[static_cast<std::size_t>(task.body)].joints.push_back(origin(e, task.scope));
  joint_place_.emplace_back(task.body, static_cast<int>(body.joints.size()));
  body.joints.push_back(std::move(joint));
}

void Builder::finish_joint(const XmlElement& e, const Compiler& compiler, JointState& state) {
  JointSpec& joint = state.spec;
  if (has_axis(joint.type)) {
    const double length = norm(joint.axis);
    if (!(length > 1e-12) || !std::isfinite(length)) {
      e.error("attribute 'axis' has no direction: its length is zero or too large", "axis");
    } else {
      if (std::abs(length - 1) > 1e-6) e.note("'axis' is not of unit length and was normalised", "axis");
      joint.axis = joint.axis * (1 / length);
    }
  }
  if (turns_on_axis(joint.type)) {
    joint.reference = compiler.radians(joint.reference);
    joint.spring_reference = compiler.radians(joint.spring_reference);
  }
  if (moves_freely(joint.type)) {  // limits, spring references and the anchor have no meaning
    joint.limited = joint.force_limited = false;
    joint.reference = joint.spring_reference = 0;
    return;
  }
  if (turns_freely(joint.type)) joint.reference = joint.spring_reference = 0;
  joint.limited = settle_limit(e, compiler, state.limited, "limited", "range", joint.range);
  if (joint.limited && turns_freely(joint.type) && joint.range[0] != 0) {
    e.error("the range of a ball joint begins at 0", "range");
  }
  if (turns_on_axis(joint.type) || turns_freely(joint.type)) {
    for (double& end : joint.range) end = compiler.radians(end);
  }
  joint.force_limited =  // only for hinges and slides, as in MuJoCo
      has_axis(joint.type) &&
      settle_limit(e, compiler, state.force_limited, "actuatorfrclimited", "actuatorfrcrange", joint.force_range);
}

void Builder::check_joints(const XmlElement& e, int body_index, const JointSpec& joint) {
  const BodySpec& body = spec_.bodies[static_cast<std::size_t>(body_index)];
  const auto turns = [](JointType type) { return turns_freely(type) || turns_on_axis(type); };
  int sum = qvel_count(joint.type);
  for (const JointSpec& other : body.joints) {
    sum += qvel_count(other.type);
    const bool has_ball = turns_freely(joint.type) || turns_freely(other.type);
    if (has_ball && turns(joint.type) && turns(other.type))
      return e.error("a ball joint shares its body with another joint that turns");
    if (moves_freely(other.type) || moves_freely(joint.type))
      return e.error("a free joint must be its body's only joint");
  }
  if (moves_freely(joint.type) && body.parent != 0) e.error("a free joint is for children of the world only");
  if (body.mocap) e.error("a mocap body has no joints");
  if (sum > 6) e.error("the joints of one body have more than 6 degrees of freedom");
}

void Builder::add_inertial(const Task& task) {
  const XmlElement& e = task.element;
  if (task.body == 0) return e.error("the world has no <inertial>");
  BodySpec& body = spec_.bodies[static_cast<std::size_t>(task.body)];
  if (explicit_inertia_[static_cast<std::size_t>(task.body)]) return e.error("a second <inertial> in one body");
  InertialSpec inertial;
  inertial.where = e.where();
  Pose pose;
  if (require(e, "mass")) e.read("mass", inertial.mass);
  if (require(e, "pos")) e.read("pos", pose.position);
  const bool turned = read_orientation(e, task.scope.source->compiler(), pose.orientation);
  std::array<double, 3> diagonal{};
  std::array<double, 6> full{};
  const bool has_diagonal = e.read("diaginertia", diagonal), has_full = e.read("fullinertia", full);
  e.report_unread(Severity::error);
  if (has_diagonal && has_full) e.error("'diaginertia' and 'fullinertia' exclude each other", "fullinertia");
  if (has_full && turned) e.error("'fullinertia' takes no orientation", "fullinertia");
  if (has_diagonal) inertial.inertia = diagonal3(diagonal[0], diagonal[1], diagonal[2]);
  if (has_full) inertial.inertia = {full[0], full[3], full[4], full[1], full[5], full[2]};
  pose = compose(task.frame, pose);
  inertial.com = pose.position;
  if (!has_full)
    inertial.axes = pose.orientation;
  else if (!is_identity(task.frame))  // MuJoCo's: it turns the axes, whose order and signs are of the tensor as written
    inertial.axes = pose.orientation * eigen(inertial.inertia).orientation;
  if (turned || !is_identity(task.frame)) inertial.inertia = rotate(rotation(pose.orientation), inertial.inertia);
  body.inertial = std::move(inertial);
  explicit_inertia_[static_cast<std::size_t>(task.body)] = true;
}

void Builder::add_geom(const Task& task) {
  const XmlElement& e = task.element;
  const Source& source = *task.scope.source;
  GeomState state = source.defaults(e, *task.defaults).geom;
  overlay(e, source.compiler(), state);
  GeomSpec& geom = state.spec;
  geom.name = task.scope.naming.of(e.text("name"));
  geom.where = e.where();
  if (e.child("plugin")) e.warn("<plugin> is not supported and has no effect");
  e.report_unread(Severity::error);
  declare(Kind::geom, geom.name, e, &task.scope);
  const Scope& scope = task.scope;
  if (!geom.material.empty()) {
    geom.material = scope.naming.prefix + geom.material;
    if (find(Kind::material, geom.material) < 0)
      e.error(fmt::format("there is no material named {}", quote(geom.material)), "material");
  }
  if (geom.type == GeomType::sdf) return e.error("geoms of type sdf are not supported", "type");
  if (!geom.mesh.empty()) {
    geom.mesh = scope.naming.prefix + geom.mesh;
    if (find(Kind::mesh, geom.mesh) < 0)
      return e.error(fmt::format("there is no mesh named {}", quote(geom.mesh)), "mesh");
    if (geom.type == GeomType::plane || geom.type == GeomType::height_field)
      return e.error(fmt::format("a {} cannot be fitted to a mesh", name(geom.type)), "mesh");
  } else if (geom.type == GeomType::mesh) {
    return e.error("a geom of type mesh needs the attribute 'mesh'");
  }
  if (geom.type == GeomType::mesh && geom.shell_inertia)
    return e.error("'shellinertia' has no meaning for a mesh: write <mesh inertia=\"shell\">", "shellinertia");
  if (geom.type != GeomType::height_field && !geom.height_field.empty())
    return e.error(fmt::format("'hfield' is for geoms of type hfield, not for a {}", name(geom.type)), "hfield");
  if (geom.type == GeomType::height_field) {
    geom.height_field = scope.naming.prefix + geom.height_field;
    if (find(Kind::height_field, geom.height_field) < 0) {
      return e.error(fmt::format("there is no height field named {}", quote(geom.height_field)), "hfield");
    }
  }
  if (state.ends && !place_between(e, *state.ends, geom.type, geom.size, geom.position, geom.orientation)) return;
  if (!geom.mesh.empty() && geom.type != GeomType::mesh)
    fit_to_mesh(e, source.compiler(), state.fit_scale, geom);
  else if (!check_size(e, geom.type, geom.size))
    return;
  if (!is_identity(task.frame)) {
    const Pose pose = compose(task.frame, {geom.position, geom.orientation});
    geom.position = pose.position;
    geom.orientation = pose.orientation;
  }
  if (geom.fluid_ellipsoid) find_mesh_frame(e, geom);
  spec_.bodies[static_cast<std::size_t>(task.body)].geoms.push_back(std::move(geom));
}

void Builder::fit_to_mesh(const XmlElement& e, const Compiler& compiler, double scale, GeomSpec& geom) {
  const int mesh = find(Kind::mesh, geom.mesh);
  const MeshSpec& spec = spec_.meshes[static_cast<std::size_t>(mesh)];
  const ShapeInertia* mass = spec.vertices.empty() ? nullptr : mesh_mass(mesh, &e);
  if (!mass) {
    if (spec.vertices.empty())
      e.error(fmt::format("the geom cannot be fitted to mesh {}: the mesh file is missing", quote(geom.mesh)), "mesh");
    return;
  }
  const InertiaBox box = equivalent_box(mass->volume, mass->inertia);
  Vec3d half = box.half_size, centre = mass->com;
  const Mat3d axes = box.axes;
  double round = (half.x + half.y) / 2, ball = (half.x + half.y + half.z) / 3, cap = round / 2;
  if (compiler.fit_bounding_box) {
    Vec3d low{kInfinity, kInfinity, kInfinity}, high{-kInfinity, -kInfinity, -kInfinity};
    for (const Vec3d& vertex : spec.vertices) {
      const Vec3d p = transpose_mul(axes, vertex - mass->com);
      for (int i = 0; i < 3; ++i) low[i] = std::min(low[i], p[i]), high[i] = std::max(high[i], p[i]);
    }
    half = (high - low) * 0.5;
    centre = mass->com + axes * ((low + high) * 0.5);
    round = cap = std::max(half.x, half.y);  // of the bounding box, not of the mesh in it
    ball = std::max(round, half.z);
  }
  switch (geom.type) {
    case GeomType::sphere: geom.size = {ball, 0, 0}; break;
    case GeomType::capsule: geom.size = {round, std::max(0.0, half.z - cap), 0}; break;
    case GeomType::cylinder: geom.size = {round, half.z, 0}; break;
    default: geom.size = half; break;
  }
  if (!(scale > 0)) e.error("attribute 'fitscale' must be positive", "fitscale");
  geom.size = geom.size * scale;
  geom.position = geom.position + rotate(geom.orientation, centre);
  geom.orientation = normalized(geom.orientation * box.orientation);
}

void Builder::add_site(const Task& task) {
  const XmlElement& e = task.element;
  const Source& source = *task.scope.source;
  SiteState state = source.defaults(e, *task.defaults).site;
  overlay(e, source.compiler(), state);
  SiteSpec& site = state.spec;
  site.name = task.scope.naming.of(e.text("name"));
  site.where = e.where();
  e.report_unread(Severity::error);
  declare(Kind::site, site.name, e, &task.scope);
  if (!site.material.empty()) {
    site.material = task.scope.naming.prefix + site.material;
    if (find(Kind::material, site.material) < 0)
      e.error(fmt::format("there is no material named {}", quote(site.material)), "material");
  }
  if (site.type == GeomType::plane || site.type == GeomType::height_field)
    return e.error(fmt::format("a site cannot be a {}", name(site.type)), "type");
  if (!state.mesh.empty() && find(Kind::mesh, task.scope.naming.prefix + state.mesh) < 0)
    return e.error(fmt::format("there is no mesh named {}", quote(state.mesh)), "mesh");
  if ((site.type == GeomType::mesh) == state.mesh.empty())
    return e.error(state.mesh.empty() ? "a site of type mesh needs the attribute 'mesh'"
                                      : "only a site of type mesh has the attribute 'mesh'");
  if (state.ends && !place_between(e, *state.ends, site.type, site.size, site.position, site.orientation)) return;
  if (!check_size(e, site.type, site.size)) return;
  const Pose pose = compose(task.frame, {site.position, site.orientation});
  site.position = pose.position;
  site.orientation = pose.orientation;
  spec_.bodies[static_cast<std::size_t>(task.body)].sites.push_back(std::move(site));
}

void Builder::add_camera_or_light(const Task& task) {
  const XmlElement& e = task.element;
  const Source& source = *task.scope.source;
  const Defaults& defaults = source.defaults(e, *task.defaults);
  const auto look = defaults.looks.find(e.name());
  Attributes attributes = look == defaults.looks.end() ? Attributes{} : look->second;
  // Poses are kept in the body's frame, as a position and a quaternion (camera) or a direction (light).
  const bool camera = e.is("camera");
  Pose pose = camera ? defaults.camera : defaults.light;
  Vec3d direction = defaults.light_direction;
  e.read("pos", pose.position);
  e.read("dir", direction);
  if (camera) read_orientation(e, source.compiler(), pose.orientation);
  pose = compose(task.frame, pose);
  direction = rotate(task.frame.orientation, direction);
  const auto is_place = [](const auto& a) {
    static constexpr std::string_view kPlaces[] = {"pos",    "dir",   "quat",  "euler", "axisangle",
                                                   "xyaxes", "zaxis", "class", "name"};
    return std::find(std::begin(kPlaces), std::end(kPlaces), a.first) != std::end(kPlaces);
  };
  refuse_unknown(e);
  if (double fovy = 0; e.read("fovy", fovy) && fovy >= 180) e.error("attribute 'fovy' must be below 180", "fovy");
  if (e.has("fovy") && e.has("sensorsize")) e.error("'fovy' and 'sensorsize' exclude each other", "fovy");
  if (!camera && norm(direction) < 1e-15) e.error("attribute 'dir' has length zero", "dir");
  Attributes own = e.all_attributes();
  std::erase_if(own, is_place);
  std::erase_if(attributes, is_place);
  own.emplace_back("pos", fmt::format("{} {} {}", pose.position.x, pose.position.y, pose.position.z));
  const Quatd& q = pose.orientation;
  if (camera)
    own.emplace_back("quat", fmt::format("{} {} {} {}", q.w, q.x, q.y, q.z));
  else
    own.emplace_back("dir", fmt::format("{} {} {}", direction.x, direction.y, direction.z));
  overlay(own, attributes);
  const auto is_set = [&](std::string_view name) {
    return std::ranges::any_of(attributes, [&](const auto& a) {
      return a.first == name && std::ranges::any_of(split_blanks(a.second),
                                                    [](const auto& part) { return parse_number(part).value != 0; });
    });
  };
  for (const char* lens : {"focal", "focalpixel", "principal", "principalpixel"}) {
    if (camera && is_set(lens) && !is_set("sensorsize")) e.error(fmt::format("'{}' needs 'sensorsize'", lens), lens);
  }
  for (auto& [name, value] : attributes) {
    if (value.empty()) continue;
    if (name == "texture") value = task.scope.naming.prefix + value;
    if (name != "target" || value == "world") continue;
    const std::string own_name = task.scope.naming.of(value);
    value = find(Kind::body, own_name) >= 0 ? own_name : task.scope.naming.prefix + value;
  }
  e.report_unread(Severity::error);
  keep(e, task.scope, camera ? Kind::camera : Kind::light, task.body, std::move(attributes));
}

}  // namespace tarsus::mjcf
