// Motion clips of SMPL bodies as AMASS has them: an .npz with "trans" [n, 3] in metres, z up, and either "poses"
// [n, 3 k] or "root_orient" [n, 3] and "pose_body" [n, 63], rotation vectors of each joint in its parent's axes, with
// "mocap_framerate" or "mocap_frame_rate".
//
// The first 22 joints are used; fingers, jaw and eyes are not. The body's shape ("betas") needs a model that is not in
// the file, so that the skeleton's lengths are those of an average adult, to the centimetre: angles are exact, the
// places of hands and feet are not, and a retargeted motion has the target's lengths anyway.
#pragma once

#include "tarsus/control/clip.hpp"
#include "tarsus/io/npz.hpp"

namespace tarsus {

/// @throws InputError naming the file and the array: none of the names above, another shape, no rate, …
MotionClip read_amass(NpzReader& file, const std::string& name);

}  // namespace tarsus
