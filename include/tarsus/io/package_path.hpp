// Where the file behind a URDF's "package://NAME/path" is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tarsus {

struct ResolvedFile {
  std::filesystem::path file;  ///< the first that exists; empty if none does
  std::string error;           ///< why there is none: "not found; looked in …"
};

/// Resolves "package://NAME/REST", "model://NAME/REST", "file:///ABSOLUTE" and plain paths (relative to `directory`).
/// A package is looked for in and below `package_paths`, then those of the environment: in and below ROS_PACKAGE_PATH,
/// in PREFIX/share for AMENT_PREFIX_PATH, in GZ_SIM_RESOURCE_PATH and GAZEBO_MODEL_PATH; then upward from `directory`.
/// A folder is the package if it is named NAME or its package.xml says NAME; upward also if it just holds REST.
/// "package:///NAME/REST" is read like "package://NAME/REST".
/// Other schemes (http://) are an error.
ResolvedFile resolve_uri(std::string_view uri, const std::filesystem::path& directory,
                         const std::vector<std::filesystem::path>& package_paths);

}  // namespace tarsus
