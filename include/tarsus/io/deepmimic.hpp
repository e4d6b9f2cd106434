// Motion clips in DeepMimic's text format and in the two formats derived from it (PyBullet's and motion_imitation's).
//
// The file is JSON with "Loop" and "Frames". Each frame is a row [duration, root position, root rotation, joints…]. The
// file does not name the columns. The row's width selects one of these layouts, or a mapping file gives the layout:
//
//   width  format       layout
//   44     humanoid3d   w x y z; y up, x forward; hinges about z           (DeepMimic)
//   84     dog3d        the same, 22 joints                               (DeepMimic)
//   20     quadruped12  x y z w; z up; four legs of hip, upper leg, knee  (PyBullet's Laikago)
//   19     quadruped12  the same without durations: one "FrameDuration", and "LoopMode" instead of "Loop"
//
// A row's duration is the time to the next row. The last row's duration is not used, as in DeepMimic.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// @param layout columns after the duration, when the width is not one of the above; quaternions w x y z, y up, x
///   forward
/// @throws InputError with file, line, column and element: not JSON, no frames, ragged rows, a width that is no known
///   layout, a duration that is not positive, a quaternion far from unit length, …
MotionClip read_deepmimic(const std::filesystem::path& file, std::span<const ClipChannel> layout = {});
/// The same from memory; `name` stands for the file in messages.
MotionClip parse_deepmimic(std::string text, const std::string& name, std::span<const ClipChannel> layout = {});

/// Channels of "humanoid3d", "dog3d" or "quadruped12", in the order of the columns after the duration.
/// @throws ValueError for another name
std::vector<ClipChannel> deepmimic_layout(const std::string& format);

}  // namespace tarsus
