// Pictures as height fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tarsus {

struct GrayImage {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;  ///< [height * width] row by row from the top
};

/// A PNG picture's first channel (grey, or red), 16 bits cut to their upper 8, as MuJoCo takes heights from pictures.
/// @param name stands for the file in messages   @param most largest number of pixels
/// @throws InputError damaged, too large, or no PNG
GrayImage parse_png_gray(std::string_view bytes, const std::string& name, long long most);

}  // namespace tarsus
