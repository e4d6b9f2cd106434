// <link>: mass properties and shapes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tarsus/io/mesh_file.hpp"
#include "tarsus/io/package_path.hpp"
#include "tarsus/math/rotation.hpp"
#include "urdf_parts.hpp"

namespace tarsus::urdf {

namespace {

constexpr double kMostMass = 1e12;       // [kg] beyond, the number is a mistake
constexpr double kMostInertia = 1e15;    // [kg m²]
constexpr double kLeastInertia = 1e-15;  // [kg m²]
constexpr double kSlack = 1e-6;          // of the largest principal moment: rounding in files of six digits

/// Reports a tensor that no body has. Mends it if asked to: MuJoCo's rule, all three moments become their mean.
void check_tensor(const XmlElement& element, InertialSpec& inertial, bool fix) {
  const Eigen3 e = eigen(inertial.inertia);
  const Vec3d& d = e.values;
  const std::string moments = fmt::format("principal moments {:.6g}, {:.6g}, {:.6g}", d.z, d.y, d.x);
  const double most = std::max(std::abs(d.x), std::abs(d.z)), mean = (d.x + d.y + d.z) / 3;
  if (most < kLeastInertia) {  // exporters leave rounding where zero was meant, even with negative moments
    if (inertial.mass > 0) {
      element.warn(fmt::format("the inertia is {}: the link is a point mass",
                               most == 0 ? "zero" : "under 1e-15 kg m², taken as zero"));
    }
    inertial.inertia = {0, 0, 0, 0, 0, 0};
    return;
  }
  if (most > kMostInertia)
    return element.error(fmt::format("the inertia is beyond {:g} kg m²: {}", kMostInertia, moments));
  const bool negative = d.z < -kSlack * most, flat = d.z <= kSlack * kSlack * most,
             unbalanced = d.y + d.z < d.x * (1 - kSlack);
  if (!negative && !flat && !unbalanced) return;
  if (fix && mean > 0) {
    inertial.inertia = diagonal3(mean, mean, mean);
    return element.warn(
        fmt::format("no body has this inertia ({}): balanced, all three moments are now {:.6g}", moments, mean));
  }
  if (negative) return element.error(fmt::format("the inertia is not positive definite: {}", moments));
  if (unbalanced)
    return element.warn(fmt::format("the inertia breaks the triangle inequality: {}; kept as it is", moments));
  element.warn(fmt::format("the inertia is singular: {}; kept as it is", moments));
}

InertialSpec read_inertial(const XmlElement& element, bool fix) {
  InertialSpec out;
  out.where = element.where();
  const Pose pose = read_origin(element);
  out.com = pose.position;
  if (const XmlElement mass = element.child("mass")) {
    if (require(mass, "value", out.mass)) {
      if (out.mass < 0) mass.error(fmt::format("the mass is negative: {}", out.mass), "value");
      if (out.mass > kMostMass) mass.error(fmt::format("the mass is beyond {:g} kg: {}", kMostMass, out.mass), "value");
    }
    report_rest(mass);
  } else {
    element.error("<inertial> without <mass>");
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
    if (good) check_tensor(tensor, out, fix);
    out.inertia = rotate(rotation(pose.orientation), i);
  } else {
    element.warn("<inertial> without <inertia>: taken as zero, the link is a point mass");
  }
  report_rest(element);
  return out;
}

bool positive(const XmlElement& element, const char* attribute, double& out) {
  if (!require(element, attribute, out)) return false;
  if (out > 0) return true;
  element.error(fmt::format("must be greater than 0, is {}", out), attribute);
  return false;
}

void read_shape(const XmlElement& geometry, GeomSpec& geom, MeshCache& meshes) {
  const std::vector<XmlElement> shapes = geometry.children();
  if (shapes.empty()) return geometry.error("<geometry> without a shape");
  if (shapes.size() > 1) shapes[1].error("<geometry> has more than one shape");
  const XmlElement& shape = shapes[0];
  std::string_view kind = shape.name();
  if (kind.substr(0, 6) == "drake:") kind.remove_prefix(6);
  if (kind == "box") {
    geom.type = GeomType::box;
    Vec3d size{1, 1, 1};
    if (!shape.has("size")) return shape.error("attribute 'size' is missing");
    if (shape.read("size", size) && !(size.x > 0 && size.y > 0 && size.z > 0)) {
      shape.error(fmt::format("must be greater than 0, is {} {} {}", size.x, size.y, size.z), "size");
    }
    geom.size = size * 0.5;
  } else if (kind == "sphere") {
    geom.type = GeomType::sphere;
    positive(shape, "radius", geom.size.x);
  } else if (kind == "cylinder" || kind == "capsule") {
    geom.type = kind == "capsule" ? GeomType::capsule : GeomType::cylinder;
    double length = 0;
    positive(shape, "radius", geom.size.x);
    positive(shape, "length", length);
    geom.size.y = length / 2;
  } else if (kind == "ellipsoid") {
    geom.type = GeomType::ellipsoid;
    positive(shape, "a", geom.size.x);
    positive(shape, "b", geom.size.y);
    positive(shape, "c", geom.size.z);
  } else if (kind == "mesh") {
    geom.type = GeomType::mesh;
    std::string file;
    Vec3d scale{1, 1, 1};
    shape.read("scale", scale);
    if (scale.x == 0 || scale.y == 0 || scale.z == 0) shape.error("a factor is zero", "scale");
    if (require(shape, "filename", file)) geom.mesh = meshes.name_of(shape, file, scale);
  } else {
    shape.error(
        fmt::format("unknown shape {}; known are box, sphere, cylinder, capsule, ellipsoid, mesh", quote(kind)));
  }
  report_rest(shape);
}

std::optional<std::array<float, 4>> read_color(const XmlElement& material) {
  const XmlElement color = material.child("color");
  if (!color) return {};
  std::array<double, 4> rgba{0, 0, 0, 1};
  if (!color.has("rgba")) color.error("attribute 'rgba' is missing");
  if (!color.read("rgba", rgba, 3)) return {};
  std::array<float, 4> out{};
  for (int i = 0; i < 4; ++i) {
    if (!(rgba[i] >= 0 && rgba[i] <= 1)) color.warn("a colour's component is outside 0 to 1", "rgba");
    out[i] = static_cast<float>(std::clamp(rgba[i], 0.0, 1.0));
  }
  return out;
}

void read_shapes(const XmlElement& link, const char* kind, const Materials& materials, MeshCache& meshes, Link& out) {
  for (const XmlElement& element : link.children(kind)) {
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
      read_shape(geometry, geom, meshes);
      out.body.geoms.push_back(std::move(geom));
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

std::string MeshCache::name_of(const XmlElement& element, const std::string& uri, const Vec3d& scale) {
  const auto [it, fresh] = names_.emplace(fmt::format("{}\n{} {} {}", uri, scale.x, scale.y, scale.z), "");
  if (!fresh) return it->second;
  it->second = unused_name(uri);
  MeshSpec mesh;
  mesh.name = it->second;
  mesh.file = uri;
  mesh.scale = scale;
  mesh.where = element.where("filename");
  const std::filesystem::path directory = spec_.directory;
  const ResolvedFile found = resolve_uri(uri, directory, options_.package_paths);
  if (!found.error.empty()) {
    // No inertia of a URDF needs a mesh, so leniency is always possible.
    if (options_.lenient)
      element.warn(fmt::format("mesh left without a surface: {}", found.error), "filename");
    else
      element.error(fmt::format("mesh {}", found.error), "filename");
  } else {
    const auto relative = found.file.lexically_normal().lexically_relative(directory.lexically_normal());
    mesh.file = relative.empty() ? found.file.string() : relative.string();
    std::string extension = found.file.extension().string();
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
    if (extension == ".dae") {
      element.warn("Collada is not supported: mesh left without a surface", "filename");
    } else {
      try {
        MeshData data = read_mesh(found.file, mesh.where);
        scale_mesh(data, scale);
        mesh.vertices = std::move(data.vertices);
        mesh.triangles = std::move(data.triangles);
        spec_.diagnostics.insert(spec_.diagnostics.end(), data.diagnostics.begin(), data.diagnostics.end());
      } catch (const InputError& e) {
        element.error(fmt::format("mesh {}: {}", quote(uri), e.what()), "filename");
      }
    }
  }
  spec_.meshes.push_back(std::move(mesh));
  return it->second;
}

Link read_link(const XmlElement& element, const Materials& materials, MeshCache& meshes, const ReadOptions& options) {
  Link link;
  link.body.where = element.where();
  require(element, "name", link.body.name);
  const std::vector<XmlElement> inertials = element.children("inertial");
  if (!inertials.empty()) {
    link.has_inertial = true;
    link.body.inertial = read_inertial(inertials[0], options.fix_balance);
    if (inertials.size() > 1) inertials[1].error("a second <inertial>");
  }
  read_shapes(element, "visual", materials, meshes, link);
  read_shapes(element, "collision", materials, meshes, link);
  report_rest(element);
  return link;
}

}  // namespace tarsus::urdf
