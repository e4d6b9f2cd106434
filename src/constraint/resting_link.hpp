// What the step's length and the loops are compared with to find what hangs (hanging_rest.inl).
#pragma once

#include <cstdint>

namespace tarsus {

/// Results for one link. T: R of a single world, or a pack of worlds.
template <class T>
struct RestingLink {
  T swings;   ///< 1: the joint bears what hangs; else 0
  T fastest;  ///< of roots: a lower bound of the largest ω in the tree under gravity along any axis [rad/s]
};
inline constexpr int kRestingNumbers = 2;  ///< of a link, in the order above

/// Bits of what is alike in all worlds: joints that turn (all but slides, and free ones that carry others), and roots
/// of trees in flight, which no loop holds.
inline constexpr std::uint8_t kJointTurns = 1, kTreeFlies = 2;

}  // namespace tarsus
