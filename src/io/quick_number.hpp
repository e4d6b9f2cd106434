// The common case of parse_number(), without an error message, for files of millions of numbers.
#pragma once

#include <charconv>
#include <cmath>
#include <string_view>

namespace tarsus {

/// False if the token is not a plain finite number. parse_number() then accepts it (as with a leading '+') or says what
/// is wrong.
inline bool quick_number(std::string_view token, double& value) {
  const auto [stop, status] = std::from_chars(token.data(), token.data() + token.size(), value);
  return status == std::errc() && stop == token.data() + token.size() && std::isfinite(value);
}

/// Largest angle of a clip [rad | degrees]. Beyond it a double no longer resolves a small part of a turn.
constexpr double kMostAngle = 1e9;

}  // namespace tarsus
