// Motion clips in Biovision's BVH format.
//
// Each joint with rotations becomes a rotation channel with the joint's name. Its angles, in degrees, are composed
// frame by frame in the file's order. Each joint with translations becomes a position channel "NAME.position";
// directions that the joint does not list keep its OFFSET. BVH does not name the up direction: y up and z forward are
// assumed, and a mapping may override them. A BVH clip does not loop.
#pragma once

#include <filesystem>
#include <string>

#include "tarsus/control/clip.hpp"

namespace tarsus {

/// The largest file that is read, and the largest count of numbers in its motion.
inline constexpr std::size_t kMaxBvhBytes = std::size_t{16} << 20;
inline constexpr std::size_t kMaxBvhNumbers = 2'000'000;

/// @throws InputError with file, line and column: a syntax error, a joint without CHANNELS, a count that differs from
///   the number of names, a row that is too short or too long, a number of rows other than that of "Frames:", …
MotionClip read_bvh(const std::filesystem::path& file);
/// The same from memory; `name` stands for the file in messages.
MotionClip parse_bvh(std::string_view text, const std::string& name);

}  // namespace tarsus
