// Motion clips of MimicKit: a pickled dict of "frames" [n][6 + joints], "fps" and "loop_mode" (0 holds its ends, 1
// loops). A frame is the root's position, its rotation vector, and each joint's numbers in the order of the character's
// bodies: an angle for one hinge, a rotation vector for three at one place; metres, z up.
//
// A frame of 34 numbers is MimicKit's humanoid and gives a clip of format "mimickit_humanoid" with its skeleton. Any
// other width gives "mimickit": angles "joint.1", "joint.2", …, which fit a model with a free root and so many single
// joints, one a body (G1, Go2), in its own order. Nothing in the pickle is run.
#pragma once

#include <string>
#include <string_view>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// @param name stands for the file in messages   @throws InputError
MotionClip parse_mimickit(std::string_view bytes, const std::string& name);

/// Joint by joint in the model's order; without joints if the model's are not so many, or several at one body.
ClipMapping mimickit_mapping(const Model& model, const MotionClip& clip);

}  // namespace tarsus
