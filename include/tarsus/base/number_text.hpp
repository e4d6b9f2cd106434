// Numbers in messages: the shortest text that reads back as the same number.
#pragma once

#include <charconv>
#include <cmath>
#include <string>

namespace tarsus {

/// "0.001", "1e+300", "nan" of either sign, "-inf".
inline std::string number_text(double x) {
  if (std::isnan(x)) return "nan";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

}  // namespace tarsus
