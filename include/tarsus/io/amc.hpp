// Motion clips in Acclaim's format, which CMU's database uses: a skeleton (.asf) and its motion (.amc).
//
// Each bone with degrees of freedom becomes a rotation channel with the bone's name. The rotation is C M C⁻¹, where C
// is the bone's axes at rest and M the rotation by its angles in the file's order. The root also has "root.position". A
// bone's joint is at the bone's beginning, which is its parent's end. Neither file names the up direction: y up and z
// forward are assumed, as for BVH. Without ":SAMPLES-PER-SECOND" in the AMC file, CMU's 120 frames a second are
// assumed, with a note.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// Reads an AMC file and its skeleton. The skeleton is the .asf file of the same name, else of the name up to the last
/// '_' (11.asf for 11_01.amc), else the only .asf file in the folder.
/// @throws InputError with file and line: no skeleton, a syntax error, a frame that lacks a bone, …
MotionClip read_amc(const std::filesystem::path& file);
/// The same from memory; the names stand for the files in messages.
MotionClip parse_amc(std::string_view motion, const std::string& name, std::string_view skeleton,
                     const std::string& skeleton_name);

/// Whether a text begins like an .asf or .amc file: with ':', or with '#' comments and then ':' or a frame number.
bool looks_like_acclaim(std::string_view text);

}  // namespace tarsus
