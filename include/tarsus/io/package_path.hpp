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
/// A package is looked for in `package_paths`, then in the folders of the environment's ROS_PACKAGE_PATH, then upward
/// from `directory`: a folder counts if it is named NAME, holds a folder NAME, or holds REST itself.
/// Other schemes (http://) are an error.
ResolvedFile resolve_uri(std::string_view uri, const std::filesystem::path& directory,
                         const std::vector<std::filesystem::path>& package_paths);

}  // namespace tarsus
