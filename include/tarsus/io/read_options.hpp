// What a caller may ask of the model readers.
#pragma once

#include <filesystem>
#include <vector>

namespace tarsus {

struct ReadOptions {
  /// A missing mesh (or height field, or texture) is a warning where no inertia needs it, not an error.
  bool lenient = false;
  /// Inertias that no real body can have (triangle inequality, not positive definite) are mended, and each is reported,
  /// instead of being an error or a warning.
  bool fix_balance = false;
  /// MJCF: an <include> is an error. For text from a stranger.
  bool disable_includes = false;
  /// URDF: the root link floats instead of being fixed to the world.
  bool floating_base = false;
  /// URDF: folders searched for package://NAME/…: each either holds a folder NAME or is that package itself. Then come
  /// the folders of ROS_PACKAGE_PATH, then every folder above the file.
  std::vector<std::filesystem::path> package_paths;
};

}  // namespace tarsus
