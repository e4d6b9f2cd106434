// Motion clips in Biovision's BVH format.
//
// Each joint that turns becomes a rotation channel of its own name: its angles, in degrees and in the order in which
// the file lists them, are composed frame by frame. Each joint that moves becomes a position channel "NAME.position";
// directions that it does not list keep its OFFSET. BVH does not say what is up: y up and z forward are assumed, and a
// mapping may say otherwise. A BVH clip does not loop.
#pragma once

#include <filesystem>
#include <string>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// Largest file read, and most numbers in its motion: 16 MiB and 2 million.
inline constexpr std::size_t kMaxBvhBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxBvhNumbers = 2'000'000;

/// @throws InputError with file, line and column: not the grammar, a joint without CHANNELS, a count that is not that
/// of
///   the names, rows that are too short or too long, another number of rows than "Frames:" says, …
MotionClip read_bvh(const std::filesystem::path& file);
/// The same from memory; `name` stands for the file in messages.
MotionClip parse_bvh(std::string_view text, const std::string& name);

}  // namespace tarsus
