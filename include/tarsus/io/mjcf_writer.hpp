// ModelSpec back to MJCF text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tarsus/model/spec.hpp"

namespace tarsus {

/// The spec as one MJCF document that needs no other file but textures, height fields and missing meshes: meshes are
/// written inline, default classes are not used, every limit is said, inertias are explicit, angles are radians.
/// Numbers are the shortest that read back to the same bits, so reading the text gives the same dynamics: bodies,
/// joints, inertias, actuators, equalities, tendons, options. Bodies come out depth first. What MJCF has no word for
/// (velocity limits, mass of the world itself) is named in a comment at the top. Readers of MJCF, MuJoCo and ours,
/// refuse moving bodies without mass and inertias that break the triangle inequality, which URDF readers let pass: a
/// comment names those too.
/// @param folder of the file that it is for: textures are named from there; empty: by their full path
/// @param losses gets the lines of that comment
/// @throws ValueError if there are keyframes and bodies are not in depth-first order: their numbers would change places
std::string write_mjcf(const ModelSpec& spec, const std::filesystem::path& folder = {},
                       std::vector<std::string>* losses = nullptr);

/// Hash of all that a model moves by, as MJCF: whatever its name and wherever it was read from.
std::uint64_t model_hash(ModelSpec spec);

}  // namespace tarsus
