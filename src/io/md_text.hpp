// Lines of blank-separated words, with their places, for the readers of particle files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/io/text_number.hpp"

namespace tarsus {

inline constexpr std::size_t kMostBytes = std::size_t{2} << 30;  ///< largest particle file that is read [bytes]

class MdText {
 public:
  /// `text` must outlive this object. Lines end with LF or CRLF. A byte order mark is skipped. @throws InputError on a
  /// NUL byte
  MdText(std::string_view text, std::string file);

  /// Moves to the next line and splits it into words; false at the end. The text after the character `comment` (0: no
  /// comments) goes to comment().
  bool next_line(char comment);
  /// Like next_line(), but skips lines without words.
  bool next_words(char comment);

  const std::vector<std::string_view>& words() const { return words_; }
  std::string_view line() const { return line_; }
  std::string_view comment() const { return comment_; }
  int line_number() const { return number_; }

  Location place(std::size_t word) const;
  [[noreturn]] void fail(std::size_t word, const std::string& message) const;
  /// The word as a number; an error message names `what`.
  double number(std::size_t word, const char* what) const;
  int integer(std::size_t word, const char* what, int least, int most) const;
  /// Fails unless the line has `count` words: "an atoms row has 8 numbers: index mass …".
  void expect_words(std::size_t count, const char* what) const;

 private:
  std::string_view text_, line_, comment_;
  std::string file_;
  std::size_t at_ = 0;
  int number_ = 0;
  std::vector<std::string_view> words_;
};

/// A mass of 0 pins a particle, which no format stores; readers refuse it.  @throws ValueError naming the particle
void check_masses(const std::vector<double>& mass, std::string_view format);

}  // namespace tarsus
