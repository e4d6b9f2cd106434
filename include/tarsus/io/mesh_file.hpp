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

/// Vertices in the file's own units, equal ones merged, rounded to single precision as every reader of these formats
/// does (so mass properties agree with theirs); triangles counter-clockwise from outside if the file keeps to it.
struct MeshData {
  std::vector<Vec3d> vertices;
  std::vector<std::array<int, 3>> triangles;
  std::vector<int> object;  ///< OBJ: the number of each triangle's object, where a file has several; else empty
  Diagnostics diagnostics;  ///< notes and warnings about the file; see also mesh_defects()
};

enum class MeshFormat { stl, obj, msh };

/// Largest file that is read: 1.3 million triangles of binary STL.
inline constexpr std::size_t kMaxMeshBytes = std::size_t{64} << 20;

/// The file's extension, whatever its case, is one of a format that is read.
bool is_mesh_file(const std::filesystem::path& file);

/// Reads a mesh by its extension, whatever its case.
/// @param used_at where the model names the file: errors about the file as a whole point there
/// @throws InputError missing, not a regular file, too large, an extension that is not supported (Collada among them),
///         or contents that cannot be a mesh, with the line for text formats
MeshData read_mesh(const std::filesystem::path& file, const Location& used_at = {});

/// The same from memory; `name` stands for the file in messages.
MeshData parse_mesh(std::string_view bytes, MeshFormat format, const std::string& name);

/// Multiplies the coordinates; a mirroring scale also turns the triangles round so that they stay outward.
void scale_mesh(MeshData& mesh, const Vec3d& scale);

/// What keeps a mesh's enclosed volume from being well defined, a sentence each; empty for a closed surface turned
/// outward. For the places where mass depends on it: most meshes made for looks have some.
std::vector<std::string> mesh_defects(const MeshData& mesh);

}  // namespace tarsus
