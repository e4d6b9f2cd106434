// Philox4x32-10: random numbers that are a function of (key, counter) alone.  [Salmon et al. 2011]
//
// A world's numbers depend on its seed and on which of its episodes it is, and on nothing else: not on how many worlds
// there are, which thread has it, or what was drawn in earlier episodes.
#pragma once

#include <array>
#include <cstdint>

namespace tarsus {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// The numbers of one episode of one world.
class EpisodeRandom {
 public:
  EpisodeRandom(std::uint64_t seed, std::uint32_t episode)
      : key_{std::uint32_t(seed), std::uint32_t(seed >> 32)}, episode_(episode) {}

  /// In [0, 1), 53 bits.
  double uniform();

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t episode_, draw_ = 0;
};

}  // namespace tarsus
