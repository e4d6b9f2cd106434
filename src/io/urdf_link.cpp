// <link>: mass properties and shapes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tarsus/io/mesh_file.hpp"
#include "tarsus/io/package_path.hpp"
#include "tarsus/io/text_number.hpp"
#include "tarsus/math/rotation.hpp"
#include "urdf_parts.hpp"

namespace tarsus::urdf {

namespace {

constexpr double kMostMass = 1e12;       // [kg] a larger number is a mistake
constexpr double kMostInertia = 1e18;    // [kg m²] kMostMass at a distance of 1 km
constexpr double kLeastInertia = 1e-15;  // [kg m²]
constexpr double kSlack = 1e-6;          // relative to the largest principal moment: rounding in files with six digits

/// Reports an inertia tensor that no body can have. With `fix` all three moments become their mean, as in MuJoCo.
/// @param negative_found set to the message if the tensor is not positive definite. check_negative() reports it,
///   because links fixed to this one may make the total positive definite
void check_tensor(const XmlElement& element, InertialSpec& inertial, bool fix, std::string& negative_found) {
  const Eigen3 e = eigen(inertial.inertia);
  const Vec3d& d = e.values;
  const std::string moments = fmt::format("principal moments {:.6g}, {:.6g}, {:.6g}", d.z, d.y, d.x);
  const double most = std::max(std::abs(d.x), std::abs(d.z)), mean = (d.x + d.y + d.z) / 3;
  if (most < kLeastInertia) {  // exporters write rounding errors, even negative moments, for zero
    if (inertial.mass > 0) {
      element.warn(fmt::format("the inertia is {}: the link is a point mass",
                               most == 0 ? "zero" : "below 1e-15 kg m² and read as zero"));
    }
    inertial.inertia = {0, 0, 0, 0, 0, 0};
    return;
  }
  if (most > kMostInertia)
    return element.error(fmt::format("the inertia is larger than {:g} kg m²: {}", kMostInertia, moments));
  const bool negative = d.z < -kSlack * most, flat = d.z <= kSlack * kSlack * most,
             unbalanced = d.y + d.z < d.x * (1 - kSlack);
  if (!negative && !flat && !unbalanced) return;
  if (fix && mean > 0) {
    inertial.inertia = diagonal3(mean, mean, mean);
    return element.warn(
        fmt::format("no body can have this inertia ({}): balanced, all three moments are now {:.6g}", moments, mean));
  }
  if (negative) {
    negative_found = fmt::format("the inertia is not positive definite: {}", moments);
    return;
  }
  if (unbalanced)
    return element.warn(fmt::format("the inertia violates the triangle inequality: {}; it is kept", moments));
  element.warn(fmt::format("the inertia is singular: {}; it is kept", moments));
}

/// Reads <inertial>. Without <mass> it warns and returns nothing.
std::optional<InertialSpec> read_inertial(const XmlElement& element, bool fix, std::string& negative) {
  InertialSpec out;
  out.where = element.where();
  const Pose pose = read_origin(element);
  out.com = pose.position;
  if (const XmlElement mass = element.child("mass")) {
    if (require(mass, "value", out.mass)) {
      if (out.mass < 0) mass.error(fmt::format("the mass is negative: {}", out.mass), "value");
      if (out.mass > kMostMass)
        mass.error(fmt::format("the mass is larger than {:g} kg: {}", kMostMass, out.mass), "value");
    }
    report_rest(mass);
  } else {
    element.warn("<inertial> without <mass> is left out: the link has no mass");
    return {};
  }
  if (const XmlElement tensor = element.child("inertia")) {
    Sym3d& i = out.inertia;
    bool good = true;
    for (const auto& [name, value] : {std::pair{"ixx", &i.xx}, {"iyy", &i.yy}, {"izz", &i.zz}})
      good &= require(tensor, name, *value);
    for (const auto& [name, value] : {std::pair{"ixy", &i.xy}, {"ixz", &i.xz}, {"iyz", &i.yz}}) {
      if (tensor.has(name)) good &= tensor.read(name, *value);
    }
    report_rest(tensor);
    if (good) check_tensor(tensor, out, fix, negative);
    out.inertia = rotate(rotation(pose.orientation), i);
  } else {
    element.warn("<inertial> without <inertia>: the inertia is read as zero, the link is a point mass");
  }
  report_rest(element);
  return out;
}

/// Whether a shape's length is positive. Files mark "no shape" by a size of zero: it gets a warning and the shape is
/// left out.
bool extends(const XmlElement& shape, const char* attribute, double length) {
  if (length > 0) return true;
  if (length == 0) {
    shape.warn("a size of zero: the shape is left out", attribute);
  } else {
    shape.error(fmt::format("attribute '{}' is {}, expected a positive number", attribute, length), attribute);
  }
  return false;
}

bool positive(const XmlElement& shape, const char* attribute, double& out) {
  return require(shape, attribute, out) && extends(shape, attribute, out);
}

/// Reads a shape; false if there is none. The reason is then already reported.
bool read_shape(const XmlElement& geometry, GeomSpec& geom, MeshCache& meshes) {
  const std::vector<XmlElement> shapes = geometry.children();
  if (shapes.empty()) return geometry.error("<geometry> without a shape"), false;
  if (shapes.size() > 1) shapes[1].error("<geometry> has more than one shape");
  bool good = true;
  const XmlElement& shape = shapes[0];
  std::string_view kind = shape.name();
  if (kind.substr(0, 6) == "drake:") kind.remove_prefix(6);
  if (kind == "box") {
    geom.type = GeomType::box;
    Vec3d size{1, 1, 1};
    if (!shape.has("size")) return shape.error("attribute 'size' is missing"), false;
    good = shape.read("size", size) && extends(shape, "size", std::min({size.x, size.y, size.z}));
    geom.size = size * 0.5;
  } else if (kind == "sphere") {
    geom.type = GeomType::sphere;
    good = positive(shape, "radius", geom.size.x);
  } else if (kind == "cylinder" || kind == "capsule") {
    geom.type = kind == "capsule" ? GeomType::capsule : GeomType::cylinder;
    double length = 0;
    good = positive(shape, "radius", geom.size.x);
    good = positive(shape, "length", length) && good;
    geom.size.y = length / 2;
  } else if (kind == "ellipsoid") {
    geom.type = GeomType::ellipsoid;
    good = positive(shape, "a", geom.size.x);
    good = positive(shape, "b", geom.size.y) && good;
    good = positive(shape, "c", geom.size.z) && good;
  } else if (kind == "mesh") {
    geom.type = GeomType::mesh;
    std::string file;
    std::array<double, 4> given{1, 1, 1, 1};
    if (!shape.read("scale", given, 3)) given = {1, 1, 1, 1};
    if (split_blanks(shape.text("scale")).size() > 3)
      shape.warn("'scale' has more than three numbers: the first three are used", "scale");
    const Vec3d scale{given[0], given[1], given[2]};
    good = extends(shape, "scale", std::min({std::abs(scale.x), std::abs(scale.y), std::abs(scale.z)}));
    good = require(shape, "filename", file) && good;
    if (good) geom.mesh = meshes.name_of(shape, file, scale, geom.visual_only);
  } else if (kind == "plane") {  // Bullet's extension
    geom.type = GeomType::plane;
    geom.size = {0, 0, 1};  // infinite; 1 is the spacing of the grid, which MJCF needs
    Vec3d normal{0, 0, 1};
    shape.read("normal", normal);
    good = norm(normal) > 0;
    if (good)
      geom.orientation = geom.orientation * between({0, 0, 1}, normal * (1 / norm(normal)));
    else
      shape.error("the normal has length zero", "normal");
  } else {
    good = false;
    shape.warn(
        fmt::format("unknown shape {}: it takes no part in contact; known are box, sphere, cylinder, capsule, "
                    "ellipsoid, plane, mesh",
                    quote(kind)));
  }
  report_rest(shape);
  return good;
}

std::optional<std::array<float, 4>> read_color(const XmlElement& material) {
  const XmlElement color = material.child("color");
  if (!color) return {};
  std::array<double, 4> rgba{0, 0, 0, 1};
  if (!color.has("rgba")) color.error("attribute 'rgba' is missing");
  if (!color.read("rgba", rgba, 3)) return {};
  std::array<float, 4> out{};
  for (int i = 0; i < 4; ++i) {
    if (!(rgba[i] >= 0 && rgba[i] <= 1)) color.warn("a component of the colour is outside 0 to 1", "rgba");
    out[i] = static_cast<float>(std::clamp(rgba[i], 0.0, 1.0));
  }
  return out;
}

void read_shapes(const XmlElement& link, const char* kind, const Materials& materials, MeshCache& meshes, Link& out) {
  for (const XmlElement& element : link.children(kind)) {
    std::optional<DiagnosticSink::Cap> looks;  // no fault in <visual> prevents loading
    if (element.is("visual")) looks.emplace(link.sink(), Severity::note);
    GeomSpec geom;
    geom.where = element.where();
    geom.name = element.text("name");
    geom.visual_only = element.is("visual");
    if (geom.visual_only) geom.contype = geom.conaffinity = 0, geom.group = 1;
    const Pose pose = read_origin(element);
    geom.position = pose.position;
    geom.orientation = pose.orientation;
    if (const XmlElement material = element.child("material")) {
      if (const auto rgba = read_color(material)) {
        geom.rgba = *rgba;
      } else if (const auto known = materials.find(material.text("name"));
                 known != materials.end() && known->second.rgba) {
        geom.rgba = *known->second.rgba;
      }
      geom.material = material.text("name");
    }
    if (const XmlElement geometry = element.child("geometry")) {
      if (read_shape(geometry, geom, meshes)) out.body.geoms.push_back(std::move(geom));
    } else {
      element.error(fmt::format("<{}> without <geometry>", kind));
    }
    report_rest(element);
  }
}

}  // namespace

void read_material(const XmlElement& element, Materials& materials) {
  std::string name;
  if (!require(element, "name", name)) return;
  const auto [it, fresh] = materials.emplace(name, Material{read_color(element)});
  if (!fresh && it->second.rgba != read_color(element))
    element.warn(fmt::format("material {} was defined before; the first is used", quote(name)));
}

std::string MeshCache::unused_name(const std::string& uri) {
  const std::string stem = std::filesystem::path(uri).stem().string();
  std::string name = stem;
  for (int i = 2; !used_.insert(name).second; ++i) name = fmt::format("{}_{}", stem, i);
  return name;
}

std::string MeshCache::name_of(const XmlElement& element, const std::string& uri, const Vec3d& scale, bool looks) {
  const auto [it, fresh] = known_.emplace(fmt::format("{}\n{} {} {}", uri, scale.x, scale.y, scale.z), Known{});
  Known& known = it->second;
  if (fresh) {
    known.name = unused_name(uri);
    spec_.meshes.push_back(read(element, uri, scale, known));
  }
  if (!known.missing.empty() && !looks && !known.told) {
    // No inertia of a URDF needs a mesh, so a missing mesh affects only contact.
    element.warn(fmt::format("a mesh without a surface takes no part in contact: {}", known.missing), "filename");
    known.told = true;
  } else if (!known.missing.empty() && fresh) {
    element.note(fmt::format("mesh without a surface: {}", known.missing), "filename");
  }
  return known.name;
}

MeshSpec MeshCache::read(const XmlElement& element, const std::string& uri, const Vec3d& scale, Known& known) {
  MeshSpec mesh;
  mesh.name = known.name;
  mesh.file = uri;
  mesh.scale = scale;
  mesh.where = element.where("filename");
  const std::filesystem::path directory = spec_.directory;
  const ResolvedFile found = resolve_uri(uri, directory, options_.package_paths);
  known.missing = found.error;
  if (!found.error.empty()) return mesh;
  mesh.file = absolute_path(found.file);
  if (!is_mesh_file(found.file)) {
    known.missing = fmt::format("mesh format {} is not supported; supported are STL, OBJ and MSH",
                                quote(found.file.extension().string()));
    return mesh;
  }
  try {
    MeshData data = read_mesh(found.file, mesh.where);
    scale_mesh(data, scale);
    mesh.vertices = std::move(data.vertices);
    mesh.triangles = std::move(data.triangles);
    for (const Diagnostic& d : data.diagnostics) element.sink().add(d.severity, d.where, d.message);
  } catch (const InputError& e) {
    known.missing = e.what();
  }
  return mesh;
}

Link read_link(const XmlElement& element, const Materials& materials, MeshCache& meshes, const ReadOptions& options) {
  Link link;
  link.body.where = element.where();
  require(element, "name", link.body.name);
  const std::vector<XmlElement> inertials = element.children("inertial");
  if (!inertials.empty()) {
    link.body.inertial = read_inertial(inertials[0], options.fix_balance, link.negative);
    link.has_inertial = link.body.inertial.has_value();
    if (inertials.size() > 1) inertials[1].warn("a second <inertial> has no effect: the first one counts");
  }
  read_shapes(element, "visual", materials, meshes, link);
  read_shapes(element, "collision", materials, meshes, link);
  report_rest(element);
  return link;
}

}  // namespace tarsus::urdf
