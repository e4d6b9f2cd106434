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

/// A PNG picture's first channel (grey or red). Of 16 bits the upper 8 are taken. MuJoCo takes heights from pictures in
/// this way.
/// @param name stands for the file in messages   @param most largest number of pixels
/// @throws InputError if it is damaged, too large or not a PNG
GrayImage parse_png_gray(std::string_view bytes, const std::string& name, long long most);

}  // namespace tarsus
