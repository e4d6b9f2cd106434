// Arrays of numbers as base64 [RFC 4648, section 4], little-endian as in memory.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

namespace tarsus {

inline std::string base64_bytes(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (i + k < bytes.size() ? std::uint32_t(bytes[i + k]) : 0);
    for (std::size_t k = 0; k < 4; ++k) out += i + k <= bytes.size() ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

template <class T>
std::string base64(std::type_identity_t<std::span<const T>> values) {
  static_assert(std::endian::native == std::endian::little);
  return base64_bytes(std::as_bytes(values));
}

}  // namespace tarsus
