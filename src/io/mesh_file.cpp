#include "tarsus/io/mesh_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "mesh_formats.hpp"
#include "tarsus/geometry/inertia.hpp"
#include "tarsus/io/text_number.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {

namespace {

std::string lower_extension(const std::filesystem::path& file) {
  std::string e = file.extension().string();
  for (char& c : e) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return e;
}

/// Drops triangles that use a vertex twice. They enclose no volume and would falsify the counts of edges.
void drop_repeated_corners(MeshData& mesh, const std::string& name) {
  const auto repeated = [](const std::array<int, 3>& t) { return t[0] == t[1] || t[1] == t[2] || t[2] == t[0]; };
  std::size_t kept = 0;
  for (std::size_t t = 0; t < mesh.triangles.size(); ++t) {
    if (repeated(mesh.triangles[t])) continue;
    mesh.triangles[kept] = mesh.triangles[t];
    if (!mesh.object.empty()) mesh.object[kept] = mesh.object[t];
    ++kept;
  }
  const std::size_t dropped = mesh.triangles.size() - kept;
  mesh.triangles.resize(kept);
  if (!mesh.object.empty()) mesh.object.resize(kept);
  if (dropped > 0) {
    mesh.diagnostics.push_back(
        {Severity::note, {name, 0, 0, {}}, fmt::format("{} triangles with two equal corners are left out", dropped)});
  }
}

std::uint64_t edge_key(int a, int b) { return static_cast<std::uint64_t>(a) << 32 | static_cast<std::uint32_t>(b); }

}  // namespace

void mesh_error(const std::string& name, int line, const std::string& message) {
  throw InputError(Location{name, line, 0, {}}, message);
}

std::size_t VertexMerger::slot(const Vec3d& v) const {
  std::uint64_t h = 0;
  for (int i = 0; i < 3; ++i)
    h = (h ^ std::bit_cast<std::uint32_t>(static_cast<float>(v[i]))) * 0x9E3779B97F4A7C15u, h ^= h >> 29;
  const std::size_t mask = table_.size() - 1;
  std::size_t s = h & mask;
  while (table_[s] >= 0) {
    const Vec3d& w = vertices_[table_[s]];
    if (w.x == v.x && w.y == v.y && w.z == v.z) break;
    s = (s + 1) & mask;
  }
  return s;
}

void VertexMerger::grow() {
  table_.assign(2 * table_.size(), -1);
  for (std::size_t i = 0; i < vertices_.size(); ++i) table_[slot(vertices_[i])] = static_cast<std::int32_t>(i);
}

int VertexMerger::add(Vec3d v) {
  for (int i = 0; i < 3; ++i) v[i] = static_cast<float>(v[i]) + 0.0f;  // + 0 turns -0 into 0
  std::size_t s = slot(v);
  if (table_[s] < 0) {
    table_[s] = static_cast<std::int32_t>(vertices_.size());
    vertices_.push_back(v);
    if (vertices_.size() * 2 > table_.size()) {
      grow();
      s = slot(v);
    }
  }
  return table_[s];
}

bool LineReader::next(std::string_view& line) {
  if (at_ >= text_.size()) return false;
  if (line_feed_ < at_) line_feed_ = std::min(text_.find('\n', at_), text_.size());
  const std::string_view rest = text_.substr(at_, line_feed_ - at_);
  line = rest.substr(0, rest.find('\r'));
  const std::size_t end = at_ + line.size();
  at_ = end + (text_.substr(end, 2) == "\r\n" ? 2 : 1);
  ++number_;
  return true;
}

MeshData parse_mesh(std::string_view bytes, MeshFormat format, const std::string& name) {
  if (bytes.empty()) mesh_error(name, 0, "the file is empty");
  if (bytes.size() > kMaxMeshBytes)
    mesh_error(name, 0, fmt::format("has {} bytes, expected at most {}", bytes.size(), kMaxMeshBytes));
  MeshData mesh;
  switch (format) {
    case MeshFormat::stl: mesh = parse_stl(bytes, name); break;
    case MeshFormat::obj: mesh = parse_obj(bytes, name); break;
    case MeshFormat::msh: mesh = parse_msh(bytes, name); break;
  }
  const bool triangles = !mesh.triangles.empty();
  drop_repeated_corners(mesh, name);
  if (mesh.triangles.empty()) {
    try {
      mesh.triangles = convex_hull(mesh.vertices);
    } catch (const ValueError& error) {
      if (triangles) mesh_error(name, 0, "every triangle has two equal corners");
      if (mesh.vertices.empty()) mesh_error(name, 0, "has neither triangles nor vertices");
      mesh_error(name, 0, std::string("has no triangles, and its vertices have no hull: ") + error.what());
    }
    mesh.diagnostics.push_back(
        {Severity::note, {name, 0, 0, {}}, "has no triangles: the convex hull of its vertices is used"});
  }
  return mesh;
}

bool is_mesh_file(const std::filesystem::path& file) {
  const std::string extension = lower_extension(file);
  return extension == ".stl" || extension == ".obj" || extension == ".msh";
}

MeshData read_mesh(const std::filesystem::path& file, const Location& used_at) {
  const std::string extension = lower_extension(file);
  const Location where = used_at.file.empty() ? Location{file.string(), 0, 0, {}} : used_at;
  MeshFormat format{};
  if (extension == ".stl") {
    format = MeshFormat::stl;
  } else if (extension == ".obj") {
    format = MeshFormat::obj;
  } else if (extension == ".msh") {
    format = MeshFormat::msh;
  } else {
    const bool collada = extension == ".dae";
    throw InputError(where,
                     fmt::format("{}: {} is not supported; meshes are read from STL, OBJ and MSH", quote(file.string()),
                                 collada             ? "Collada"
                                 : extension.empty() ? "a mesh without extension"
                                                     : quote(extension)));
  }
  return parse_mesh(read_file(file, kMaxMeshBytes, where), format, file.string());
}

void scale_mesh(MeshData& mesh, const Vec3d& scale) {
  for (Vec3d& v : mesh.vertices) v = {v.x * scale.x, v.y * scale.y, v.z * scale.z};
  if (scale.x * scale.y * scale.z < 0) {
    for (auto& t : mesh.triangles) std::swap(t[1], t[2]);
  }
}

std::vector<std::string> mesh_defects(const MeshData& mesh) {
  std::vector<std::string> out;
  std::vector<std::uint64_t> edges;
  edges.reserve(3 * mesh.triangles.size());
  double volume = 0;
  for (const auto& t : mesh.triangles) {
    for (int i = 0; i < 3; ++i) edges.push_back(edge_key(t[i], t[(i + 1) % 3]));
    volume += dot(mesh.vertices[t[0]], cross(mesh.vertices[t[1]], mesh.vertices[t[2]]));
  }
  std::sort(edges.begin(), edges.end());
  std::size_t twice = 0, open = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (i > 0 && edges[i] == edges[i - 1]) ++twice;
    const std::uint64_t back = edges[i] << 32 | edges[i] >> 32;
    if (!std::binary_search(edges.begin(), edges.end(), back)) ++open;
  }
  if (open > 0)
    out.push_back(fmt::format("the surface is not closed: {} edges have a triangle on one side only", open));
  if (twice > 0) out.push_back(fmt::format("the triangles at {} edges have opposite orientations", twice));
  if (open == 0 && twice == 0 && volume < 0) out.push_back("the triangles are oriented inside out");
  return out;
}

}  // namespace tarsus
