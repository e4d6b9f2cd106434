// Decomposes composite joints of a spec into basic ones, and gives the initial position of each joint.
#pragma once

#include "tarsus/model/spec.hpp"

namespace tarsus {

/// The basic joints of a chain, named after it (base_x, base_y, base_angle), each with its own numbers and anchor. A
/// basic joint is returned alone. Stiffness, damping, armature, dry friction, ranges and limits apply to each part.
/// @param errors receives errors of a chain: axes, and ranges or references if its parts have different units
std::vector<JointSpec> joint_parts(const JointSpec& joint, Diagnostics& errors);

/// Replaces every chain by its parts. @throws InputError with all errors found
void split_chains(ModelSpec& spec);
/// The same on a copy.
ModelSpec without_chains(ModelSpec spec);

/// Appends the qpos of a basic joint in the pose that the file defines.
/// @param position, orientation of the body's frame relative to the joint's parent link; in the world for a free joint
void append_drawn_qpos(const JointSpec& joint, const Vec3d& position, const Quatd& orientation,
                       std::vector<double>& qpos);

}  // namespace tarsus
