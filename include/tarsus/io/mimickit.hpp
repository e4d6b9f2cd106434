// Motion clips of MimicKit: a pickled dict of "frames" [n][6 + joints], "fps" and "loop_mode" (0 holds its ends, 1
// loops). A frame has the root's position, its rotation vector, and each joint's numbers in the order of the
// character's bodies: an angle for a single hinge, a rotation vector for three hinges at one point. Lengths are in
// metres, z is up.
//
// A frame of 34 numbers belongs to MimicKit's humanoid and gives a clip of format "mimickit_humanoid" with its
// skeleton. Any other width gives "mimickit" with the angles "joint.1", "joint.2", …. They fit a model with a free root
// and the same number of single joints, one a body (G1, Go2), in the model's order. No code in the pickle is executed.
#pragma once

#include <string>
#include <string_view>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// @param name stands for the file in messages   @throws InputError
MotionClip parse_mimickit(std::string_view bytes, const std::string& name);

/// Maps the channels to the joints in the model's order. The mapping is empty if the model has another number of
/// joints, or several joints at one body.
ClipMapping mimickit_mapping(const Model& model, const MotionClip& clip);

}  // namespace tarsus
