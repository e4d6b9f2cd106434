// Declarations that the readers of the mesh formats share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/io/mesh_file.hpp"

namespace tarsus {

/// Collects vertices and gives equal positions one index. The table of indices uses open addressing, because meshes
/// have millions of vertices.
class VertexMerger {
 public:
  explicit VertexMerger(std::vector<Vec3d>& vertices) : vertices_(vertices), table_(64, -1) {}
  /// Index of the vertex. Coordinates are rounded to float first; -0 becomes 0.
  int add(Vec3d v);

 private:
  void grow();
  std::size_t slot(const Vec3d& v) const;

  std::vector<Vec3d>& vertices_;
  std::vector<std::int32_t> table_;
};

/// Whether the value is finite as a float.
inline bool fits_float(double x) { return std::isfinite(static_cast<float>(x)); }

[[noreturn]] void mesh_error(const std::string& name, int line, const std::string& message);

MeshData parse_stl(std::string_view bytes, const std::string& name);
MeshData parse_obj(std::string_view text, const std::string& name);
MeshData parse_msh(std::string_view bytes, const std::string& name);

/// Splits text into lines without their line ends (\n, \r\n). Lines count from 1.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text), line_feed_(std::min(text.find('\n'), text.size())) {}
  bool next(std::string_view& line);
  int number() const { return number_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0, line_feed_;  ///< line_feed_: the first one from at_ on, or before it
  int number_ = 0;
};

}  // namespace tarsus
