// The common case of parse_number() for files of millions of numbers: no message is made ready.
#pragma once

#include <charconv>
#include <cmath>
#include <string_view>

namespace tarsus {

/// False if the token is anything but a plain finite number; parse_number() then says what is wrong with it, or takes
/// what it takes beyond that (a leading '+').
inline bool quick_number(std::string_view token, double& value) {
  const auto [stop, status] = std::from_chars(token.data(), token.data() + token.size(), value);
  return status == std::errc() && stop == token.data() + token.size() && std::isfinite(value);
}

}  // namespace tarsus
