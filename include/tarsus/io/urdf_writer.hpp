// Writes a ModelSpec as URDF text, as far as URDF can express it.
#pragma once

#include <string>
#include <vector>

#include "tarsus/model/spec.hpp"

namespace tarsus {

/// The spec's tree as URDF below a link "world". Massless links separate the joints of a body with several joints. A
/// joint anchor off the body's origin moves the link's frame to the anchor. A reference position is subtracted in the
/// joint's origin. A comment names what is left out without effect on the dynamics: sites, actuators, sensors,
/// keyframes, lights, contact rules.
/// @param losses gets the lines of that comment
/// @throws InputError naming everything that affects the motion and that URDF cannot express: springs, armature,
///   gravity compensation, mocap, limits of balls, equalities other than linear couplings of joints, tendons, another
///   gravity
std::string write_urdf(const ModelSpec& spec, std::vector<std::string>* losses = nullptr);

}  // namespace tarsus
