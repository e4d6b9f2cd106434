// Hashes of numbers by their bits, for comparing runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tarsus {

inline constexpr std::uint64_t kHashStart = 0xcbf29ce484222325u;

/// 64-bit FNV-1a over the bytes of `values`, continuing `hash`.
template <class E>
std::uint64_t fnv1a(std::span<const E> values, std::uint64_t hash = kHashStart) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (std::size_t i = 0; i < values.size_bytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3u;
  return hash;
}

}  // namespace tarsus
