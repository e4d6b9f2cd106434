// Decodes arrays that JSON holds as base64, from the definition, without the encoder's tables.
#pragma once

#include <cstring>
#include <string>
#include <vector>

namespace tarsus::test {

template <class T>
std::vector<T> decode(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, word = 0;
  for (const char c : text) {
    if (c == '=') break;
    word = word << 6 | unsigned(digits.find(c));
    if ((bits += 6) >= 8) bits -= 8, bytes += char(word >> bits & 255);
  }
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace tarsus::test
