// What a joint's type means for a spec: the joints that a chain is made of, and the position that a file draws.
#pragma once

#include "tarsus/model/spec.hpp"

namespace tarsus {

/// The joints that a chain is made of, named after it (base_x, base_y, base_angle), each with its numbers and its
/// anchor; a joint that is no chain alone. Stiffness, damping, armature, dry friction, ranges, limits are each part's.
/// @param errors what is wrong with a chain: axes, and ranges or references where its parts have different units
std::vector<JointSpec> joint_parts(const JointSpec& joint, Diagnostics& errors);

/// Every chain replaced by its parts. @throws InputError with all that is wrong
void split_chains(ModelSpec& spec);
/// The same, of a copy.
ModelSpec without_chains(ModelSpec spec);

/// Appends qpos of the pose that the file draws, of a joint that is no chain.
/// @param position, orientation of the body's frame against the joint's parent link, in the world for a free joint
void append_drawn_qpos(const JointSpec& joint, const Vec3d& position, const Quatd& orientation,
                       std::vector<double>& qpos);

}  // namespace tarsus
