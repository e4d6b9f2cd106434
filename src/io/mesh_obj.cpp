// Wavefront OBJ. Only v, f, o and g are read; normals, textures and materials are ignored.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "mesh_formats.hpp"
#include "tarsus/io/text_number.hpp"

namespace tarsus {

namespace {

constexpr std::size_t kMaxEarClipping = 64;  // sides; ear clipping is O(n²), so larger polygons are cut as fans

struct ObjParser {
  explicit ObjParser(const std::string& file) : name(file) {}

  const std::string& name;
  MeshData mesh;
  VertexMerger merger{mesh.vertices};
  std::vector<int> index;  // OBJ's vertex number - 1 → merged vertex
  std::vector<int> polygon;
  int line = 0;
  std::array<int, 2> object{};  // numbers of the object and of the group so far
  std::size_t unsupported = 0;
  int unsupported_line = 0;
  std::string unsupported_word;

  [[noreturn]] void fail(const std::string& message) const { mesh_error(name, line, message); }

  void vertex(const std::vector<std::string_view>& words) {
    if (words.size() < 4) fail(fmt::format("'v' has {} numbers, expected 3", words.size() - 1));
    Vec3d v{};
    for (int i = 0; i < 3; ++i) {
      const Parsed<double> number = parse_number(words[i + 1]);
      if (!number) fail(number.error);
      if (!fits_float(number.value)) fail("a coordinate is too large for single precision");
      v[i] = number.value;
    }
    index.push_back(merger.add(v));
  }

  /// The vertex that "7", "7/1", "7//3" or "-2/…" names. Numbers count from 1; negative ones count back from the last
  /// vertex so far.
  int corner(std::string_view word) const {
    const std::string_view digits = word.substr(0, word.find('/'));
    long long n = 0;
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (status != std::errc() || end != digits.data() + digits.size()) fail(quote(word) + " is not a vertex index");
    const long long size = static_cast<long long>(index.size());
    const long long i = n < 0 ? size + n : n - 1;
    if (n == 0 || i < 0 || i >= size) fail(fmt::format("vertex index {} is out of range: {} vertices so far", n, size));
    return index[static_cast<std::size_t>(i)];
  }

  void face(const std::vector<std::string_view>& words) {
    if (words.size() < 4) fail(fmt::format("a face of {} vertices, expected at least 3", words.size() - 1));
    polygon.clear();
    for (std::size_t i = 1; i < words.size(); ++i) polygon.push_back(corner(words[i]));
    if (polygon.size() == 4) {
      quad();
    } else if (polygon.size() > 4 && polygon.size() <= kMaxEarClipping) {
      clip_ears();
    } else {
      fan();
    }
    mesh.object.resize(mesh.triangles.size(), object);
  }

  void fan() {
    for (std::size_t i = 1; i + 1 < polygon.size(); ++i)
      mesh.triangles.push_back({polygon[0], polygon[i], polygon[i + 1]});
  }

  /// Cuts a quadrilateral along its shorter diagonal, as other programs do.
  void quad() {
    const auto& p = polygon;
    const auto length = [&](int a, int b) { return norm(mesh.vertices[p[a]] - mesh.vertices[p[b]]); };
    if (length(0, 2) < length(1, 3)) {
      mesh.triangles.push_back({p[0], p[1], p[2]});
      mesh.triangles.push_back({p[0], p[2], p[3]});
    } else {
      mesh.triangles.push_back({p[0], p[1], p[3]});
      mesh.triangles.push_back({p[1], p[2], p[3]});
    }
  }

  /// Ear clipping: cuts off corners that turn left about the polygon's normal and whose triangle contains no other
  /// corner.
  void clip_ears() {
    Vec3d normal = zero3<double>();
    for (std::size_t i = 0; i < polygon.size(); ++i) normal += cross(at(i), at((i + 1) % polygon.size()));
    while (polygon.size() > 3) {
      const std::size_t n = polygon.size();
      std::size_t ear = 0;
      for (std::size_t i = 0; i < n && ear == 0; ++i) {
        if (is_ear(i, normal)) ear = i + 1;
      }
      const std::size_t i = ear == 0 ? 0 : ear - 1;  // a twisted polygon may have no ear: then any cut is as good
      mesh.triangles.push_back({polygon[(i + n - 1) % n], polygon[i], polygon[(i + 1) % n]});
      polygon.erase(polygon.begin() + static_cast<std::ptrdiff_t>(i));
    }
    mesh.triangles.push_back({polygon[0], polygon[1], polygon[2]});
  }

  const Vec3d& at(std::size_t i) const { return mesh.vertices[polygon[i]]; }

  bool is_ear(std::size_t i, const Vec3d& normal) const {
    const std::size_t n = polygon.size(), before = (i + n - 1) % n, after = (i + 1) % n;
    const auto left = [&](const Vec3d& a, const Vec3d& b, const Vec3d& c) { return dot(cross(b - a, c - a), normal); };
    const Vec3d &a = at(before), &b = at(i), &c = at(after);
    if (left(a, b, c) <= 0) return false;
    for (std::size_t k = 0; k < n; ++k) {
      if (k == before || k == i || k == after) continue;
      const Vec3d& p = at(k);
      if (left(a, b, p) >= 0 && left(b, c, p) >= 0 && left(c, a, p) >= 0) return false;
    }
    return true;
  }

  void keyword(const std::vector<std::string_view>& words) {
    static constexpr std::string_view kPassedOver[] = {"vn", "vt", "vp", "g", "o", "s", "usemtl", "mtllib", "l", "p"};
    const std::string_view w = words[0];
    if (w == "v") return vertex(words);
    if (w == "f") return face(words);
    if (w == "o") ++object[0];
    if (w == "g") ++object[1];
    if (std::find(std::begin(kPassedOver), std::end(kPassedOver), w) != std::end(kPassedOver)) return;
    if (unsupported++ == 0) {
      unsupported_line = line;
      unsupported_word = quote(w);
    }
  }
};

}  // namespace

MeshData parse_obj(std::string_view text, const std::string& name) {
  ObjParser parser{name};
  LineReader lines(text);
  std::string_view piece;
  std::vector<std::string_view> words;
  std::string joined;  // lines continued by a backslash at their end
  while (lines.next(piece)) {
    piece = piece.substr(0, piece.find('#'));
    parser.line = lines.number();
    if (!piece.empty() && piece.back() == '\\') {
      joined.append(piece.substr(0, piece.size() - 1)).push_back(' ');
      continue;
    }
    if (joined.empty() && (piece.starts_with("vn ") || piece.starts_with("vt "))) continue;  // most lines of most files
    if (!joined.empty()) piece = joined.append(piece);
    split_blanks(piece, words);
    if (!words.empty()) parser.keyword(words);
    joined.clear();
  }
  MeshData& mesh = parser.mesh;
  if (!joined.empty()) parser.fail("the file ends inside a continued line");
  if (mesh.vertices.empty()) parser.fail("the OBJ file has no vertex");
  const std::set<std::array<int, 2>> parts(mesh.object.begin(), mesh.object.end());
  if (parts.size() < 2) {
    mesh.object.clear();
  } else {
    mesh.diagnostics.push_back(
        {Severity::note,
         {name, 0, 0, {}},
         fmt::format("its {} objects or groups are read as one mesh, with the mass of all of them", parts.size())});
  }
  if (parser.unsupported > 0) {
    mesh.diagnostics.push_back({Severity::warning,
                                {name, parser.unsupported_line, 0, {}},
                                fmt::format("{} and {} other lines are not supported and have no effect",
                                            parser.unsupported_word, parser.unsupported - 1)});
  }
  return std::move(parser.mesh);
}

}  // namespace tarsus
