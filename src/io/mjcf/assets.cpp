// <asset>: meshes are read, the rest is kept for viewers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "io/mjcf/builder.hpp"
#include "tarsus/io/mesh_file.hpp"

namespace tarsus::mjcf {

void Builder::keep(const XmlElement& e, const Scope& scope, Kind kind, int body, Attributes attributes) {
  CosmeticSpec cosmetic{std::string(e.name()), scope.naming.of(e.text("name")), body, std::move(attributes), e.where()};
  std::erase_if(cosmetic.attributes, [](const auto& a) { return a.first == "name" || a.first == "class"; });
  declare(kind, cosmetic.name, e);
  spec_.cosmetics.push_back(std::move(cosmetic));
}

void Builder::read_assets(const Scope& scope) {
  Scope plain = scope;
  plain.naming.suffix.clear();  // assets are shared by replicas
  const Source& source = *scope.source;
  for (const XmlElement& e : source.section("asset")) {
    count_element(e);
    if (e.is("mesh"))
      read_mesh_asset(e, plain);
    else if (e.is("hfield"))
      read_height_field(e, plain);
    else if (e.is("material") || e.is("texture")) {
      const Defaults& defaults = source.defaults(e, source.main_defaults());
      const auto look = defaults.looks.find(e.name());
      Attributes attributes = look == defaults.looks.end() ? Attributes{} : look->second;
      overlay(e.all_attributes(), attributes);
      for (const XmlElement& layer : e.children()) {
        for (auto& [name, value] : layer.all_attributes()) attributes.emplace_back("layer." + name, value);
      }
      keep(e, plain, e.is("material") ? Kind::material : Kind::texture, 0, std::move(attributes));
    } else if (e.is("skin")) {
      e.mark_all_children();
      e.warn("<skin> is not supported and has no effect");
    } else if (!e.is("model")) {
      e.error(fmt::format("<{}> is not an element of <asset>", e.name()));
    }
  }
}

void Builder::read_mesh_asset(const XmlElement& e, const Scope& scope) {
  const Defaults& defaults = scope.source->defaults(e, scope.source->main_defaults());
  MeshSpec mesh;
  mesh.where = e.where();
  e.read("file", mesh.file);
  std::string name = e.text("name");
  if (name.empty()) name = std::filesystem::path(mesh.file).stem().string();
  mesh.name = scope.naming.of(name);
  mesh.scale = defaults.mesh_scale;
  e.read("scale", mesh.scale);
  std::string kind = defaults.mesh_inertia, content_type;
  read_word(e, "inertia", {"convex", "exact", "legacy", "shell"}, kind);
  e.read("content_type", content_type);
  Pose reference;
  e.read("refpos", reference.position);
  std::array<double, 4> q{1, 0, 0, 0};
  if (e.read("refquat", q)) {
    reference.orientation = {q[0], q[1], q[2], q[3]};
    if (!(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] > 1e-20))
      return e.error("attribute 'refquat' has no length", "refquat");
    reference.orientation = normalized(reference.orientation);
  }
  for (int i = 0; i < 3; ++i) {
    if (mesh.scale[i] == 0 || std::abs(mesh.scale[i]) > 1e12)
      return e.error("attribute 'scale' has a zero or is too large", "scale");
  }
  if (e.has("builtin")) return e.error("built-in meshes are not supported", "builtin");
  e.mark_all_children();
  if (e.child("plugin")) return e.error("meshes made by a plugin are not supported");
  const bool in_text = mesh.file.empty();
  if (in_text)
    read_inline_mesh(e, mesh);
  else if (e.has("vertex") || e.has("face"))
    e.error("'file' excludes 'vertex' and 'face'", "file");
  else
    load_mesh(e, scope, content_type, mesh);
  e.ignore({"class", "maxhullvert", "smoothnormal", "vertex", "face"});
  e.unsupported({"material", "normal", "texcoord", "params"});
  e.report_unread(Severity::error);
  const Mat3d turn = transpose(rotation(reference.orientation));
  for (Vec3d& v : mesh.vertices) {
    v = turn * (v - reference.position);
    v = {v.x * mesh.scale.x, v.y * mesh.scale.y, v.z * mesh.scale.z};
  }
  if (mesh.scale.x * mesh.scale.y * mesh.scale.z < 0) {
    for (auto& triangle : mesh.triangles) std::swap(triangle[1], triangle[2]);
  }
  if (!declare(Kind::mesh, mesh.name, e)) return;
  names_[static_cast<int>(Kind::mesh)][mesh.name] = static_cast<int>(spec_.meshes.size());
  spec_.meshes.push_back(std::move(mesh));
  mesh_kind_.push_back(kind == "convex"  ? MeshInertia::convex
                       : kind == "exact" ? MeshInertia::exact
                       : kind == "shell" ? MeshInertia::shell
                                         : MeshInertia::legacy);
  mesh_mass_.emplace_back();
}

void Builder::read_inline_mesh(const XmlElement& e, MeshSpec& mesh) {
  std::vector<double> values;
  std::vector<int> indices;
  if (!e.has("vertex")) return e.error("a mesh needs 'file' or 'vertex'");
  if (!e.read("vertex", values)) return;
  if (values.size() % 3 != 0 || values.size() < 12) {
    return e.error(
        fmt::format("attribute 'vertex' has {} numbers, expected a multiple of 3, at least 12", values.size()),
        "vertex");
  }
  for (std::size_t i = 0; i < values.size(); i += 3) mesh.vertices.push_back({values[i], values[i + 1], values[i + 2]});
  if (!e.read("face", indices)) {
    if (e.has("face")) return;
    try {
      mesh.triangles = convex_hull(mesh.vertices);
    } catch (const ValueError& error) {
      e.error(fmt::format("has no 'face', and its convex hull cannot be built: {}", error.what()), "vertex");
    }
    return;
  }
  if (indices.size() % 3 != 0) {
    return e.error(fmt::format("attribute 'face' has {} numbers, expected a multiple of 3", indices.size()), "face");
  }
  for (std::size_t i = 0; i < indices.size(); i += 3)
    mesh.triangles.push_back({indices[i], indices[i + 1], indices[i + 2]});
  for (const int index : indices) {
    if (index >= 0 && index < static_cast<int>(mesh.vertices.size())) continue;
    e.error(
        fmt::format("attribute 'face': index {} is out of range, there are {} vertices", index, mesh.vertices.size()),
        "face");
    mesh.triangles.clear();
    return;
  }
}

bool Builder::load_mesh(const XmlElement& e, const Scope& scope, const std::string& content_type, MeshSpec& mesh) {
  const Source& source = *scope.source;
  const std::filesystem::path path = source.asset_path(mesh.file, source.compiler().mesh_directory, mesh.where);
  if (!content_type.empty() && content_type != "model/stl" && content_type != "model/obj" &&
      content_type != "model/vnd.mujoco.msh") {
    e.error(fmt::format("content type {} is not supported", quote(content_type)), "content_type");
    return false;
  }
  std::error_code ignored;
  const bool missing = options_.disable_includes || !std::filesystem::exists(path, ignored);
  if (missing && options_.lenient) {
    e.warn(fmt::format("mesh file {} is missing", quote(mesh.file)), "file");
    return false;
  }
  if (missing) {
    e.error(fmt::format("mesh file {} is missing (looked for at {})", quote(mesh.file), path.string()), "file");
    return false;
  }
  try {
    MeshData data = read_mesh(path, e.where("file"));
    mesh.vertices = std::move(data.vertices);
    mesh.triangles = std::move(data.triangles);
    for (const Diagnostic& d : data.diagnostics) sink_.add(d.severity, d.where, d.message);
    return true;
  } catch (const InputError& error) {
    for (const Diagnostic& d : error.diagnostics()) sink_.add(d.severity, d.where, d.message);
    return false;
  }
}

void Builder::read_height_field(const XmlElement& e, const Scope& scope) {
  std::array<double, 4> size{};
  int rows = 0, columns = 0;
  std::string file;
  std::vector<double> elevation;
  if (require(e, "size") && e.read("size", size)) {
    for (const double s : size) {
      if (!(s > 0)) e.error("attribute 'size': all four numbers must be positive", "size");
    }
  }
  e.read("nrow", rows);
  e.read("ncol", columns);
  const bool has_file = e.read("file", file);
  e.read("elevation", elevation);
  e.ignore({"content_type"});
  if (has_file) {
    const auto path = scope.source->asset_path(file, scope.source->compiler().mesh_directory, e.where());
    std::error_code ignored;
    if (options_.disable_includes || !std::filesystem::exists(path, ignored)) {
      const std::string message = fmt::format("height field file {} is missing", quote(file));
      options_.lenient ? e.warn(message, "file") : e.error(message, "file");
    }
  } else if (rows < 2 || columns < 2 || static_cast<long long>(rows) * columns > 100'000'000) {
    e.error(fmt::format("the height field has {} x {} points, expected at least 2 x 2 and at most 1e8 in all", rows,
                        columns),
            "nrow");
  } else if (!elevation.empty() &&
             elevation.size() != static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)) {
    e.error(fmt::format("attribute 'elevation' has {} numbers, expected {} x {}", elevation.size(), rows, columns),
            "elevation");
  }
  Attributes attributes = e.all_attributes();
  e.report_unread(Severity::error);
  std::string name = e.text("name");
  if (name.empty()) name = std::filesystem::path(file).stem().string();
  CosmeticSpec kept{"hfield", scope.naming.of(name), 0, std::move(attributes), e.where()};
  declare(Kind::height_field, kept.name, e);
  spec_.cosmetics.push_back(std::move(kept));
}

const ShapeInertia* Builder::mesh_mass(int index, const XmlElement* used_by) {
  auto& known = mesh_mass_[static_cast<std::size_t>(index)];
  if (known) return known->volume > 0 ? &*known : nullptr;
  const MeshSpec& mesh = spec_.meshes[static_cast<std::size_t>(index)];
  known.emplace();
  try {
    known = mesh_inertia(mesh.vertices, mesh.triangles, mesh_kind_[static_cast<std::size_t>(index)]);
  } catch (const ValueError& error) {
    const std::string message = fmt::format("mesh {}: {}", quote(mesh.name), error.what());
    used_by ? used_by->error(message, "mesh") : sink_.add(Severity::error, mesh.where, message);
    return nullptr;
  }
  return &*known;
}

}  // namespace tarsus::mjcf
