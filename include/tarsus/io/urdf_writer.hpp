// Writes a ModelSpec as URDF text, as far as URDF can express it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tarsus/model/spec.hpp"

namespace tarsus {

/// The spec's tree as URDF below a link "world". Massless links separate the joints of a body with several joints. A
/// joint anchor off the body's origin moves the link's frame to the anchor. A reference position is subtracted in the
/// joint's origin. A comment names what is left out without effect on the dynamics: sites, actuators, sensors,
/// keyframes, lights, contact rules. What the options disable is left out.
/// @param folder folder of the file to be written, for the names of mesh files; empty: absolute names
/// @param losses gets the lines of that comment
/// @throws InputError naming everything that affects the motion without contacts and that URDF cannot express: springs,
///   armature, damping that is not linear, gravity compensation, mocap, limits of balls, margins of ranges, equalities
///   other than linear couplings of joints, tendons, a fluid, another gravity
std::string write_urdf(const ModelSpec& spec, const std::filesystem::path& folder = {},
                       std::vector<std::string>* losses = nullptr);

}  // namespace tarsus
