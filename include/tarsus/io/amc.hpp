// Motion clips in Acclaim's format: a skeleton (.asf) and its motion (.amc), as CMU's database has them.
//
// Each bone with degrees of freedom becomes a rotation channel of its own name, C M C⁻¹ with C the bone's axes at rest
// and M its angles in the file's order; the root also has "root.position". A bone's joint is where the bone begins,
// which is where its parent ends. Neither file says what is up: y up and z forward are assumed, as for BVH. An AMC file
// does not say its rate either, unless by ":SAMPLES-PER-SECOND": CMU's 120 a second are assumed, with a note.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// Reads an AMC file and its skeleton: the .asf file of the same name, of the part of its name before the last '_'
/// (11_01.amc: 11.asf), or the only one beside it.
/// @throws InputError with file and line: no skeleton, not the grammar, a frame without one of the bones, …
MotionClip read_amc(const std::filesystem::path& file);
/// The same from memory; the names stand for the files in messages.
MotionClip parse_amc(std::string_view motion, const std::string& name, std::string_view skeleton,
                     const std::string& skeleton_name);

/// Whether a text begins as one of the two does: '#' or ':' is the first thing in it.
bool looks_like_acclaim(std::string_view text);

}  // namespace tarsus
