// ModelSpec -> Model: joints become links with their axes along z, and welded bodies are merged into the link that
// carries them.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>

#include "tarsus/base/index.hpp"
#include "tarsus/base/number_text.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/find_on_bodies.hpp"
#include "tarsus/model/held_point.hpp"
#include "tarsus/model/joint_parts.hpp"
#include "tarsus/model/model.hpp"
#include "tarsus/model/welded_inertia.hpp"

namespace tarsus {

namespace {

const Transformd kIdentity{identity3<double>(), {0, 0, 0}};

/// Inertia of a point mass at p about the origin.
Sym3d point_inertia(double mass, const Vec3d& p) {
  return minus_outer(diagonal3(dot(p, p), dot(p, p), dot(p, p)), p, p) * mass;
}

bool finite(std::span<const double> numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}
bool finite(const Vec3d& v) { return std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z); }
/// Whether products of such coordinates are far from overflow.
bool is_place(const Vec3d& v) { return std::abs(v.x) <= 1e10 && std::abs(v.y) <= 1e10 && std::abs(v.z) <= 1e10; }

std::string text_of(std::span<const double> numbers) {
  std::string out;
  for (const double x : numbers) out += (out.empty() ? "" : " ") + number_text(x);
  return out;
}
std::string text_of(const Vec3d& v) { return text_of(std::array{v.x, v.y, v.z}); }

class Compiler {
 public:
  explicit Compiler(ModelSpec& spec) : spec_(spec) {}

  void check();
  void lay_out(Model& model);
  const std::vector<Transformd>& rest() const { return rest_; }

 private:
  void error(const Location& where, const std::string& message) {
    errors_.push_back({Severity::error, where, message});
  }
  /// 'body "torso": mass is -1, expected …'
  void error(const Location& where, const std::string& whose, const std::string& field, const std::string& value,
             const std::string& expected) {
    error(where, whose + ": " + field + " is " + value + ", expected " + expected);
  }
  std::string label(const BodySpec& body) const;
  void check_tree();
  void check_names();
  void check_joints(const BodySpec& body);
  void check_joint(const JointSpec& joint, const std::string& whose);
  void check_inertial(const BodySpec& body);
  void check_pose(const Location& where, const std::string& whose, const Vec3d& position, Quatd& orientation);
  void check_geom(GeomSpec& geom, const std::string& whose);
  void check_options();
  Joint joint(const JointSpec& spec, int body, int parent, int qpos, int qvel) const;
  void add_joint(Model& model, const JointSpec& spec, int body, const Transformd& X_PB);
  void add_body(Model& model, int index);

  ModelSpec& spec_;
  Diagnostics errors_;
  std::vector<Transformd> rest_;  // [link] pose of the joint frame at rest in the parent link's frame
  std::vector<Transformd> X_BL_;  // [link] pose of the link frame in the body's frame
};

void Compiler::check() {
  check_tree();
  check_names();
  check_options();
  for (std::size_t i = 0; i < spec_.bodies.size(); ++i) {
    BodySpec& body = spec_.bodies[i];
    check_pose(body.where, label(body), body.position, body.orientation);
    if (!std::isfinite(body.gravity_compensation))
      error(body.where, label(body), "gravcomp", number_text(body.gravity_compensation), "a finite number");
    check_joints(body);
    check_inertial(body);
    const auto whose = [&](const char* kind, const std::string& name) {
      return name.empty() ? std::string("a ") + kind + " of " + label(body) : std::string(kind) + " \"" + name + "\"";
    };
    for (GeomSpec& geom : body.geoms) check_geom(geom, whose("geom", geom.name));
    for (SiteSpec& site : body.sites) check_pose(site.where, whose("site", site.name), site.position, site.orientation);
  }
  if (!errors_.empty()) throw InputError(errors_);
}

/// A name for messages; bodies without one are counted.
std::string Compiler::label(const BodySpec& body) const {
  return "body " + (body.name.empty() ? std::to_string(&body - spec_.bodies.data()) : "\"" + body.name + "\"");
}

/// Also gives the quaternion unit length. One that has it keeps its bits.
void Compiler::check_pose(const Location& where, const std::string& whose, const Vec3d& position, Quatd& orientation) {
  const Quatd& q = orientation;
  if (!is_place(position)) error(where, whose, "position", text_of(position), "numbers within 1e10 m");
  const double length2 = square_norm(q);
  if (!(length2 > 1e-24) || !std::isfinite(length2))
    return error(where, whose, "orientation", text_of(std::array{q.w, q.x, q.y, q.z}), "a quaternion that is not zero");
  if (std::abs(length2 - 1) > 1e-9) orientation = normalized(q);
}

void Compiler::check_geom(GeomSpec& geom, const std::string& whose) {
  const auto wrong = [&](const char* field, const std::string& value, const char* expected) {
    error(geom.where, whose, field, value, expected);
  };
  const auto check_finite = [&](const char* field, std::span<const double> numbers) {
    if (!finite(numbers)) wrong(field, text_of(numbers), "finite numbers");
  };
  check_pose(geom.where, whose, geom.position, geom.orientation);
  const bool solid = geom.type != GeomType::plane && geom.type != GeomType::mesh &&
                     geom.type != GeomType::height_field && geom.type != GeomType::sdf;
  if (!finite(geom.size) || (solid && !(geom.size.x >= 0 && geom.size.y >= 0 && geom.size.z >= 0)))
    wrong("size", text_of(geom.size), solid ? "finite lengths of at least 0 m" : "finite numbers");
  if (!finite(geom.friction) || std::any_of(geom.friction.begin(), geom.friction.end(), [](double x) { return x < 0; }))
    wrong("friction", text_of(geom.friction), "finite numbers of at least 0");
  if (geom.condim != 1 && geom.condim != 3 && geom.condim != 4 && geom.condim != 6)
    wrong("condim", std::to_string(geom.condim), "1, 3, 4 or 6");
  check_finite("solref", geom.solver_reference), check_finite("solimp", geom.solver_impedance);
  check_finite("solmix, margin, gap", std::array{geom.solver_mix, geom.margin, geom.gap});
  check_finite("fluidcoef", geom.fluid_coefficients);
  if (geom.type == GeomType::mesh && index_of(spec_.meshes, geom.mesh) < 0)
    wrong("mesh", "\"" + geom.mesh + "\"", "the name of a mesh");
  if (geom.type == GeomType::height_field && index_of(spec_.height_fields, geom.height_field) < 0)
    wrong("height field", "\"" + geom.height_field + "\"", "the name of a height field");
}

void Compiler::check_tree() {
  if (spec_.bodies.empty() || spec_.bodies[0].parent != -1 || !spec_.bodies[0].joints.empty()) {
    throw InputError(Location{}, "bodies[0] must be the world, with parent -1 and without joints");
  }
  for (std::size_t i = 1; i < spec_.bodies.size(); ++i) {
    const int parent = spec_.bodies[i].parent;
    if (parent < 0 || parent >= int(i)) {
      throw InputError(spec_.bodies[i].where, label(spec_.bodies[i]) + ": parent is " + std::to_string(parent) +
                                                  ", expected the index of an earlier body");
    }
  }
}

void Compiler::check_names() {
  std::unordered_map<std::string, const Location*> bodies, joints;
  const auto note = [&](auto& seen, const std::string& name, const Location& where, const char* kind) {
    if (name.empty()) return;
    const auto [it, fresh] = seen.emplace(name, &where);
    if (!fresh)
      error(where, std::string("two ") + kind + " are named \"" + name + "\"; the first is at " + it->second->text());
  };
  for (const BodySpec& body : spec_.bodies) {
    note(bodies, body.name, body.where, "bodies");
    for (const JointSpec& joint : body.joints) note(joints, joint.name, joint.where, "joints");
  }
}

void Compiler::check_options() {
  const OptionSpec& o = spec_.option;
  if (!(o.timestep > 0) || !std::isfinite(o.timestep))
    error({}, "option", "timestep", number_text(o.timestep), "a positive, finite number of seconds");
  if (!finite(o.gravity)) error({}, "option", "gravity", text_of(o.gravity), "finite numbers (m/s²)");
}

void Compiler::check_joint(const JointSpec& joint, const std::string& whose) {
  const auto wrong = [&](const char* field, const std::string& value, const char* expected) {
    error(joint.where, whose, field, value, expected);
  };
  const auto non_negative = [&](const char* field, double x) {
    if (!(x >= 0) || !std::isfinite(x)) wrong(field, number_text(x), "a finite number of at least 0");
  };
  const auto check_finite = [&](const char* field, double x) {
    if (!std::isfinite(x)) wrong(field, number_text(x), "a finite number");
  };
  const auto ordered = [&](const char* field, const std::array<double, 2>& range) {
    if (!(range[0] < range[1])) wrong(field, text_of(range), "low < high");
  };
  if (has_axis(joint.type) && (!finite(joint.axis) || std::abs(norm(joint.axis) - 1) > 1e-9))
    wrong("axis", text_of(joint.axis), "a unit vector");
  if (!is_place(joint.position)) wrong("position", text_of(joint.position), "numbers within 1e10 m");
  non_negative("stiffness", joint.stiffness);
  non_negative("damping", joint.damping);
  non_negative("armature", joint.armature);
  non_negative("frictionloss", joint.friction_loss);
  check_finite("reference", joint.reference);
  check_finite("springref", joint.spring_reference);
  check_finite("margin", joint.margin);
  for (const double x : joint.stiffness_polynomial) check_finite("stiffness polynomial", x);
  for (const double x : joint.damping_polynomial) check_finite("damping polynomial", x);
  if (joint.limited && !moves_freely(joint.type)) ordered("range", joint.range);
  if (joint.force_limited) ordered("actuatorfrcrange", joint.force_range);
}

void Compiler::check_joints(const BodySpec& body) {
  int dofs = 0, balls = 0, hinges = 0, frees = 0;
  for (const JointSpec& joint : body.joints) {
    dofs += qvel_count(joint.type);
    balls += turns_freely(joint.type);
    hinges += turns_on_axis(joint.type);
    frees += moves_freely(joint.type);
    check_joint(joint, joint.name.empty() ? "a joint of " + label(body) : "joint \"" + joint.name + "\"");
  }
  const std::string name = label(body) + " ";
  if (frees > 0 && body.parent != 0)
    error(body.where, name + "has a free joint, which only a child of the world may have");
  if (frees > 0 && body.joints.size() > 1) error(body.where, name + "has a free joint and other joints");
  if (balls > 1) error(body.where, name + "has two ball joints");
  if (balls > 0 && hinges > 0) error(body.where, name + "has a ball joint and a hinge");
  if (dofs > 6) error(body.where, name + "has " + std::to_string(dofs) + " degrees of freedom, more than 6");
}

void Compiler::check_inertial(const BodySpec& body) {
  if (!body.inertial) return;
  const InertialSpec& i = *body.inertial;
  const Location& where = i.where.line ? i.where : body.where;
  const auto wrong = [&](const char* field, const std::string& value, const char* expected) {
    error(where, label(body), field, value, expected);
  };
  if (!(i.mass >= 0) || !std::isfinite(i.mass)) wrong("mass", number_text(i.mass), "a finite number of at least 0 kg");
  if (!is_place(i.com)) wrong("centre of mass", text_of(i.com), "numbers within 1e10 m");
  const Sym3d& s = i.inertia;
  if (!finite({s.xx, s.xy, s.xz}) || !finite({s.yy, s.yz, s.zz})) {
    wrong("inertia (xx yy zz xy xz yz)", text_of(std::array{s.xx, s.yy, s.zz, s.xy, s.xz, s.yz}), "finite numbers");
    return;
  }
  const Vec3d d = eigen(s).values;
  const double slack = 1e-6 * (std::abs(d.x) + std::abs(d.y) + std::abs(d.z));
  if (d.z >= -slack) return;
  const WeldedInertia welded = welded_inertia(spec_, int(&body - spec_.bodies.data()));
  if (welded.moves && !welded.positive())
    wrong("inertia", "that of principal moments " + text_of(d), "a positive semidefinite one");
}

Joint Compiler::joint(const JointSpec& spec, int body, int parent, int qpos, int qvel) const {
  Joint joint;
  joint.name = spec.name;
  joint.type = spec.type;
  joint.body = body;
  joint.parent = parent;
  joint.qpos = qpos, joint.qvel = qvel;
  joint.axis = spec.axis, joint.position = spec.position;
  joint.reference = spec.reference, joint.spring_reference = spec.spring_reference;
  joint.stiffness = spec_.option.spring_enabled ? spec.stiffness : 0;
  joint.damping = spec_.option.damper_enabled ? spec.damping : 0;
  joint.armature = spec.armature;
  joint.friction_loss = spec_.option.friction_loss_enabled ? spec.friction_loss : 0;
  joint.limited = spec.limited && spec_.option.limit_enabled, joint.range = spec.range, joint.margin = spec.margin;
  joint.force_limited = spec.force_limited, joint.force_range = spec.force_range;
  joint.where = spec.where;
  return joint;
}

/// X_PB: pose of the body's frame, at rest, in the frame of the joint's parent link.
void Compiler::add_joint(Model& model, const JointSpec& spec, int body, const Transformd& X_PB) {
  const int parent = model.bodies[body].link;
  model.joints.push_back(joint(spec, body, parent, model.nq, model.nv));
  Transformd X_BL = kIdentity;
  if (turns_freely(spec.type)) X_BL.p = spec.position;
  if (has_axis(spec.type)) {
    // z along the axis, with the smallest rotation from the parent link's axes.
    const Mat3d R_PL = rotation(between({0, 0, 1}, X_PB.R * spec.axis));
    X_BL = {transpose(X_PB.R) * R_PL, spec.position};
  }
  rest_.push_back(moves_freely(spec.type) ? kIdentity : X_PB * X_BL);
  X_BL_.push_back(X_BL);
  if (moves_freely(spec.type) || turns_freely(spec.type))
    model.quaternions.push_back(model.nq + qpos_count(spec.type) - 4);
  model.nq += qpos_count(spec.type);
  model.nv += qvel_count(spec.type);
  // The sign is that of the file's quaternion, so that states compare number for number.
  append_drawn_qpos(spec, X_PB.p, quaternion(X_PB.R, spec_.bodies[body].orientation), model.qpos0);
  model.armature.insert(model.armature.end(), qvel_count(spec.type), spec.armature);
  model.dof_joint.insert(model.dof_joint.end(), qvel_count(spec.type), int(model.joints.size()) - 1);
  model.bodies[body].link = int(model.joints.size()) - 1;
}

void Compiler::add_body(Model& model, int index) {
  const BodySpec& spec = spec_.bodies[index];
  Body& body = model.bodies[index];
  body.name = spec.name;
  body.parent = index == 0 ? 0 : spec.parent;
  body.where = spec.where;
  if (spec.inertial)
    body.mass = spec.inertial->mass, body.com = spec.inertial->com, body.inertia = spec.inertial->inertia;
  const Transformd X_parent_B{rotation(normalized(spec.orientation)), spec.position};
  const Body& parent = model.bodies[body.parent];
  body.link = index == 0 ? -1 : parent.link;
  Transformd X_LB = index == 0 ? X_parent_B : parent.X_LB * X_parent_B;
  const Body& carrier = model.bodies[body.parent];
  if (spec.mocap) {
    body.mocap = model.nmocap(), body.X_MB = kIdentity;
    model.mocap_bodies.push_back(index);
  } else if (index > 0 && carrier.mocap >= 0 && spec.joints.empty()) {
    body.mocap = carrier.mocap, body.X_MB = carrier.X_MB * X_parent_B;
  }
  body.joint_first = model.njoint();
  body.joint_count = int(spec.joints.size());
  for (const JointSpec& joint : spec.joints) {
    add_joint(model, joint, index, X_LB);
    X_LB = inverse(X_BL_.back());
  }
  body.X_LB = X_LB;
}

void Compiler::lay_out(Model& model) {
  model.name = spec_.name;
  model.timestep = spec_.option.timestep;
  model.gravity = spec_.option.gravity_enabled ? spec_.option.gravity : Vec3d{0, 0, 0};
  for (const ActuatorSpec& actuator : spec_.actuators)
    model.nu += actuator.controls(), model.na += actuator.activations();
  model.bodies.resize(spec_.bodies.size());
  for (std::size_t i = 0; i < spec_.bodies.size(); ++i) add_body(model, int(i));
}

}  // namespace

std::vector<RigidInertia<double>> link_inertias(const Model& model, std::span<const double> scale,
                                                std::span<const double> com_offset) {
  const RigidInertia<double> none{0, {0, 0, 0}, {0, 0, 0, 0, 0, 0}};
  std::vector<RigidInertia<double>> sum(model.joints.size(), none);
  for (std::size_t i = 0; i < model.bodies.size(); ++i) {
    const Body& body = model.bodies[i];
    if (body.link < 0) continue;
    const double s = scale.empty() ? 1 : scale[i];
    Vec3d com = body.com;
    for (int k = 0; k < 3 && !com_offset.empty(); ++k) com[k] += com_offset[3 * i + std::size_t(k)];
    const Vec3d c = body.X_LB.R * com + body.X_LB.p;
    const RigidInertia<double> about_com{s * body.mass, {0, 0, 0}, rotate(body.X_LB.R, body.inertia * s)};
    sum[body.link] = sum[body.link] + shift_back(about_com, c);
  }
  return sum;
}

namespace {

void store(LinkConstants<double>& link, const Transformd& rest, const RigidInertia<double>& inertia) {
  for (int k = 0; k < 9; ++k) link.E0[k] = rest.R(k / 3, k % 3);
  for (int k = 0; k < 3; ++k) link.r0[k] = rest.p[k], link.h[k] = inertia.h[k];
  const Sym3d& I = inertia.I;
  const double packed[6] = {I.xx, I.xy, I.xz, I.yy, I.yz, I.zz};
  std::copy(packed, packed + 6, link.I);
  link.mass = inertia.mass;
  // A file may give a link rotational inertia but no mass (a rotor).
  link.massless = inertia.mass == 0 && std::all_of(packed, packed + 6, [](double x) { return x == 0; });
}

/// Sᵀ I S of everything that a joint carries with all joints at rest, plus its armature.
/// @param carried [link] inertias of the links  @param out [nv] armature
std::vector<double> carried_inertia(const Model& model, const std::vector<Transformd>& rest,
                                    std::vector<RigidInertia<double>> carried, std::vector<double> out) {
  for (std::size_t i = carried.size(); i-- > 0;) {
    const Joint& joint = model.joints[i];
    const RigidInertia<double>& I = carried[i];
    double* own = &out[std::size_t(joint.qvel)];
    if (has_axis(joint.type)) {
      *own += turns_on_axis(joint.type) ? I.I.zz : I.mass;
    } else {
      const int slides = joint.nv() - 3;  // a free joint's linear DoFs come first
      for (int k = 0; k < slides; ++k) own[k] += I.mass;
      const double turns[] = {I.I.xx, I.I.yy, I.I.zz};
      for (int k = 0; k < 3; ++k) own[slides + k] += turns[k];
    }
    if (joint.parent < 0) continue;
    const Transformd& at = rest[i];
    const RigidInertia<double> turned{I.mass, at.R * I.h, rotate(at.R, I.I)};
    carried[std::size_t(joint.parent)] = carried[std::size_t(joint.parent)] + shift_back(turned, at.p);
  }
  return out;
}

std::vector<LinkConstants<double>> make_links(const Model& model, const std::vector<Transformd>& rest) {
  const std::vector<RigidInertia<double>> inertia = link_inertias(model);
  std::vector<LinkConstants<double>> links(model.joints.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Joint& joint = model.joints[i];
    LinkConstants<double>& link = links[i];
    link.parent = joint.parent, link.joint = joint.type;
    link.root = joint.parent < 0 ? int(i) : links[joint.parent].root;
    link.qpos = joint.qpos, link.qvel = joint.qvel;
    link.depth = joint.nv() + (joint.parent < 0 ? 0 : links[joint.parent].depth);
    link.reference = joint.reference, link.stiffness = joint.stiffness, link.damping = joint.damping;
    link.spring_rate2 = spring_rate(joint, model.carried_inertia);
    link.alone = joint.parent < 0 && moves_freely(joint.type);
    if (joint.parent >= 0) links[joint.parent].alone = 0;
    store(link, rest[i], inertia[i]);
  }
  return links;
}

LinkConstants<float> to_float(const LinkConstants<double>& a) {
  LinkConstants<float> b{a.parent,
                         a.root,
                         a.joint,
                         a.qpos,
                         a.qvel,
                         a.massless,
                         a.alone,
                         a.depth,
                         {},
                         {},
                         float(a.reference),
                         float(a.stiffness),
                         float(a.spring_rate2),
                         float(a.damping),
                         float(a.mass),
                         {},
                         {}};
  std::copy(a.E0, a.E0 + 9, b.E0);
  std::copy(a.r0, a.r0 + 3, b.r0);
  std::copy(a.h, a.h + 3, b.h);
  std::copy(a.I, a.I + 6, b.I);
  return b;
}

}  // namespace

/// Equality except for names and lines.
static bool say_the_same(const EqualitySpec& x, const EqualitySpec& y) {
  const Quatd &q = x.relative_orientation, &r = y.relative_orientation;
  const bool pose = x.has_relative_pose == y.has_relative_pose &&
                    norm(x.relative_position - y.relative_position) == 0 && q.w == r.w && norm(q.vec() - r.vec()) == 0;
  return x.type == y.type && x.first == y.first && x.second == y.second && x.sites == y.sites && pose &&
         norm(x.anchor - y.anchor) == 0 && x.torque_scale == y.torque_scale && x.polynomial == y.polynomial;
}

/// Marks equalities that always hold: between bodies of one link, and duplicates.
static void find_idle_equalities(const Model& model, ModelSpec& spec) {
  const auto body_of = [&](const std::string& name, bool site) {
    if (site) return find_on_bodies(spec, &BodySpec::sites, name).body;
    return name.empty() ? 0 : model.find_body(name);
  };
  const auto held_at = [&](const EqualitySpec& e, int a, int b) {
    if (!e.sites) return joints_hold(model, a, e.anchor, b);
    return joints_hold(model, a, find_on_bodies(spec, &BodySpec::sites, e.first).spec->position, b,
                       find_on_bodies(spec, &BodySpec::sites, e.second).spec->position);
  };
  // A spatial tendon whose path lies on one link has constant length.
  const auto stays = [&](const std::string& name) {
    const int tendon = index_of(spec.tendons, name);
    if (tendon < 0 || !spec.tendons[std::size_t(tendon)].spatial) return false;
    std::set<int> carriers;
    for (const TendonSpec::PathPoint& point : spec.tendons[std::size_t(tendon)].path) {
      if (point.kind == TendonSpec::PathKind::pulley) continue;
      const bool site = point.kind == TendonSpec::PathKind::site;
      const int body = site ? find_on_bodies(spec, &BodySpec::sites, point.name).body
                            : find_on_bodies(spec, &BodySpec::geoms, point.name).body;
      if (body >= 0) carriers.insert(model.carrier(body));
    }
    return carriers.size() == 1;
  };
  std::unordered_map<std::string, std::vector<const EqualitySpec*>> acting;
  for (EqualitySpec& e : spec.equalities) {
    e.idle = false;
    if (!e.active) continue;
    const auto drop = [&](const char* why) {
      e.idle = true;
      spec.diagnostics.push_back({Severity::warning, e.where, why});
    };
    if (e.type == EqualityType::connect || e.type == EqualityType::weld) {
      const int a = body_of(e.first, e.sites), b = body_of(e.second, e.sites);
      if (a >= 0 && b >= 0 && model.bodies[std::size_t(a)].link == model.bodies[std::size_t(b)].link) {
        drop("no effect: the bodies of this equality cannot move relative to each other");
        continue;
      }
      if (e.type == EqualityType::connect && a >= 0 && b >= 0 && held_at(e, a, b)) {
        drop("no effect: the joints between the connected bodies already keep them together at this point");
        continue;
      }
    }
    if (e.type == EqualityType::tendon && stays(e.first) && (e.second.empty() || stays(e.second))) {
      drop("no effect: the tendons of this equality have constant length");
      continue;
    }
    std::vector<const EqualitySpec*>& others = acting[e.first + '\n' + e.second];
    if (std::any_of(others.begin(), others.end(), [&](const EqualitySpec* other) { return say_the_same(*other, e); }))
      drop("no effect: an earlier equality is the same");
    else
      others.push_back(&e);
  }
}

bool WeldedInertia::positive() const {
  const Vec3d d = eigen(inertia).values;
  return d.z >= -1e-6 * (std::abs(d.x) + std::abs(d.y) + std::abs(d.z));
}

WeldedInertia welded_inertia(const ModelSpec& spec, int body) {
  struct Pose {
    Vec3d p{0, 0, 0};
    Quatd q{1, 0, 0, 0};
  };
  const std::vector<BodySpec>& bodies = spec.bodies;
  const auto fixed = [&](int i) {
    const BodySpec& b = bodies[std::size_t(i)];
    return b.joints.empty() && b.parent >= 0 && b.parent < i;
  };
  int root = body;
  while (root > 0 && fixed(root)) root = bodies[std::size_t(root)].parent;
  WeldedInertia out;
  if (root <= 0) return out;
  out.moves = true;
  std::vector<std::optional<Pose>> poses(bodies.size());
  poses[std::size_t(root)] = Pose{};
  Vec3d first{0, 0, 0};
  for (int i = root; i < int(bodies.size()); ++i) {
    const BodySpec& b = bodies[std::size_t(i)];
    if (i > root && fixed(i) && poses[std::size_t(b.parent)]) {
      const Pose& up = *poses[std::size_t(b.parent)];
      poses[std::size_t(i)] = Pose{rotate(up.q, b.position) + up.p, up.q * b.orientation};
    }
    const std::optional<Pose>& pose = poses[std::size_t(i)];
    if (!pose || !b.inertial) continue;
    const Vec3d c = rotate(pose->q, b.inertial->com) + pose->p;
    out.mass += b.inertial->mass, first = first + c * b.inertial->mass;
    out.inertia = out.inertia + rotate(rotation(pose->q), b.inertial->inertia) + point_inertia(b.inertial->mass, c);
  }
  if (out.mass > 0) out.inertia = out.inertia + point_inertia(-1 / out.mass, first);
  return out;
}

double spring_rate(const Joint& joint, std::span<const double> carried) {
  double rate = 0;
  for (int k = 0; k < joint.nv() && joint.stiffness > 0; ++k)
    rate = std::max(rate, joint.stiffness / carried[std::size_t(joint.qvel + k)]);
  return rate;
}

std::vector<double> carried_inertia(const Model& model, std::span<const RigidInertia<double>> inertia,
                                    std::span<const double> armature) {
  std::vector<Transformd> rest;
  for (int i = 0; i < model.njoint(); ++i) {
    const LinkConstants<double>& link = model.view<double>().link[i];
    const double* E = link.E0;
    rest.push_back({{E[0], E[1], E[2], E[3], E[4], E[5], E[6], E[7], E[8]}, {link.r0[0], link.r0[1], link.r0[2]}});
  }
  return carried_inertia(model, rest, {inertia.begin(), inertia.end()}, {armature.begin(), armature.end()});
}

Model compile(ModelSpec spec) {
  split_chains(spec);
  Compiler compiler(spec);
  compiler.check();
  Model model;
  compiler.lay_out(model);
  model.carried_inertia = carried_inertia(model, compiler.rest(), link_inertias(model), model.armature);
  model.links_ = make_links(model, compiler.rest());
  for (const LinkConstants<double>& link : model.links_) {
    model.depth = std::max(model.depth, link.depth);
    model.links_float_.push_back(to_float(link));
  }
  std::vector<int> parent;
  std::vector<JointType> type;
  for (const Joint& joint : model.joints) parent.push_back(joint.parent), type.push_back(joint.type);
  model.inward_ = inward_groups(parent, type);
  model.qpos_spring = model.qpos0;
  for (const Joint& joint : model.joints) {
    if (joint.nq() == 1) model.qpos_spring[joint.qpos] = joint.spring_reference;
  }
  model.qpos_spring_float_.assign(model.qpos_spring.begin(), model.qpos_spring.end());
  model.armature_float_.assign(model.armature.begin(), model.armature.end());
  find_idle_equalities(model, spec);
  model.spec = std::move(spec);
  return model;
}

}  // namespace tarsus
