#pragma once

#include <cstdint>

namespace tarsus {

/// Indices of two bodies, boxes or spheres; first < second.
struct BodyPair {
  std::uint32_t first, second;
  bool operator==(const BodyPair&) const = default;
};

}  // namespace tarsus
