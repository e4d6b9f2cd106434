// Options of the model readers.
#pragma once

#include <filesystem>
#include <vector>

namespace tarsus {

struct ReadOptions {
  /// A missing mesh, height field or texture is a warning instead of an error, unless an inertia needs it.
  bool lenient = false;
  /// Inertias that no real body has (triangle inequality, not positive definite) are corrected and reported instead of
  /// being an error or a warning.
  bool fix_balance = false;
  /// MJCF: an <include> is an error. For untrusted text.
  bool disable_includes = false;
  /// URDF: the root link floats instead of being fixed to the world.
  bool floating_base = false;
  /// URDF: folders that are searched first for package://NAME/… (resolve_uri()).
  std::vector<std::filesystem::path> package_paths;
};

}  // namespace tarsus
