#include "tarsus/io/mjcf_writer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "tarsus/base/hash.hpp"
#include "tarsus/math/rotation.hpp"
#include "tarsus/model/joint_parts.hpp"
#include "tarsus/model/sensor_kind.hpp"
#include "xml_writer.hpp"

namespace tarsus {

namespace {

constexpr double kLeastMoment = 1e-14;  // MuJoCo's least principal moment of a fullinertia
constexpr double kNoEnd = 1e10;         // written for an infinite end of a range; MJCF has no infinity

std::array<double, 2> finite_range(const std::array<double, 2>& r) {
  return {std::isinf(r[0]) ? -kNoEnd : r[0], std::isinf(r[1]) ? kNoEnd : r[1]};
}

/// Appends numbers in the shortest form that reads back to the same bits, separated by blanks.
void append_numbers(std::string& text, std::initializer_list<double> numbers) {
  for (const double x : numbers) {
    char digits[32];
    if (!text.empty()) text += ' ';
    text.append(digits, std::to_chars(digits, digits + sizeof digits, x).ptr);
  }
}

class MjcfWriter {
 public:
  MjcfWriter(const ModelSpec& spec, const std::filesystem::path& folder) : spec_(spec), folder_(folder) {}
  std::string write(std::vector<std::string>* losses);

 private:
  void lose(const std::string& what) { ++lost_[what]; }
  void keep(const std::string& what) { ++lost_[std::string(kKeptPrefix) + what]; }
  void check_order() const;
  void find_losses();
  void find_heavy_losses();
  void write_option(const XmlWriter& root) const;
  void write_assets(const XmlWriter& root);
  void write_mesh(const XmlWriter& asset, const MeshSpec& mesh);
  void write_height_field(const XmlWriter& asset, const HeightFieldSpec& field) const;
  void write_cosmetic(const XmlWriter& parent, const CosmeticSpec& c, const char* element) const;
  void write_bodies(const XmlWriter& root);
  void write_joint(const XmlWriter& body, const JointSpec& joint) const;
  void write_geom(const XmlWriter& body, const GeomSpec& geom);
  void write_site(const XmlWriter& body, const SiteSpec& site) const;
  void write_contact(const XmlWriter& root);
  void write_equalities(const XmlWriter& root) const;
  void write_tendons(const XmlWriter& root);
  void write_actuators(const XmlWriter& root);
  void write_motor(const XmlWriter& root, const XmlWriter& e, const ActuatorSpec& a);
  std::string force_class(const XmlWriter& root, const std::array<double, 2>& range);
  void write_sensors(const XmlWriter& root);
  void write_keyframes(const XmlWriter& root) const;
  void write_kept_settings(const XmlWriter& root) const;

  const ModelSpec& spec_;
  const std::filesystem::path folder_;
  std::map<std::string, int> lost_;
  std::set<std::string> lost_meshes_, lost_geoms_, lost_actuators_;
  XmlWriter default_;
  int force_classes_ = 0;
};

bool in(const std::set<std::string>& names, const std::string& name) { return !name.empty() && names.count(name) > 0; }

template <class T>
void write_solver(const XmlWriter& e, const T& spec) {
  e.set_list("solref", spec.solver_reference);
  e.set_list("solimp", spec.solver_impedance);
}

/// Whether bodies are numbered depth first: each one's parent is the preceding body or one of that body's ancestors.
bool depth_first(const std::vector<BodySpec>& bodies) {
  std::vector<int> branch{0};
  for (std::size_t i = 1; i < bodies.size(); ++i) {
    while (!branch.empty() && branch.back() != bodies[i].parent) branch.pop_back();
    if (branch.empty()) return false;
    branch.push_back(static_cast<int>(i));
  }
  return true;
}

void MjcfWriter::check_order() const {
  if (spec_.keyframes.empty() || depth_first(spec_.bodies)) return;
  throw ValueError("bodies", "not in depth-first order", "depth-first order, which keyframes depend on");
}

void MjcfWriter::find_losses() {
  for (const BodySpec& body : spec_.bodies) {
    for (const JointSpec& joint : body.joints) {
      if (std::isfinite(joint.velocity_limit)) lose("velocity limits of joints");
      if (joint.limited && finite_range(joint.range) != joint.range)
        lose("infinite ends of joint ranges, written as 1e10");
    }
  }
  if (spec_.bodies[0].inertial && spec_.bodies[0].inertial->mass > 0) lose("mass of the world");
  for (const CosmeticSpec& c : spec_.cosmetics) {
    if (c.kind == "custom.tuple") lose("custom tuples");
  }
  find_heavy_losses();
}

/// Lists bodies that MJCF readers refuse.
void MjcfWriter::find_heavy_losses() {
  std::vector<char> heavy(spec_.bodies.size(), false);
  for (std::size_t i = spec_.bodies.size(); i-- > 1;) {
    const BodySpec& body = spec_.bodies[i];
    if (body.inertial) {
      const Vec3d d = eigen(body.inertial->inertia).values;
      heavy[i] |= body.inertial->mass >= 1e-15 && d.z >= 1e-15;
      if (d.y + d.z < d.x * (1 - 1e-6))
        keep("inertias that violate the triangle inequality; MJCF readers refuse them, --fix balance repairs them");
    }
    if (!body.joints.empty() && !heavy[i]) keep("moving bodies without mass or inertia; MJCF readers refuse them");
    if (body.joints.empty() && heavy[i]) heavy[static_cast<std::size_t>(body.parent)] = true;
  }
}

void MjcfWriter::write_option(const XmlWriter& root) const {
  const OptionSpec &o = spec_.option, usual;
  const XmlWriter e = root.child("option");
  e.set("timestep", o.timestep);
  e.set("gravity", o.gravity);
  if (norm(o.wind) > 0) e.set("wind", o.wind);
  e.set_unless("density", o.density, 0.0);
  e.set_unless("viscosity", o.viscosity, 0.0);
  e.set_unless("impratio", o.impact_ratio, usual.impact_ratio);
  e.set_unless("integrator", o.integrator, usual.integrator);
  e.set_unless("solver", o.solver, usual.solver);
  e.set_unless("cone", o.cone, usual.cone);
  e.set_unless("iterations", o.iterations, usual.iterations);
  e.set_unless("tolerance", o.tolerance, usual.tolerance);
  if (norm(o.magnetic - usual.magnetic) > 0) e.set("magnetic", o.magnetic);
  for (const auto& [name, value] : o.kept) e.set(name.c_str(), value);
  const std::pair<const char*, bool> flags[] = {
      {"contact", o.contact_enabled},     {"gravity", o.gravity_enabled},
      {"actuation", o.actuation_enabled}, {"spring", o.spring_enabled},
      {"damper", o.damper_enabled},       {"clampctrl", o.clamp_controls},
      {"limit", o.limit_enabled},         {"frictionloss", o.friction_loss_enabled},
      {"equality", o.equality_enabled}};
  if (o.kept_flags.empty() && std::all_of(std::begin(flags), std::end(flags), [](const auto& f) { return f.second; }))
    return;
  const XmlWriter flag = e.child("flag");
  for (const auto& [name, enabled] : flags) {
    if (!enabled) flag.set(name, "disable");
  }
  for (const auto& [name, value] : o.kept_flags) flag.set(name.c_str(), value);
}

/// Writes attributes as they were read. Attributes "layer.x" come from consecutive child elements <layer>.
void MjcfWriter::write_cosmetic(const XmlWriter& parent, const CosmeticSpec& c, const char* element) const {
  const XmlWriter e = parent.child(element);
  e.set_name(c.name);
  XmlWriter layer;
  std::set<std::string> seen;
  for (const auto& [name, value] : c.attributes) {
    if (name == "name" || name == "class") continue;
    if (name.rfind("layer.", 0) != 0) {
      const bool file = c.kind == "texture" && name.starts_with("file");
      e.set(name.c_str(), file ? seen_from(folder_, value) : value);
      continue;
    }
    if (!layer || !seen.insert(name).second) layer = e.child("layer"), seen = {name};
    layer.set(name.c_str() + 6, value);
  }
}

void MjcfWriter::write_mesh(const XmlWriter& asset, const MeshSpec& mesh) {
  if (mesh.vertices.empty()) {
    std::string end = mesh.file.size() > 4 ? mesh.file.substr(mesh.file.size() - 4) : "";
    std::transform(end.begin(), end.end(), end.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    if ((end != ".stl" && end != ".obj" && end != ".msh") || mesh.file.find("://") != std::string::npos) {
      lost_meshes_.insert(mesh.name);
      return lose("meshes that were not read, and their geoms");
    }
    keep("meshes whose files are missing");
  }
  const XmlWriter e = asset.child("mesh");
  e.set_name(mesh.name);
  e.set_unless("inertia", mesh.inertia, std::string("legacy"));
  if (mesh.vertices.empty()) {
    e.set("file", seen_from(folder_, mesh.file));
    if (mesh.scale.x != 1 || mesh.scale.y != 1 || mesh.scale.z != 1) e.set("scale", mesh.scale);
    return;
  }
  std::string vertices, faces;
  for (const Vec3d& v : mesh.vertices) append_numbers(vertices, {v.x, v.y, v.z});
  for (const auto& t : mesh.triangles) append_numbers(faces, {double(t[0]), double(t[1]), double(t[2])});
  e.set("vertex", vertices);
  e.set("face", faces);
}

void MjcfWriter::write_height_field(const XmlWriter& asset, const HeightFieldSpec& field) const {
  const XmlWriter e = asset.child("hfield");
  e.set_name(field.name);
  e.set("size", fmt::format("{} {} {} {}", field.size[0], field.size[1], field.size[2], field.size[3]));
  if (field.rows == 0) return e.set("file", field.file);
  e.set("nrow", std::to_string(field.rows));
  e.set("ncol", std::to_string(field.columns));
  if (field.elevation.empty()) return;
  std::string elevation;
  for (int r = field.rows; r-- > 0;) {  // the text begins with the row at +y
    for (int c = 0; c < field.columns; ++c) {
      const auto k =
          static_cast<std::size_t>(r) * static_cast<std::size_t>(field.columns) + static_cast<std::size_t>(c);
      append_numbers(elevation, {field.elevation[k]});
    }
  }
  e.set("elevation", elevation);
}

void MjcfWriter::write_assets(const XmlWriter& root) {
  const XmlWriter asset = root.child("asset");
  for (const char* kind : {"texture", "material"}) {
    for (const CosmeticSpec& c : spec_.cosmetics) {
      if (c.kind == kind) write_cosmetic(asset, c, kind);
    }
  }
  for (const MeshSpec& mesh : spec_.meshes) write_mesh(asset, mesh);
  for (const HeightFieldSpec& field : spec_.height_fields) write_height_field(asset, field);
}

namespace {

void write_polynomial(const XmlWriter& e, const char* attribute, double first, const std::array<double, 2>& more) {
  if (more != std::array<double, 2>{0, 0})
    e.set_list(attribute, std::array<double, 3>{first, more[0], more[1]});
  else
    e.set_unless(attribute, first, 0.0);
}

const char* name(ActuatorLaw law) {
  return law == ActuatorLaw::fixed    ? "fixed"
         : law == ActuatorLaw::affine ? "affine"
         : law == ActuatorLaw::muscle ? "muscle"
         : law == ActuatorLaw::none   ? "none"
                                      : "user";
}

}  // namespace

void MjcfWriter::write_joint(const XmlWriter& body, const JointSpec& joint) const {
  const XmlWriter e = body.child("joint");
  e.set_name(joint.name);
  e.set("type", name(joint.type));
  if (norm(joint.position) > 0 && !moves_freely(joint.type)) e.set("pos", joint.position);
  if (has_axis(joint.type)) {
    e.set("axis", joint.axis);
    e.set_unless("ref", joint.reference, 0.0);
    e.set_unless("springref", joint.spring_reference, 0.0);
  }
  write_polynomial(e, "stiffness", joint.stiffness, joint.stiffness_polynomial);
  write_polynomial(e, "damping", joint.damping, joint.damping_polynomial);
  e.set_unless("actuatorgravcomp", joint.actuator_gravity_compensation, false);
  e.set_unless("armature", joint.armature, 0.0);
  e.set_unless("frictionloss", joint.friction_loss, 0.0);
  if (!moves_freely(joint.type)) {
    e.set("limited", joint.limited);
    if (joint.limited || joint.range != std::array<double, 2>{0, 0}) e.set_list("range", finite_range(joint.range));
    e.set("actuatorfrclimited", joint.force_limited);
    if (joint.force_limited) e.set_list("actuatorfrcrange", joint.force_range);
  }
  e.set_unless("margin", joint.margin, 0.0);
  e.set_unless("group", joint.group, 0);
  e.set_list("solreflimit", joint.solver_limit);
  e.set_list("solimplimit", joint.solver_impedance);
  e.set_list("solreffriction", joint.solver_friction_limit);
  e.set_list("solimpfriction", joint.solver_friction_impedance);
  e.set_list("user", joint.user);
}

/// Whether the bodies' principal axes affect the result: through fluid drag on equivalent inertia boxes, or through a
/// sensor with objtype="body".
bool reads_principal_axes(const ModelSpec& spec) {
  if (spec.option.density > 0 || spec.option.viscosity > 0) return true;
  const auto is_body = [](const auto& a) {
    return (a.first == "objtype" || a.first == "reftype") && a.second == "body";
  };
  return std::any_of(spec.sensors.begin(), spec.sensors.end(), [&](const SensorSpec& sensor) {
    return std::any_of(sensor.attributes.begin(), sensor.attributes.end(), is_body);
  });
}

/// Whether the document defines a material of this name. Materials from URDF have no definition here.
bool has_material(const ModelSpec& spec, const std::string& name) {
  return std::any_of(spec.cosmetics.begin(), spec.cosmetics.end(),
                     [&](const CosmeticSpec& c) { return c.kind == "material" && c.name == name; });
}

void MjcfWriter::write_geom(const XmlWriter& body, const GeomSpec& geom) {
  const bool mesh = geom.type == GeomType::mesh;
  if (mesh && lost_meshes_.count(geom.mesh)) return void(lost_geoms_.insert(geom.name));
  const GeomSpec usual;
  const XmlWriter e = body.child("geom");
  e.set_name(geom.name);
  e.set("type", name(geom.type));
  if (mesh)
    e.set("mesh", geom.mesh);
  else if (geom.type == GeomType::height_field)
    e.set("hfield", geom.height_field);
  else if (geom.type == GeomType::plane && geom.size.z == 0)
    e.set("size", Vec3d{geom.size.x, geom.size.y, 1});  // the spacing of its grid, which MuJoCo needs
  else
    e.set("size", geom.size);
  e.set_place(geom.position, geom.orientation);
  e.set_unless("contype", geom.contype, usual.contype);
  e.set_unless("conaffinity", geom.conaffinity, usual.conaffinity);
  e.set_unless("condim", geom.condim, usual.condim);
  e.set_unless("priority", geom.priority, usual.priority);
  e.set_unless("group", geom.group, usual.group);
  if (geom.friction != usual.friction) e.set_list("friction", geom.friction);
  write_solver(e, geom);
  e.set_unless("solmix", geom.solver_mix, usual.solver_mix);
  e.set_unless("margin", geom.margin, usual.margin);
  e.set_unless("gap", geom.gap, usual.gap);
  if (geom.mass) e.set("mass", *geom.mass);
  e.set_unless("density", geom.density, usual.density);
  e.set_unless("shellinertia", geom.shell_inertia, false);
  if (geom.fluid_ellipsoid) e.set("fluidshape", "ellipsoid");
  if (geom.fluid_coefficients != usual.fluid_coefficients) e.set_list("fluidcoef", geom.fluid_coefficients);
  if (geom.rgba != usual.rgba) e.set_list("rgba", geom.rgba);
  if (has_material(spec_, geom.material)) e.set("material", geom.material);
  e.set_list("user", geom.user);
}

void MjcfWriter::write_site(const XmlWriter& body, const SiteSpec& site) const {
  const SiteSpec usual;
  const XmlWriter e = body.child("site");
  e.set_name(site.name);
  e.set("type", name(site.type));
  e.set("size", site.size);
  e.set_place(site.position, site.orientation);
  e.set_unless("group", site.group, 0);
  if (site.rgba != usual.rgba) e.set_list("rgba", site.rgba);
  if (has_material(spec_, site.material)) e.set("material", site.material);
  e.set_list("user", site.user);
}

void MjcfWriter::write_bodies(const XmlWriter& root) {
  std::vector<XmlWriter> written(spec_.bodies.size());
  for (std::size_t i = 0; i < spec_.bodies.size(); ++i) {
    const BodySpec& body = spec_.bodies[i];
    XmlWriter& e = written[i];
    if (i == 0) {
      e = root.child("worldbody");
    } else {
      e = written[static_cast<std::size_t>(body.parent)].child("body");
      e.set_name(body.name);
      e.set_place(body.position, body.orientation);
      e.set_unless("mocap", body.mocap, false);
      e.set_unless("gravcomp", body.gravity_compensation, 0.0);
      e.set_list("user", body.user);
      if (body.inertial) {
        const InertialSpec& inertial = *body.inertial;
        const Sym3d& s = inertial.inertia;
        const XmlWriter mass = e.child("inertial");
        mass.set("mass", inertial.mass);
        mass.set("pos", inertial.com);
        const Eigen3 principal = eigen(s);
        const Quatd axes = inertial.axes ? *inertial.axes : principal.orientation;
        const bool along_axes = s.xy == 0 && s.xz == 0 && s.yz == 0 && axes.w == 1;
        // Sensors of bodies read these axes. From a full tensor MuJoCo would choose axes itself, in the order of the
        // moments.
        const bool own_axes = !along_axes && inertial.axes && reads_principal_axes(spec_);
        if (!along_axes && !own_axes && principal.values.z >= kLeastMoment) {
          mass.set_list("fullinertia", std::array<double, 6>{s.xx, s.yy, s.zz, s.xy, s.xz, s.yz});
        } else {  // MuJoCo accepts zero moments in diaginertia only, with no tolerance in the triangle inequality
          const Quatd q = along_axes ? Quatd{1, 0, 0, 0} : own_axes ? axes : principal.orientation;
          const Sym3d own = along_axes ? s : rotate(transpose(rotation(q)), s);
          Vec3d v = along_axes || own_axes ? Vec3d{own.xx, own.yy, own.zz} : principal.values;
          for (int k = 0; k < 3; ++k) v[k] = std::max(v[k], 0.0);
          for (int k = 0; k < 3; ++k) {
            const double others = v[(k + 1) % 3] + v[(k + 2) % 3];
            if (v[k] * (1 - 1e-12) < others) v[k] = std::min(v[k], others);
          }
          mass.set("diaginertia", v);
          if (q.w != 1) mass.set_list("quat", std::array<double, 4>{q.w, q.x, q.y, q.z});
        }
      }
      for (const JointSpec& joint : body.joints) write_joint(e, joint);
    }
    for (const GeomSpec& geom : body.geoms) write_geom(e, geom);
    for (const SiteSpec& site : body.sites) write_site(e, site);
    for (const CosmeticSpec& c : spec_.cosmetics) {
      if (c.body == static_cast<int>(i) && (c.kind == "light" || c.kind == "camera"))
        write_cosmetic(e, c, c.kind.c_str());
    }
  }
}

void MjcfWriter::write_contact(const XmlWriter& root) {
  if (spec_.contact_pairs.empty() && spec_.contact_excludes.empty()) return;
  const XmlWriter contact = root.child("contact");
  for (const ContactPairSpec& pair : spec_.contact_pairs) {
    if (in(lost_geoms_, pair.geom1) || in(lost_geoms_, pair.geom2)) {
      lose("contact pairs with geoms that could not be written");
      continue;
    }
    const XmlWriter e = contact.child("pair");
    e.set_name(pair.name);
    e.set("geom1", pair.geom1);
    e.set("geom2", pair.geom2);
    e.set("condim", pair.condim);
    e.set_list("friction", pair.friction);
    write_solver(e, pair);
    e.set_unless("margin", pair.margin, 0.0);
    e.set_unless("gap", pair.gap, 0.0);
  }
  for (const ContactExcludeSpec& exclude : spec_.contact_excludes) {
    const XmlWriter e = contact.child("exclude");
    e.set_name(exclude.name);
    e.set("body1", exclude.body1);
    e.set("body2", exclude.body2);
  }
}

void MjcfWriter::write_equalities(const XmlWriter& root) const {
  if (spec_.equalities.empty()) return;
  const XmlWriter section = root.child("equality");
  for (const EqualitySpec& q : spec_.equalities) {
    const bool places = q.type == EqualityType::connect || q.type == EqualityType::weld;
    const char* kind = q.type == EqualityType::connect  ? "connect"
                       : q.type == EqualityType::weld   ? "weld"
                       : q.type == EqualityType::tendon ? "tendon"
                                                        : "joint";
    const std::string part = places ? (q.sites ? "site" : "body") : kind;
    const XmlWriter e = section.child(kind);
    e.set_name(q.name);
    e.set((part + "1").c_str(), q.first.empty() ? "world" : q.first);  // only a body's name may be empty
    if (!q.second.empty()) e.set((part + "2").c_str(), q.second);
    e.set_unless("active", q.active, true);
    if (places && !q.sites && (q.type == EqualityType::connect || norm(q.anchor) > 0)) e.set("anchor", q.anchor);
    if (q.type == EqualityType::weld) {
      if (q.has_relative_pose) e.set("relpose", to_text(q.relative_position) + " " + to_text(q.relative_orientation));
      e.set_unless("torquescale", q.torque_scale, 1.0);
    }
    if (!places) e.set_list("polycoef", q.polynomial);
    write_solver(e, q);
  }
}

void MjcfWriter::write_tendons(const XmlWriter& root) {
  if (spec_.tendons.empty()) return;
  const XmlWriter section = root.child("tendon");
  for (const TendonSpec& t : spec_.tendons) {
    const XmlWriter e = section.child(t.spatial ? "spatial" : "fixed");
    e.set_name(t.name);
    e.set("limited", t.limited);
    if (t.limited || t.range != std::array<double, 2>{0, 0}) e.set_list("range", t.range);
    e.set("actuatorfrclimited", t.force_limited);
    if (t.force_limited) e.set_list("actuatorfrcrange", t.force_range);
    write_polynomial(e, "stiffness", t.stiffness, t.stiffness_polynomial);
    write_polynomial(e, "damping", t.damping, t.damping_polynomial);
    e.set_unless("frictionloss", t.friction_loss, 0.0);
    e.set_unless("armature", t.armature, 0.0);
    e.set_unless("margin", t.margin, 0.0);
    if (t.spring_length != std::array<double, 2>{-1, -1}) e.set_list("springlength", t.spring_length);
    for (const TendonSpec::Term& term : t.terms) {
      const XmlWriter joint = e.child("joint");
      joint.set("joint", term.joint);
      joint.set("coef", term.coefficient);
    }
    for (const TendonSpec::PathPoint& point : t.path) {
      const bool site = point.kind == TendonSpec::PathKind::site;
      if (point.kind == TendonSpec::PathKind::pulley) {
        e.child("pulley").set("divisor", point.divisor);
        continue;
      }
      const XmlWriter part = e.child(site ? "site" : "geom");
      part.set(site ? "site" : "geom", point.name);
      if (!point.side_site.empty()) part.set("sidesite", point.side_site);
    }
  }
}

void MjcfWriter::write_actuators(const XmlWriter& root) {
  if (spec_.actuators.empty()) return;
  static constexpr const char* kWays[] = {"joint", "jointinparent", "tendon", "site", "body", "cranksite"};
  const XmlWriter section = root.child("actuator");
  for (const ActuatorSpec& a : spec_.actuators) {
    if (a.transmission == TransmissionType::none || !a.computed()) {
      lost_actuators_.insert(a.name);
      lose("actuators that are not computed");
      continue;
    }
    const XmlWriter e = section.child(!a.motor ? "general" : a.motor->electric ? "dcmotor" : "pid");
    e.set_name(a.name);
    e.set(kWays[static_cast<int>(a.transmission)], a.target);
    if (!a.reference.empty()) e.set(a.transmission == TransmissionType::site ? "refsite" : "slidersite", a.reference);
    if (a.transmission == TransmissionType::slider_crank) e.set_unless("cranklength", a.crank_length, 0.0);
    e.set_list("gear", a.gear);
    e.set_unless("group", a.group, 0);
    e.set_list("user", a.user);
    if (a.motor) {
      write_motor(root, e, a);
      continue;
    }
    e.set("ctrllimited", a.control_limited);
    if (a.control_limited || a.control_range != std::array<double, 2>{0, 0}) e.set_list("ctrlrange", a.control_range);
    e.set("forcelimited", a.force_limited);
    if (a.force_limited || a.force_range != std::array<double, 2>{0, 0}) e.set_list("forcerange", a.force_range);
    if (!a.dynamics.empty()) {
      e.set("dyntype", a.dynamics);
      e.set_unless("actdim", a.user_states, 1);
      e.set_list("dynprm", a.dynamics_parameters);
      e.set("actlimited", a.activation_limited);
      if (a.activation_limited) e.set_list("actrange", a.activation_range);
      e.set_unless("actearly", a.activation_early, false);
    }
    if (a.length_range != std::array<double, 2>{0, 0}) e.set_list("lengthrange", a.length_range);
    e.set("gaintype", name(a.gain_law));
    e.set("biastype", name(a.bias_law));
    a.gain_law == ActuatorLaw::muscle ? e.set_list("gainprm", a.muscle_gain) : e.set_list("gainprm", a.gain);
    a.bias_law == ActuatorLaw::muscle ? e.set_list("biasprm", a.muscle_bias) : e.set_list("biasprm", a.bias);
  }
}

/// Writes a default class with that force range and returns its name. <dcmotor> itself can express only symmetric
/// ranges.
std::string MjcfWriter::force_class(const XmlWriter& root, const std::array<double, 2>& range) {
  if (!default_) default_ = root.child("default");
  const std::string name = fmt::format("forces{}", ++force_classes_);
  const XmlWriter e = default_.child("default");
  e.set("class", name);
  e.child("motor").set_list("forcerange", range);
  return name;
}

void MjcfWriter::write_motor(const XmlWriter& root, const XmlWriter& e, const ActuatorSpec& a) {
  using Numbers = std::vector<double>;
  const MotorSpec& m = *a.motor;
  const auto list = [&e](const char* attribute, const Numbers& numbers) {
    if (std::any_of(numbers.begin(), numbers.end(), [](double x) { return x != 0; })) e.set_list(attribute, numbers);
  };
  std::string input;
  for (const auto& [there, name] :
       {std::pair(m.position, "pos"), {m.velocity, "vel"}, {m.feedforward, "ff"}, {m.voltage, "voltage"}}) {
    if (there) input += (input.empty() ? "" : " ") + std::string(name);
  }
  e.set("input", input.empty() ? "none" : input);
  if (m.electric) {
    e.set_list("motorconst", Numbers{m.constant});
    e.set_list("resistance", Numbers{m.resistance});
    list("controller", {m.kp, m.ki, m.kd, m.slew_max, m.integral_max, m.voltage_max});
    const bool even = a.force_range[0] == -a.force_range[1];
    if (a.force_limited && !even) e.set("class", force_class(root, a.force_range));
    list("saturation", {a.force_limited && even ? a.force_range[1] : 0, 0, m.rate_max});
    list("inductance", {0, m.electric_time});
    list("thermal", {m.heat_resistance, m.heat_capacity, 0, m.resistance_slope, m.resistance_at, m.ambient});
    list("lugre", {m.bristle_stiffness, m.bristle_damping, m.sliding_friction, m.static_friction, m.slide_speed});
    list("cogging", {m.cogging.begin(), m.cogging.end()});
    if (a.control_limited) e.set_list("ctrlrange", a.control_range);
    return;
  }
  e.set_list("kp", Numbers{m.kp});
  e.set_list("kv", Numbers{m.kd});
  list("ki", {m.ki}), list("imax", {m.integral_max}), list("slewmax", {m.slew_max});
  std::vector<const char*> ranges;
  if (m.position) ranges.push_back("posrange");
  if (m.velocity) ranges.push_back("velrange");
  if (m.feedforward) ranges.push_back("ffrange");
  for (std::size_t k = 0; k < ranges.size(); ++k) {
    const auto& range = k == 0 ? a.control_range : a.more_control_ranges[k - 1];
    if (k == 0 ? a.control_limited : range[0] < range[1]) e.set_list(ranges[k], range);
  }
  if (a.force_limited) e.set_list("forcerange", a.force_range);
}

void MjcfWriter::write_sensors(const XmlWriter& root) {
  const XmlWriter section = root.child("sensor");
  for (const SensorSpec& s : spec_.sensors) {
    const auto lost = [&](const auto& a) {
      const bool geom = a.first.starts_with("geom") || (a.first == "objname" && attribute(s, "objtype") == "geom") ||
                        (a.first == "refname" && attribute(s, "reftype") == "geom");
      return a.first.find('.') != std::string::npos || (geom && in(lost_geoms_, a.second)) ||
             (a.first == "actuator" && in(lost_actuators_, a.second));
    };
    if (std::any_of(s.attributes.begin(), s.attributes.end(), lost)) {
      lose("sensors that refer to elements that could not be written");
      continue;
    }
    const XmlWriter e = section.child(s.kind.c_str());
    e.set_name(s.name);
    for (const auto& [name, value] : s.attributes) e.set(name.c_str(), value);
  }
}

void MjcfWriter::write_keyframes(const XmlWriter& root) const {
  if (spec_.keyframes.empty()) return;
  const XmlWriter section = root.child("keyframe");
  for (const KeyframeSpec& k : spec_.keyframes) {
    const XmlWriter e = section.child("key");
    e.set_name(k.name);
    e.set_unless("time", k.time, 0.0);
    e.set_list("qpos", k.qpos);
    e.set_list("qvel", k.qvel);
    if (lost_actuators_.empty()) {
      e.set_list("act", k.act);
      e.set_list("ctrl", k.ctrl);
    }
    e.set_list("mpos", k.mocap_position);
    e.set_list("mquat", k.mocap_orientation);
  }
}

/// Writes <visual>, <statistic> and <custom> as they were read. The model may have several <visual> and <statistic>,
/// but MJCF allows one of each. They are merged; the later value of an attribute wins.
void MjcfWriter::write_kept_settings(const XmlWriter& root) const {
  std::map<std::string, std::map<std::string, std::string>> merged;
  XmlWriter custom;
  for (const CosmeticSpec& c : spec_.cosmetics) {
    if (c.kind == "statistic" || c.kind.rfind("visual.", 0) == 0) {
      for (const auto& [name, value] : c.attributes) merged[c.kind][name] = value;
    } else if (c.kind == "custom.numeric" || c.kind == "custom.text") {
      if (!custom) custom = root.child("custom");
      write_cosmetic(custom, c, c.kind.c_str() + 7);
    }
  }
  XmlWriter visual;
  for (const auto& [kind, attributes] : merged) {
    if (kind != "statistic" && !visual) visual = root.child("visual");
    const XmlWriter e = kind == "statistic" ? root.child("statistic") : visual.child(kind.c_str() + 7);
    for (const auto& [name, value] : attributes) e.set(name.c_str(), value);
  }
}

std::string MjcfWriter::write(std::vector<std::string>* losses) {
  check_order();
  pugi::xml_document document;
  const XmlWriter root = XmlWriter(document).child("mujoco");
  root.set("model", spec_.name);  // even if empty, because readers would else choose a name
  const XmlWriter compiler = root.child("compiler");
  compiler.set("angle", "radian");
  compiler.set("inertiafromgeom", false);
  find_losses();
  write_option(root);
  write_kept_settings(root);
  write_assets(root);
  write_bodies(root);
  write_contact(root);
  write_tendons(root);
  write_equalities(root);
  write_actuators(root);
  write_sensors(root);
  write_keyframes(root);
  write_losses(document, lost_, losses);
  return to_text(document);
}

}  // namespace

std::string write_mjcf(const ModelSpec& spec, const std::filesystem::path& folder, std::vector<std::string>* losses) {
  return MjcfWriter(without_chains(spec), folder).write(losses);
}

std::uint64_t model_hash(ModelSpec spec) {
  spec.name.clear(), spec.cosmetics.clear(), spec.keyframes.clear(), spec.sensors.clear();
  spec.option.kept.clear(), spec.option.kept_flags.clear();
  std::uint64_t hash = kHashStart;
  for (MeshSpec& mesh : spec.meshes) {  // hash vertices as bits, because they are many numbers
    hash = fnv1a<Vec3d>(mesh.vertices, hash);
    mesh.vertices.resize(std::min<std::size_t>(1, mesh.vertices.size())), mesh.triangles.clear();
    if (const std::filesystem::path file = mesh.file; file.is_absolute()) mesh.file = file.filename().string();
  }
  return fnv1a<char>(write_mjcf(spec), hash);
}

}  // namespace tarsus
