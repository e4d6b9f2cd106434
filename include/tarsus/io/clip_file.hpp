// Clip files of any format, and Tarsus' own format:
//
//   {"format": "tarsus-clip", "version": 1, "name": "walk", "loop": true,
//    "up": "+z", "forward": "+x", "frame_time": 0.0333,          (or "times": [0, 0.03, …])
//    "channels": [{"name": "root.position", "kind": "position"}, {"name": "root", "kind": "rotation"},
//                 {"name": "left_knee", "kind": "angle"}, …],    (an angle or translation may have an "axis")
//    "frames": [[…], …]}
//
// Rotations are quaternions w x y z. Optional: "cycle_position", "cycle_heading" (true), "comment", "source_format" (of
// the file that has these channels, for its mappings). docs/clips.md.
#pragma once

#include <filesystem>
#include <string>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// Reads a clip of any of these formats: BVH, Acclaim (.amc beside its .asf), AMASS (.npz), MimicKit (.pkl), DeepMimic,
/// tarsus-clip.
/// @param mapping its layout, if it has one, names the columns of a DeepMimic file
/// @throws InputError
MotionClip read_clip(const std::filesystem::path& file, const ClipMapping* mapping = nullptr);
/// The same from memory; `name` stands for the file in messages.
MotionClip parse_clip(std::string text, const std::string& name, const ClipMapping* mapping = nullptr);

/// A clip as tarsus-clip text; reading it back gives the same numbers.
/// @throws InputError if it could not be read back: for a text beyond the reader's limits, or two channels of one name
std::string write_clip(const MotionClip& clip);

}  // namespace tarsus
