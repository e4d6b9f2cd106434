#include "io/md_text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tarsus {

MdText::MdText(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
  if (text_.starts_with("\xEF\xBB\xBF")) text_.remove_prefix(3);
  const std::size_t zero = text_.find('\0');
  if (zero == std::string_view::npos) return;
  int line = 1;
  for (std::size_t i = 0; i < zero; ++i) line += text_[i] == '\n';
  const std::size_t begin = text_.rfind('\n', zero);
  const int column = static_cast<int>(begin == std::string_view::npos ? zero + 1 : zero - begin);
  throw InputError({file_, line, column, ""}, "a NUL byte: this is not a text file");
}

bool MdText::next_line(char comment) {
  words_.clear();
  comment_ = {};
  if (at_ >= text_.size()) return false;
  const std::size_t end = text_.find('\n', at_);
  line_ = text_.substr(at_, end == std::string_view::npos ? end : end - at_);
  at_ = end == std::string_view::npos ? text_.size() : end + 1;
  ++number_;
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  if (comment != 0) {
    if (const std::size_t from = line_.find(comment); from != std::string_view::npos) {
      comment_ = line_.substr(from + 1);
      line_ = line_.substr(0, from);
    }
  }
  words_ = split_blanks(line_);
  return true;
}

bool MdText::next_words(char comment) {
  while (next_line(comment)) {
    if (!words_.empty()) return true;
  }
  return false;
}

Location MdText::place(std::size_t word) const {
  const int column = word < words_.size() ? static_cast<int>(words_[word].data() - line_.data()) + 1
                                          : static_cast<int>(line_.size()) + 1;
  return {file_, number_, column, ""};
}

void MdText::fail(std::size_t word, const std::string& message) const { throw InputError(place(word), message); }

double MdText::number(std::size_t word, const char* what) const {
  if (word >= words_.size()) fail(word, fmt::format("{} is missing", what));
  const Parsed<double> parsed = parse_number(words_[word]);
  if (!parsed) fail(word, fmt::format("{}: {}", what, parsed.error));
  return parsed.value;
}

int MdText::integer(std::size_t word, const char* what, int least, int most) const {
  if (word >= words_.size()) fail(word, fmt::format("{} is missing", what));
  const Parsed<int> parsed = parse_integer(words_[word]);
  if (!parsed) fail(word, fmt::format("{}: {}", what, parsed.error));
  if (parsed.value < least || parsed.value > most) {
    fail(word, fmt::format("{} is {}, expected {} to {}", what, parsed.value, least, most));
  }
  return parsed.value;
}

void MdText::expect_words(std::size_t count, const char* what) const {
  if (words_.size() == count) return;
  fail(words_.size() < count ? words_.size() : count,
       fmt::format("expected {}, {} words in all, got {}", what, count, words_.size()));
}

void check_masses(const std::vector<double>& mass, std::string_view format) {
  const auto massless = std::find(mass.begin(), mass.end(), 0.0);
  if (massless == mass.end()) return;
  throw ValueError(fmt::format("mass of particle {}", massless - mass.begin()), "0",
                   fmt::format("a positive number: the {} format has no pinned particles", format));
}

}  // namespace tarsus
