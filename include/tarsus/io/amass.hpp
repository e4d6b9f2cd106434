// Motion clips of SMPL bodies in AMASS's format. The file is an .npz with
// - "trans" [n, 3] in metres, z up;
// - "poses" [n, 3 k], or "root_orient" [n, 3] and "pose_body" [n, 63]: each joint's rotation vector in its parent's
//   axes;
// - "mocap_framerate" or "mocap_frame_rate".
//
// The first 22 joints are used; fingers, jaw and eyes are not. The body's shape ("betas") needs a model that is not in
// the file. The skeleton therefore has the lengths of an average adult, to the centimetre. Angles are exact, positions
// of hands and feet are not. A retargeted motion has the target's lengths anyway.
#pragma once

#include "tarsus/control/clip.hpp"
#include "tarsus/io/npz.hpp"

namespace tarsus {

/// @throws InputError naming the file and the array: none of the names above, another shape, no rate, …
MotionClip read_amass(NpzReader& file, const std::string& name);

}  // namespace tarsus
