#include "tarsus/io/text_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace tarsus {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::size_t kMostNumbers = 5'000'000;  // 40 MB; a height field of 2,000 by 2,000 is less

// A lambda, so that it is inlined into searches.
constexpr auto kIsBlank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The error message for a token. Precondition: it has no blanks and is not empty.
std::string number_error(std::string_view token) {
  if (token.find(',') != std::string_view::npos) {
    return fmt::format("{} is not a number: write numbers with a point and separate them by blanks, not commas",
                       quote(token));
  }
  if (token.find_first_of("xX") != std::string_view::npos) {
    return fmt::format("{} is not a decimal number (hexadecimal is not accepted)", quote(token));
  }
  return fmt::format("{} is not a number", quote(token));
}

Parsed<double> parse_token(std::string_view token, Infinities infinities) {
  std::string_view digits = token;
  if (digits.size() > 1 && digits[0] == '+' &&
      (is_digit(digits[1]) || digits[1] == '.' || digits[1] == 'i' || digits[1] == 'I')) {
    digits.remove_prefix(1);
  }
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, value);
  if (status == std::errc::result_out_of_range && stop == end) {
    return {0, fmt::format("{} is outside the range of a double (2e-308 to 1.8e308)", quote(token))};
  }
  if (status != std::errc() || stop != end) return {0, number_error(token)};
  if (std::isnan(value)) return {0, fmt::format("{} is not a finite number", quote(token))};
  if (std::isinf(value) && infinities == Infinities::refuse) {
    return {0, fmt::format("{} is not a finite number", quote(token))};
  }
  return {value, {}};
}

Parsed<int> integer_of(double value, std::string_view token) {
  if (value != std::floor(value)) return {0, fmt::format("{} is not a whole number", quote(token))};
  if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max()) {
    return {0, fmt::format("{} does not fit a whole number of 32 bits", quote(token))};
  }
  return {static_cast<int>(value), {}};
}

std::string count_error(std::string_view text, std::size_t got, Count count) {
  const std::string expected = count.least == count.most    ? fmt::format("{}", count.least)
                               : count.most == Count{}.most ? fmt::format("at least {}", count.least)
                                                            : fmt::format("{} to {}", count.least, count.most);
  return fmt::format("{} has {} number{}, expected {}", quote(text), got, got == 1 ? "" : "s", expected);
}

/// The next word from `at` on; empty at the end. Moves `at` behind the word.
std::string_view next_piece(std::string_view text, std::size_t& at) {
  const auto begin = std::find_if_not(text.begin() + std::ptrdiff_t(at), text.end(), kIsBlank);
  const auto end = std::find_if(begin, text.end(), kIsBlank);
  at = std::size_t(end - text.begin());
  return {begin, end};
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::vector<std::string_view> split_blanks(std::string_view text) {
  std::vector<std::string_view> words;
  split_blanks(text, words);
  return words;
}

void split_blanks(std::string_view text, std::vector<std::string_view>& words) {
  words.clear();
  std::size_t at = 0;
  for (std::string_view piece = next_piece(text, at); !piece.empty(); piece = next_piece(text, at))
    words.push_back(piece);
}

std::string quote(std::string_view text, std::size_t most) {
  std::string out = "'";
  std::size_t cut = std::min(text.size(), most);
  while (cut > 0 && cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80)
    --cut;  // do not cut a UTF-8 sequence
  for (const char c : text.substr(0, cut)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + (cut < text.size() ? "…'" : "'");
}

Parsed<double> parse_number(std::string_view text, Infinities infinities) {
  const std::string_view token = trimmed(text);
  if (token.empty()) return {0, "is empty, expected a number"};
  if (token.find_first_of(kBlanks) != std::string_view::npos) {
    return {0, fmt::format("{} is not one number", quote(token))};
  }
  return parse_token(token, infinities);
}

Parsed<int> parse_integer(std::string_view text) {
  const Parsed<double> number = parse_number(text);
  if (!number) return {0, number.error};
  return integer_of(number.value, trimmed(text));
}

Parsed<std::vector<double>> parse_numbers(std::string_view text, Count count, Infinities infinities) {
  Parsed<std::vector<double>> out;
  std::size_t at = 0;
  for (std::string_view piece = next_piece(text, at); !piece.empty(); piece = next_piece(text, at)) {
    const Parsed<double> number = parse_token(piece, infinities);
    if (!number) return {{}, number.error};
    out.value.push_back(number.value);
    if (out.value.size() > kMostNumbers) return {{}, "holds too many numbers"};
  }
  const std::size_t got = out.value.size();
  if (got < count.least || got > count.most) return {{}, count_error(text, got, count)};
  return out;
}

Parsed<std::vector<int>> parse_integers(std::string_view text, Count count) {
  const Parsed<std::vector<double>> numbers = parse_numbers(text, count);
  if (!numbers) return {{}, numbers.error};
  Parsed<std::vector<int>> out;
  out.value.reserve(numbers.value.size());
  for (const double number : numbers.value) {
    const Parsed<int> whole = integer_of(number, fmt::format("{}", number));
    if (!whole) return {{}, whole.error};
    out.value.push_back(whole.value);
  }
  return out;
}

Parsed<Vec3d> parse_vec3(std::string_view text) {
  const Parsed<std::vector<double>> numbers = parse_numbers(text, Count::exactly(3));
  if (!numbers) return {{}, numbers.error};
  return {{numbers.value[0], numbers.value[1], numbers.value[2]}, {}};
}

Parsed<bool> parse_bool(std::string_view text) {
  if (text == "true") return {true, {}};
  if (text == "false") return {false, {}};
  return {false, fmt::format("{} is neither 'true' nor 'false'", quote(text))};
}

}  // namespace tarsus
