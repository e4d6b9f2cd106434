// STL, binary and ASCII, and MuJoCo's MSH. Both binary formats are little-endian arrays.
#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "mesh_formats.hpp"
#include "tarsus/io/text_number.hpp"

namespace tarsus {

namespace {

constexpr std::size_t kHeader = 84, kFacet = 50;  // binary STL: text (80 bytes), count; facet: normal, corners, 2 bytes

static_assert(std::numeric_limits<float>::is_iec559);

std::uint32_t read_u32(std::string_view bytes, std::size_t at) {
  std::uint32_t x = 0;
  for (int i = 3; i >= 0; --i) x = x << 8 | static_cast<unsigned char>(bytes[at + i]);
  return x;
}

float read_float(std::string_view bytes, std::size_t at) {
  const std::uint32_t bits = read_u32(bytes, at);
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

Vec3d read_point(std::string_view bytes, std::size_t at) {
  return {read_float(bytes, at), read_float(bytes, at + 4), read_float(bytes, at + 8)};
}

bool finite(const Vec3d& v) { return fits_float(v.x) && fits_float(v.y) && fits_float(v.z); }

/// Whether an STL file is ASCII. Many binary files begin with "solid" too, so the size is checked before that word.
bool is_ascii(std::string_view bytes) {
  if (bytes.size() >= kHeader && bytes.size() == kHeader + kFacet * read_u32(bytes, 80)) return false;
  const std::string_view head = trimmed(bytes.substr(0, 4096));
  return head.substr(0, 5) == "solid" && bytes.substr(0, 4096).find('\0') == std::string_view::npos;
}

MeshData parse_binary(std::string_view bytes, const std::string& name) {
  if (bytes.size() < kHeader) {
    mesh_error(name, 0,
               fmt::format("is neither ASCII STL nor binary: {} bytes, a binary header has {}", bytes.size(), kHeader));
  }
  const std::uint64_t count = read_u32(bytes, 80);
  if (bytes.size() != kHeader + kFacet * count) {
    mesh_error(name, 0,
               fmt::format("the STL header counts {} triangles, which take {} bytes; the file has {}", count,
                           kHeader + kFacet * count, bytes.size()));
  }
  MeshData mesh;
  VertexMerger merger(mesh.vertices);
  mesh.triangles.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::array<int, 3> t{};
    for (int k = 0; k < 3; ++k) {
      const Vec3d v = read_point(bytes, kHeader + kFacet * i + 12 * (k + 1));
      if (!finite(v)) mesh_error(name, 0, fmt::format("triangle {} has a corner that is not finite", i + 1));
      t[k] = merger.add(v);
    }
    mesh.triangles.push_back(t);
  }
  return mesh;
}

/// Parses the words facet … outer loop … vertex ×3 … endloop … endfacet. Only the order of the vertices matters here.
MeshData parse_ascii(std::string_view text, const std::string& name) {
  MeshData mesh;
  VertexMerger merger(mesh.vertices);
  LineReader lines(text);
  std::string_view line;
  std::array<int, 3> corners{};
  int corner = -1;  // -1: outside a loop
  bool ended = false;
  while (lines.next(line)) {
    const std::vector<std::string_view> words = split_blanks(line);
    if (words.empty()) continue;
    const std::string_view w = words[0];
    if (w == "vertex") {
      if (corner < 0 || corner > 2) mesh_error(name, lines.number(), "a vertex is outside a loop of three");
      if (words.size() != 4)
        mesh_error(name, lines.number(), fmt::format("'vertex' has {} numbers, expected 3", words.size() - 1));
      Vec3d v{};
      for (int i = 0; i < 3; ++i) {
        const Parsed<double> number = parse_number(words[i + 1]);
        if (!number || !fits_float(number.value)) {
          mesh_error(name, lines.number(), number ? "a coordinate is too large for single precision" : number.error);
        }
        v[i] = number.value;
      }
      corners[corner++] = merger.add(v);
    } else if (w == "outer") {
      if (corner >= 0) mesh_error(name, lines.number(), "a loop inside a loop");
      corner = 0;
    } else if (w == "endloop") {
      if (corner != 3)
        mesh_error(name, lines.number(), fmt::format("a loop of {} vertices, expected 3", std::max(corner, 0)));
      mesh.triangles.push_back(corners);
      corner = -1;
    } else if (w == "endsolid") {
      ended = true;
    } else if (w != "solid" && w != "facet" && w != "endfacet") {
      mesh_error(name, lines.number(), fmt::format("unknown word {} in an ASCII STL", quote(w)));
    }
  }
  if (corner >= 0 || !ended) mesh_error(name, lines.number(), "the ASCII STL ends without 'endsolid'");
  return mesh;
}

}  // namespace

MeshData parse_stl(std::string_view bytes, const std::string& name) {
  return is_ascii(bytes) ? parse_ascii(bytes, name) : parse_binary(bytes, name);
}

/// MSH: four counts (vertices, normals, texture coordinates, triangles), then arrays with 3, 3 and 2 floats and 3
/// integers an element.
MeshData parse_msh(std::string_view bytes, const std::string& name) {
  if (bytes.substr(0, 11) == "$MeshFormat") mesh_error(name, 0, "is a Gmsh file; only MuJoCo's own MSH is read");
  if (bytes.size() < 16) mesh_error(name, 0, "is too short for an MSH header");
  const std::uint64_t vertices = read_u32(bytes, 0), normals = read_u32(bytes, 4), textures = read_u32(bytes, 8),
                      faces = read_u32(bytes, 12);
  const std::uint64_t expected = 16 + 12 * vertices + 12 * normals + 8 * textures + 12 * faces;
  if (bytes.size() != expected) {
    mesh_error(name, 0,
               fmt::format("the MSH header counts {} vertices and {} triangles, {} bytes in all; the file has {}",
                           vertices, faces, expected, bytes.size()));
  }
  MeshData mesh;
  VertexMerger merger(mesh.vertices);
  std::vector<int> index;
  index.reserve(vertices);
  for (std::uint64_t i = 0; i < vertices; ++i) {
    const Vec3d v = read_point(bytes, 16 + 12 * i);
    if (!finite(v)) mesh_error(name, 0, fmt::format("vertex {} is not finite", i));
    index.push_back(merger.add(v));
  }
  const std::size_t first_face = 16 + 12 * vertices + 12 * normals + 8 * textures;
  for (std::uint64_t i = 0; i < faces; ++i) {
    std::array<int, 3> t{};
    for (int k = 0; k < 3; ++k) {
      const std::uint32_t v = read_u32(bytes, first_face + 12 * i + 4 * k);
      if (v >= vertices)
        mesh_error(name, 0, fmt::format("triangle {} uses vertex {}, the file has {}", i, v, vertices));
      t[k] = index[v];
    }
    mesh.triangles.push_back(t);
  }
  return mesh;
}

}  // namespace tarsus
