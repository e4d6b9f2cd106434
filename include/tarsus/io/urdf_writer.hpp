// ModelSpec back to URDF text, as far as URDF goes.
#pragma once

#include <string>
#include <vector>

#include "tarsus/model/spec.hpp"

namespace tarsus {

/// The spec's tree as URDF below a link "world". A body with several joints gets massless links between them, an anchor
/// off the body's origin moves the link's frame there, a reference position turns the joint's origin back by it. Of no
/// effect on dynamics and left out, named in a comment: sites, actuators, sensors, keyframes, lights, contact rules.
/// @param losses gets the lines of that comment
/// @throws InputError naming everything that matters to the motion and that URDF cannot say: springs, armature, gravity
///         compensation, mocap, limits of balls, equalities other than linear couplings of joints, tendons, another
///         gravity
std::string write_urdf(const ModelSpec& spec, std::vector<std::string>* losses = nullptr);

}  // namespace tarsus
