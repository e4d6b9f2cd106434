// Signatures and field access of the zip container, for npz_writer.cpp and npz_reader.cpp.  [PKWARE APPNOTE 6.3.10,
// section 4.3]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tarsus::zip {

inline constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                               kLocator64 = 0x07064b50;
inline constexpr std::size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56, kLocator64Size = 20;
inline constexpr std::uint32_t kMax32 = 0xffffffff;
inline constexpr std::uint16_t kMax16 = 0xffff, kExtra64 = 0x0001;
inline constexpr int kStored = 0, kDeflated = 8;

/// The little-endian number in `bytes` bytes from `at` on. Precondition: `data` has them.
inline std::uint64_t get(std::string_view data, std::size_t at, int bytes) {
  std::uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(data[at + std::size_t(i)]);
  return value;
}
inline void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += char(value >> (8 * i) & 0xff);
}

}  // namespace tarsus::zip
