// What the readers of the mesh formats share.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/io/mesh_file.hpp"

namespace tarsus {

/// Gathers vertices, giving equal positions one index. An open-addressing table of indices: meshes have millions.
class VertexMerger {
 public:
  explicit VertexMerger(std::vector<Vec3d>& vertices) : vertices_(vertices), table_(64, -1) {}
  /// Index of the vertex; coordinates are rounded to float first, -0 to 0.
  int add(Vec3d v);

 private:
  void grow();
  std::size_t slot(const Vec3d& v) const;

  std::vector<Vec3d>& vertices_;
  std::vector<std::int32_t> table_;
};

/// True if the value is finite also as a float.
inline bool fits_float(double x) { return std::isfinite(static_cast<float>(x)); }

[[noreturn]] void mesh_error(const std::string& name, int line, const std::string& message);

MeshData parse_stl(std::string_view bytes, const std::string& name);
MeshData parse_obj(std::string_view text, const std::string& name);
MeshData parse_msh(std::string_view bytes, const std::string& name);

/// Splits text into lines without their ends (\n, \r\n), counting from 1.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}
  bool next(std::string_view& line);
  int number() const { return number_; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  int number_ = 0;
};

}  // namespace tarsus
