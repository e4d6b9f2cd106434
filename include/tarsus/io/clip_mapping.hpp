// Mapping files: how a clip made for one skeleton drives another. JSON; docs/clips.md explains it by examples.
//
//   {"format": "tarsus-clip-mapping", "version": 1, "name": "humanoid3d to the built-in humanoid",
//    "source": {"format": "humanoid3d", "up": "+y", "forward": "+x",       all optional
//               "layout": [{"name": "root.position", "kind": "position"}, …]},
//    "scale": 1.0, "offset": [0, 0, 0.02],
//    "joints": {"root":       {"from": "root", "position": "root.position"},
//               "chest":      {"from": ["lowerback", "Chest"], "pre": ROTATION, "post": ROTATION},
//               "left_knee":  {"from": "left_knee", "axis": [0, 1, 0], "sign": 1, "offset": 0}},
//    "ignore": ["left_wrist"]}
//
// or, instead of "joints", corresponding points of the two skeletons (retarget.hpp):
//
//    "points": {"left_knee": {"from": "LeftLeg", "body": "left_shin", "sure": 1}, …}
//
// ROTATION is {"quaternion": [w, x, y, z]}, {"axis": [x, y, z], "degrees": d}, or an array of these, composed in order.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// @throws InputError with file, line, column and JSON path
ClipMapping read_clip_mapping(const std::filesystem::path& file);
/// The same from memory; `name` stands for the file in messages.
ClipMapping parse_clip_mapping(std::string text, const std::string& name);

/// Folders that are searched for mappings: `mappings` beside the model file, and the folders that TARSUS_MAPPINGS
/// lists, separated by ':'.
std::vector<std::filesystem::path> mapping_folders(const Model& model);

/// The mapping to use when none is named. The first of these that applies:
/// 1. equal names, for a tarsus-clip whose channels have the names of at least half of the joints;
/// 2. the first file in `folders` (by name) that is for the clip's format and whose channels and joints all exist;
/// 3. map_skeleton(), for a clip with a skeleton (bind() refuses it if the skeletons do not seem to match);
/// 4. equal names, for any other clip.
/// Files that cannot be read are skipped with a warning in `skipped`.
/// @throws InputError when no mapping fits; the message lists what was tried, the clip's channels and the model's
///   joints
ClipMapping choose_clip_mapping(const Model& model, const MotionClip& clip,
                                const std::vector<std::filesystem::path>& folders, Diagnostics* skipped = nullptr);
inline ClipMapping choose_clip_mapping(const Model& model, const MotionClip& clip) {
  return choose_clip_mapping(model, clip, mapping_folders(model));
}

/// Name of an axis in files: "+x", "-z", …
std::string axis_name(const Vec3d& axis);

/// A mapping with points as a file; reading it back gives the same mapping.
std::string write_clip_mapping(const ClipMapping& mapping);

}  // namespace tarsus
