// Reads numbers in attribute text by std::from_chars, independent of the locale.
//
// Accepted: 5  5.  .5  +1  -1e-3, with any blanks (space, tab, CR, LF) around and between.
// Refused, each with its own message: nan, inf (unless the caller allows it), hexadecimal, commas, trailing characters
// ("1.0f"), values outside the range of a double at either end (1e400, 1e-400), too few and too many numbers.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/math/vec.hpp"

namespace tarsus {

/// A value, or an error message such as "'abc' is not a number".
template <class T>
struct Parsed {
  T value{};
  std::string error;  ///< empty if the value is valid
  explicit operator bool() const { return error.empty(); }
};

enum class Infinities { refuse, allow };

/// The allowed number of numbers in a list.
struct Count {
  std::size_t least = 0, most = static_cast<std::size_t>(-1);
  static Count exactly(std::size_t n) { return {n, n}; }
  static Count between(std::size_t low, std::size_t high) { return {low, high}; }
  static Count any() { return {}; }
};

Parsed<double> parse_number(std::string_view text, Infinities infinities = Infinities::refuse);
/// An integer in the range of int; "3.0" is accepted, "3.5" is not.
Parsed<int> parse_integer(std::string_view text);
Parsed<std::vector<double>> parse_numbers(std::string_view text, Count count = Count::any(),
                                          Infinities infinities = Infinities::refuse);
Parsed<std::vector<int>> parse_integers(std::string_view text, Count count = Count::any());
Parsed<Vec3d> parse_vec3(std::string_view text);
/// "true" or "false" and nothing else.
Parsed<bool> parse_bool(std::string_view text);

/// `text` without blanks at both ends.
std::string_view trimmed(std::string_view text);
/// The words between blanks.
std::vector<std::string_view> split_blanks(std::string_view text);
void split_blanks(std::string_view text, std::vector<std::string_view>& words);
/// The text for messages: in single quotes, unprintable bytes as \xNN, cut after `most` bytes.
std::string quote(std::string_view text, std::size_t most = 40);

}  // namespace tarsus
