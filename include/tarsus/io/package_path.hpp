// Finds the file that a URDF names by "package://NAME/path", and names files for a ModelSpec.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tarsus {

struct ResolvedFile {
  std::filesystem::path file;  ///< the first that exists, else empty
  std::string error;           ///< if there is none, the reason: "not found; looked in …"
};

/// Resolves "package://NAME/REST", "model://NAME/REST", "file:///ABSOLUTE" and plain paths (relative to `directory`).
/// A package is searched in and below `package_paths`; then in and below ROS_PACKAGE_PATH, in PREFIX/share for
/// AMENT_PREFIX_PATH, in GZ_SIM_RESOURCE_PATH and in GAZEBO_MODEL_PATH; then upward from `directory`. A folder is the
/// package if its name or the name in its package.xml is NAME. In the search upward, a folder that contains REST counts
/// too. "package:///NAME/REST" is read like "package://NAME/REST". Other schemes (http://) are an error.
ResolvedFile resolve_uri(std::string_view uri, const std::filesystem::path& directory,
                         const std::vector<std::filesystem::path>& package_paths);

/// The file's absolute path without "." and "..", which is a file's name in a ModelSpec.
std::string absolute_path(const std::filesystem::path& file);

}  // namespace tarsus
