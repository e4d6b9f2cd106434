// Writes a ModelSpec as MJCF text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tarsus/model/spec.hpp"

namespace tarsus {

/// The spec as one MJCF document that needs no other files than textures, height fields and missing meshes. Meshes are
/// inline, default classes are not used, every limit and inertia is explicit, angles are in radians. Numbers are the
/// shortest that read back to the same bits, so reading the text gives the same dynamics: bodies, joints, inertias,
/// actuators, equalities, tendons, options. Bodies are written depth first.
///
/// A comment at the top names what MJCF cannot express (velocity limits, mass of the world itself). It also names
/// moving bodies without mass and inertias that break the triangle inequality: URDF readers accept them, MJCF readers
/// (MuJoCo's and this library's) refuse them.
/// @param folder folder of the output file: paths of textures are relative to it; empty: full paths
/// @param losses gets the lines of that comment
/// @throws ValueError if there are keyframes and the bodies are not in depth-first order: qpos would be permuted
std::string write_mjcf(const ModelSpec& spec, const std::filesystem::path& folder = {},
                       std::vector<std::string>* losses = nullptr);

/// Hash of the MJCF text of everything that affects a model's motion. It does not depend on the model's name and path.
std::uint64_t model_hash(ModelSpec spec);

}  // namespace tarsus
