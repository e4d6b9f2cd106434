#include "tarsus/learn/random.hpp"

namespace tarsus {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t(0xD2511F53u) * c[0], b = std::uint64_t(0xCD9E8D57u) * c[2];
    c = {std::uint32_t(b >> 32) ^ c[1] ^ key[0], std::uint32_t(b), std::uint32_t(a >> 32) ^ c[3] ^ key[1],
         std::uint32_t(a)};
    key[0] += 0x9E3779B9u, key[1] += 0xBB67AE85u;
  }
  return c;
}

double EpisodeRandom::uniform() {
  const auto bits = philox({draw_++, episode_, 0, 0}, key_);
  return double((std::uint64_t(bits[0]) << 32 | bits[1]) >> 11) * 0x1p-53;
}

}  // namespace tarsus
