// <asset>: reads meshes and height fields and keeps the rest for viewers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "io/mjcf/builder.hpp"
#include "io/png_gray.hpp"
#include "tarsus/io/mesh_file.hpp"
#include "tarsus/io/package_path.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus::mjcf {

namespace {

/// The path of a texture's file, or the path as written if there is no such file.
std::string texture_file(const XmlElement& e, const Source& source, const std::string& file) {
  const auto path = source.asset_path(file, source.compiler().texture_directory, e.where());
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) return absolute_path(path);
  if (!file.empty()) e.note(fmt::format("texture file {} is missing", quote(file)));
  return file;
}

}  // namespace

void Builder::keep(const XmlElement& e, const Scope& scope, Kind kind, int body, Attributes attributes) {
  std::string name = e.text("name");
  if (name.empty() && kind == Kind::texture) name = std::filesystem::path(e.text("file")).stem().string();
  CosmeticSpec cosmetic{std::string(e.name()), scope.naming.of(name), body, std::move(attributes), e.where()};
  std::erase_if(cosmetic.attributes, [](const auto& a) { return a.first == "name" || a.first == "class"; });
  declare(kind, cosmetic.name, e, &scope);
  spec_.cosmetics.push_back(std::move(cosmetic));
}

/// Resolves references in materials, cameras and lights, after all elements are read.
void Builder::check_looks() {
  for (const CosmeticSpec& look : spec_.cosmetics) {
    for (const auto& [attribute, name] : look.attributes) {
      const bool target = attribute == "target";
      if (name.empty() || (!target && attribute != "texture" && attribute != "layer.texture")) continue;
      const Kind kind = target ? Kind::body : Kind::texture;
      if (find(kind, name) < 0)
        sink_.add(Severity::error, look.where, fmt::format("there is no {} named {}", mjcf::name(kind), quote(name)));
    }
  }
}

namespace {

/// Refuses textures without an image, as MuJoCo does.
void check_texture(const XmlElement& e, const Attributes& attributes) {
  const auto text = [&](std::string_view name) {
    const auto found = std::ranges::find(attributes, name, [](const auto& a) { return std::string_view(a.first); });
    return found == attributes.end() ? std::string() : found->second;
  };
  if (std::ranges::any_of(attributes, [](const auto& a) { return a.first == "gridlayout"; })) {
    const std::string size = text("gridsize");
    std::size_t cells = 1;
    for (const std::string_view count : split_blanks(size)) cells *= std::size_t(parse_integer(count).value);
    if (text("gridlayout").size() != cells || cells > 12)
      e.error(
          fmt::format("'gridlayout' has {} characters, expected one for each of the {} cells of 'gridsize', at most 12",
                      text("gridlayout").size(), cells),
          "gridlayout");
  }
  const bool flat = text("type") == "2d";
  const auto is_file = [&](const auto& a) { return a.first == "file" || (!flat && a.first.starts_with("file")); };
  const std::string builtin = text("builtin");
  if (builtin.empty() || builtin == "none") {
    if (std::ranges::none_of(attributes, is_file)) e.error("the texture has neither a file nor a builtin image");
    return;
  }
  for (const char* size : {"width", "height"}) {
    if ((flat || size == std::string_view("width")) && parse_integer(text(size)).value <= 0)
      e.error(fmt::format("a builtin texture needs a positive {}", size), size);
  }
  if (const std::string channels = text("nchannel"); !channels.empty() && parse_integer(channels).value != 3)
    e.error("a builtin texture has 3 channels", "nchannel");
}

}  // namespace

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
      refuse_unknown(e);
      if (e.is("texture")) check_texture(e, attributes);
      if (e.is("material") || !(e.has("file") || e.text("type") == "skybox")) require(e, "name");
      for (const XmlElement& layer : e.children()) {
        refuse_unknown(layer);
        require(layer, "role"), require(layer, "texture");
        for (auto& [name, value] : layer.all_attributes()) attributes.emplace_back("layer." + name, value);
      }
      for (auto& [name, value] : attributes) {
        if (e.is("material") && (name == "texture" || name == "layer.texture") && !value.empty())
          value = scope.naming.prefix + value;
        if (e.is("texture") && name.starts_with("file")) value = texture_file(e, source, value);
      }
      keep(e, plain, e.is("material") ? Kind::material : Kind::texture, 0, std::move(attributes));
    } else if (e.is("skin")) {
      e.mark_all_children();
      e.warn("<skin> is not supported and has no effect");
    } else if (e.is("model")) {
      std::string file;
      e.ignore({"name", "content_type"});
      if (require(e, "file") && e.read("file", file)) load_source(e, source.model_path(file, e.where()));
      e.report_unread(Severity::error);
    } else {
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
  if (name.empty()) require(e, "name");
  mesh.name = scope.naming.of(name);
  mesh.scale = defaults.mesh_scale;
  e.read("scale", mesh.scale);
  std::string content_type;
  mesh.inertia = defaults.mesh_inertia;
  read_word(e, "inertia", {"convex", "exact", "legacy", "shell"}, mesh.inertia);
  e.read("content_type", content_type);
  Pose reference;
  e.read("refpos", reference.position);
  std::array<double, 4> q{1, 0, 0, 0};
  if (e.read("refquat", q)) {
    reference.orientation = {q[0], q[1], q[2], q[3]};
    if (!(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3] > 1e-20))
      return e.error("attribute 'refquat' has length zero", "refquat");
    reference.orientation = normalized(reference.orientation);
  }
  for (int i = 0; i < 3; ++i) {
    if (mesh.scale[i] == 0 || std::abs(mesh.scale[i]) > 1e12)
      return e.error("attribute 'scale' contains zero or too large a number", "scale");
  }
  e.mark_all_children();
  std::vector<std::array<int, 2>> objects;
  if (e.has("builtin") || e.child("plugin"))  // elements that need its surface report it
    e.warn(fmt::format("meshes of {} are not generated: this mesh has no surface",
                       e.has("builtin") ? "'builtin'" : "a plugin"));
  else if (mesh.file.empty())
    read_inline_mesh(e, mesh);
  else if (e.has("vertex") || e.has("face"))
    e.error("'file' cannot be combined with 'vertex' or 'face'", "file");
  else
    load_mesh(e, scope, content_type, mesh, objects);
  check_value(e, "smoothnormal", "bool");
  check_hull_limit(e);
  for (const auto& [name, each] : {std::pair("normal", std::size_t(3)), std::pair("texcoord", std::size_t(2))}) {
    std::vector<double> numbers;
    const bool each_vertex = each == 2 && e.has("vertex") && mesh.file.empty();
    if (!e.read(name, numbers)) continue;
    if (numbers.size() % each != 0)
      e.error(fmt::format("attribute '{}' has {} numbers, expected a multiple of {}", name, numbers.size(), each),
              name);
    else if (each_vertex && numbers.size() != each * mesh.vertices.size())
      e.error(fmt::format("attribute '{}' has {} numbers, expected {}: two for each vertex", name, numbers.size(),
                          each * mesh.vertices.size()),
              name);
  }
  e.ignore({"class", "vertex", "face"});
  e.unsupported({"material", "maxhullvert", "normal", "texcoord", "params"});
  e.report_unread(Severity::error);
  const Mat3d turn = transpose(rotation(reference.orientation));
  for (Vec3d& v : mesh.vertices) {
    v = turn * (v - reference.position);
    v = {v.x * mesh.scale.x, v.y * mesh.scale.y, v.z * mesh.scale.z};
  }
  mesh.reference_position = reference.position, mesh.reference_orientation = reference.orientation;
  if (mesh.scale.x * mesh.scale.y * mesh.scale.z < 0) {
    for (auto& triangle : mesh.triangles) std::swap(triangle[1], triangle[2]);
  }
  if (!declare(Kind::mesh, mesh.name, e)) return;
  names_[static_cast<int>(Kind::mesh)][mesh.name] = static_cast<int>(spec_.meshes.size());
  spec_.meshes.push_back(std::move(mesh));
  mesh_mass_.emplace_back();
  mesh_objects_.push_back(std::move(objects));
}

void Builder::read_inline_mesh(const XmlElement& e, MeshSpec& mesh) {
  std::vector<double> values;
  std::vector<int> indices;
  if (!e.has("vertex")) return e.error("a mesh needs 'file' or 'vertex'");
  if (!e.read("vertex", values)) return e.error("attribute 'vertex' has no numbers that can be read", "vertex");
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
      e.error(
          fmt::format("the mesh has no 'face', and the convex hull of its vertices cannot be built: {}", error.what()),
          "vertex");
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

bool Builder::load_mesh(const XmlElement& e, const Scope& scope, const std::string& content_type, MeshSpec& mesh,
                        std::vector<std::array<int, 2>>& objects) {
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
    e.error(fmt::format("mesh file {} is missing (looked for at {}); with --lenient, or lenient=True, the model loads "
                        "without it if no inertia needs it",
                        quote(mesh.file), path.string()),
            "file");
    return false;
  }
  try {
    MeshData data = read_mesh(path, e.where("file"));
    mesh.file = absolute_path(path);
    mesh.vertices = std::move(data.vertices);
    mesh.triangles = std::move(data.triangles);
    objects = std::move(data.object);
    for (const Diagnostic& d : data.diagnostics) sink_.add(d.severity, d.where, d.message);
    return true;
  } catch (const InputError& error) {
    for (const Diagnostic& d : error.diagnostics()) sink_.add(d.severity, d.where, d.message);
    return false;
  }
}

namespace {

constexpr long long kMostFieldPoints = 20'000'000;

/// Scales elevations to 0 … 1, as MuJoCo does. A flat field becomes 0.
void normalize(std::vector<float>& elevation) {
  if (elevation.empty()) return;
  const auto [low, high] = std::minmax_element(elevation.begin(), elevation.end());
  const float least = *low, range = *high - least;
  for (float& z : elevation) z = range > 0 ? (z - least) / range : 0;
}

/// Parses MuJoCo's format: rows and columns (32-bit integers), then rows × columns floats, little-endian.
/// @throws InputError
void parse_field_file(std::string_view bytes, const std::string& file, HeightFieldSpec& field) {
  const auto fail = [&](const std::string& message) {
    throw InputError(Location{file, 0, 0, {}}, "height field file " + quote(file) + " " + message);
  };
  std::array<std::int32_t, 2> counts{};
  if (bytes.size() < sizeof(counts)) fail(fmt::format("has {} bytes, expected at least 8", bytes.size()));
  std::memcpy(counts.data(), bytes.data(), sizeof(counts));
  const long long rows = counts[0], columns = counts[1];
  if (rows < 2 || columns < 2 || rows > kMostFieldPoints || columns > kMostFieldPoints ||
      rows * columns > kMostFieldPoints) {
    fail(fmt::format("claims {} x {} points, expected at least 2 x 2 and at most 2e7 in all", rows, columns));
  }
  const auto points = static_cast<std::size_t>(rows * columns);
  if (bytes.size() != sizeof(counts) + 4 * points) {
    fail(fmt::format("has {} bytes, expected {} for {} x {} points", bytes.size(), sizeof(counts) + 4 * points, rows,
                     columns));
  }
  field.rows = counts[0];
  field.columns = counts[1];
  field.elevation.resize(points);
  std::memcpy(field.elevation.data(), bytes.data() + sizeof(counts), 4 * points);
  for (std::size_t k = 0; k < points; ++k) {
    if (!(std::abs(field.elevation[k]) < 1e30f)) fail(fmt::format("point {} is {}", k, field.elevation[k]));
  }
}

/// Reads a picture as a height field seen from above: its first row is at +y.
void parse_field_picture(std::string_view bytes, const std::string& file, HeightFieldSpec& field) {
  const GrayImage image = parse_png_gray(bytes, file, kMostFieldPoints);
  if (image.width < 2 || image.height < 2) {
    throw InputError(Location{file, 0, 0, {}},
                     fmt::format("height field file {} has {} x {} points, expected at least 2 x 2", quote(file),
                                 image.height, image.width));
  }
  field.rows = image.height;
  field.columns = image.width;
  const auto columns = static_cast<std::ptrdiff_t>(image.width);
  for (std::ptrdiff_t r = image.height; r-- > 0;) {
    const auto row = image.pixels.begin() + r * columns;
    field.elevation.insert(field.elevation.end(), row, row + columns);
  }
}

}  // namespace

void Builder::read_height_field(const XmlElement& e, const Scope& scope) {
  HeightFieldSpec field;
  field.where = e.where();
  if (require(e, "size")) {
    e.read("size", field.size);
    for (const double s : field.size) {
      if (!(s > 0)) e.error("attribute 'size': all four numbers must be positive", "size");
    }
  }
  int rows = 0, columns = 0;
  std::vector<double> elevation;
  std::string content_type;
  e.read("nrow", rows);
  e.read("ncol", columns);
  e.read("elevation", elevation);
  e.read("content_type", content_type);
  if (e.read("file", field.file)) {
    load_height_field(e, scope, content_type, field);
  } else if (rows < 2 || columns < 2 || static_cast<long long>(rows) * columns > kMostFieldPoints) {
    e.error(fmt::format("the height field has {} x {} points, expected at least 2 x 2 and at most 2e7 in all", rows,
                        columns),
            "nrow");
  } else if (!elevation.empty() &&
             elevation.size() != static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns)) {
    e.error(fmt::format("attribute 'elevation' has {} numbers, expected {} x {}", elevation.size(), rows, columns),
            "elevation");
  } else {
    field.rows = rows;
    field.columns = columns;
    // The text is a view from above: its first row is at +y.
    for (std::size_t r = static_cast<std::size_t>(rows); !elevation.empty() && r-- > 0;) {
      const auto first = elevation.begin() + static_cast<std::ptrdiff_t>(r * static_cast<std::size_t>(columns));
      for (int c = 0; c < columns; ++c) field.elevation.push_back(static_cast<float>(first[c]));
    }
    for (const float z : field.elevation) {
      if (std::abs(z) < 1e30f) continue;
      e.error("attribute 'elevation': a number is larger than 1e30", "elevation");
      break;
    }
  }
  normalize(field.elevation);
  std::string name = e.text("name");
  if (name.empty()) name = std::filesystem::path(field.file).stem().string();
  if (name.empty()) require(e, "name");
  e.report_unread(Severity::error);
  field.name = scope.naming.of(name);
  if (!declare(Kind::height_field, field.name, e)) return;
  spec_.height_fields.push_back(std::move(field));
}

void Builder::load_height_field(const XmlElement& e, const Scope& scope, const std::string& content_type,
                                HeightFieldSpec& field) {
  const auto path = scope.source->asset_path(field.file, scope.source->compiler().mesh_directory, e.where());
  std::error_code ignored;
  if (options_.disable_includes || !std::filesystem::exists(path, ignored)) {
    const std::string message = fmt::format("height field file {} is missing", quote(field.file));
    options_.lenient ? e.warn(message, "file") : e.error(message, "file");
    return;
  }
  try {
    if (content_type == "image/png" || path.extension() == ".png" || path.extension() == ".PNG") {
      return parse_field_picture(read_file(path, 8 + 4 * kMostFieldPoints, e.where("file")), path.string(), field);
    }
    parse_field_file(read_file(path, 8 + 4 * kMostFieldPoints, e.where("file")), path.string(), field);
  } catch (const InputError& error) {
    for (const Diagnostic& d : error.diagnostics()) sink_.add(d.severity, e.where("file"), d.message);
  }
}

namespace {

/// Sums the legacy mass properties of the parts of a mesh; nothing if one of them is not closed. The legacy volume is
/// measured from one centroid and is right for a single closed object only, so each part gets its own centroid.
/// (MuJoCo 4 reads the first part and drops the rest.)
std::optional<ShapeInertia> inertia_of_parts(const MeshSpec& mesh, const std::vector<std::array<int, 2>>& object) {
  std::map<std::array<int, 2>, std::vector<std::array<int, 3>>> parts;
  for (std::size_t t = 0; t < mesh.triangles.size(); ++t) parts[object[t]].push_back(mesh.triangles[t]);
  std::vector<ShapeInertia> found;
  MeshData part;
  part.vertices = mesh.vertices;
  for (auto& [number, triangles] : parts) {
    part.triangles = std::move(triangles);
    if (!mesh_defects(part).empty()) return {};
    found.push_back(mesh_inertia(mesh.vertices, part.triangles, MeshInertia::legacy));
  }
  ShapeInertia sum;
  for (const ShapeInertia& part : found) sum.volume += part.volume, sum.com += part.com * part.volume;
  sum.com = sum.com * (1 / sum.volume);
  for (const ShapeInertia& part : found) {
    sum.inertia += shifted_inertia(part.inertia, part.volume, part.com - sum.com);
  }
  return sum;
}

/// The legacy mass properties of a file's groups, else of its objects, else of the whole: one surface may be divided
/// into groups or objects, for example by material.
ShapeInertia inertia_of_objects(const MeshSpec& mesh, std::vector<std::array<int, 2>> object) {
  if (const auto sum = inertia_of_parts(mesh, object)) return *sum;
  for (auto& numbers : object) numbers[1] = 0;
  if (const auto sum = inertia_of_parts(mesh, object)) return *sum;
  return mesh_inertia(mesh.vertices, mesh.triangles, MeshInertia::legacy);
}

}  // namespace

const ShapeInertia* Builder::mesh_mass(int index, const XmlElement* used_by) {
  auto& known = mesh_mass_[static_cast<std::size_t>(index)];
  if (known) return known->volume > 0 ? &*known : nullptr;
  const MeshSpec& mesh = spec_.meshes[static_cast<std::size_t>(index)];
  known.emplace();
  const MeshInertia kind = mesh.inertia == "convex"  ? MeshInertia::convex
                           : mesh.inertia == "exact" ? MeshInertia::exact
                           : mesh.inertia == "shell" ? MeshInertia::shell
                                                     : MeshInertia::legacy;
  const std::vector<std::array<int, 2>>& objects = mesh_objects_[static_cast<std::size_t>(index)];
  try {
    known = kind == MeshInertia::legacy && !objects.empty() ? inertia_of_objects(mesh, objects)
                                                            : mesh_inertia(mesh.vertices, mesh.triangles, kind);
  } catch (const ValueError& error) {
    const std::string message = fmt::format("mesh {}: {}", quote(mesh.name), error.what());
    used_by ? used_by->error(message, "mesh") : sink_.add(Severity::error, mesh.where, message);
    return nullptr;
  }
  return &*known;
}

}  // namespace tarsus::mjcf
