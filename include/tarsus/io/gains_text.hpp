// Drive gains from the command line or from a file.
#pragma once

#include <string>

#include "tarsus/control/drive.hpp"

namespace tarsus {

/// "KP,KD" or "KP,KD,ROOT_KP,ROOT_KD" for all joints, or the path of a JSON file
///   {"default": [75000, 4000], "root": [20000, 2000], "left_knee": [500, 50], …}
/// whose keys are joints, "default" (for joints not named) and "root" (for a free joint).
/// @throws InputError naming the file and what was expected  @throws ValueError for invalid gains
Drives read_gains(const Model& model, const std::string& text_or_file);

}  // namespace tarsus
