// Triangle meshes from files: STL (binary, ASCII), OBJ, MuJoCo's MSH.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/math/vec.hpp"

namespace tarsus {

/// Vertices are in the file's units. They are rounded to single precision, as by other readers of these formats, so
/// that mass properties agree with theirs; equal vertices are merged. Triangles are counter-clockwise seen from outside
/// if the file's are.
struct MeshData {
  std::vector<Vec3d> vertices;
  std::vector<std::array<int, 3>> triangles;
  /// OBJ files with several objects (o) or groups (g): those of each triangle, counted; else empty.
  std::vector<std::array<int, 2>> object;
  Diagnostics diagnostics;  ///< notes and warnings about the file; see also mesh_defects()
};

enum class MeshFormat { stl, obj, msh };

/// Largest file that is read: 1.3 million triangles of binary STL.
inline constexpr std::size_t kMaxMeshBytes = std::size_t{64} << 20;

/// Whether the file's extension is that of a supported format. Case does not matter.
bool is_mesh_file(const std::filesystem::path& file);

/// Reads a mesh in the format of the file's extension. Case does not matter.
/// @param used_at where the model names the file; errors about the file as a whole are reported there
/// @throws InputError if the file is missing, not a regular file or too large, if its extension is not supported (such
///         as Collada's), or if the contents are not a mesh; for text formats with the line
MeshData read_mesh(const std::filesystem::path& file, const Location& used_at = {});

/// The same from memory; `name` stands for the file in messages.
MeshData parse_mesh(std::string_view bytes, MeshFormat format, const std::string& name);

/// Multiplies the coordinates. A mirroring scale also reverses the triangles, so that they stay outward.
void scale_mesh(MeshData& mesh, const Vec3d& scale);

/// Defects that make a mesh's enclosed volume ill-defined, one sentence each. Empty for a closed surface with outward
/// triangles. Only masses need such a surface: most visual meshes have defects.
std::vector<std::string> mesh_defects(const MeshData& mesh);

}  // namespace tarsus
