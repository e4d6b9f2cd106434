// Motion clips in DeepMimic's text format, and the two formats that grew out of it (PyBullet's and motion_imitation's).
//
// The file is JSON: "Loop" and "Frames", each frame a row [duration, root position, root rotation, joints…]. Nothing in
// it names the columns, so a row's width picks one of the layouts known here, or a mapping file brings its own:
//
//   width  format       layout
//   44     humanoid3d   w x y z; y up, x forward; hinges about z           (DeepMimic)
//   84     dog3d        the same, 22 joints                               (DeepMimic)
//   20     quadruped12  x y z w; z up; four legs of hip, upper leg, knee  (PyBullet's Laikago)
//   19     quadruped12  the same without durations: "FrameDuration" holds for all, "LoopMode" for "Loop"
//
// A row's duration is the time to the next row; the last row's has nothing to last for and is not used, as in
// DeepMimic.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// @param layout columns after the duration, when the width is not one of those above; quaternions w x y z, y up, x
/// forward
/// @throws InputError with file, line, column and element: not JSON, no frames, ragged rows, a width that is no known
///   layout, a duration that is not positive, a quaternion far from unit length, …
MotionClip read_deepmimic(const std::filesystem::path& file, std::span<const ClipChannel> layout = {});
/// The same from memory; `name` stands for the file in messages.
MotionClip parse_deepmimic(std::string text, const std::string& name, std::span<const ClipChannel> layout = {});

/// Names of the channels of "humanoid3d", "dog3d" or "quadruped12", columns counted from the first after the duration.
/// @throws ValueError for another name
std::vector<ClipChannel> deepmimic_layout(const std::string& format);

}  // namespace tarsus
