// One function for model files of any format.
#pragma once

#include <filesystem>

#include "tarsus/io/read_options.hpp"
#include "tarsus/model/spec.hpp"

namespace tarsus {

/// Reads a model. The format is detected from the content, whatever the extension: <mujoco> is MJCF, <robot> is URDF.
/// @throws ValueError for URDF's options with MJCF
/// @throws InputError with every error found; other roots (SDF, Collada, an MJCF include) are named as not supported
ModelSpec read_model(const std::filesystem::path& file, const ReadOptions& options = {});

}  // namespace tarsus
