// Philox4x32-10: a random number generator that is a pure function of (key, counter).  [Salmon et al. 2011]
//
// The numbers of a world depend only on its seed and on the index of its episode. They do not depend on the number of
// worlds, on the thread, or on the numbers drawn in earlier episodes.
#pragma once

#include <array>
#include <cstdint>

namespace tarsus {

/// Four random words for each counter and key.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// The random numbers of one episode of one world.
class EpisodeRandom {
 public:
  EpisodeRandom(std::uint64_t seed, std::uint32_t episode)
      : key_{std::uint32_t(seed), std::uint32_t(seed >> 32)}, episode_(episode) {}

  /// Uniform in [0, 1), 53 bits.
  double uniform();

 private:
  std::array<std::uint32_t, 2> key_;
  std::uint32_t episode_, draw_ = 0;
};

}  // namespace tarsus
