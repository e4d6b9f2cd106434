// A global C++ locale that writes 1500 as 1.500, as std::locale("de_DE.UTF-8") does, whatever locales are installed.
#pragma once

#include <locale>
#include <string>

namespace tarsus::test {

/// While it lives, streams that are made have this locale.
class GroupedDigits {
 public:
  GroupedDigits() : before_(std::locale::global(std::locale(std::locale::classic(), new Grouping))) {}
  ~GroupedDigits() { std::locale::global(before_); }
  GroupedDigits(const GroupedDigits&) = delete;
  GroupedDigits& operator=(const GroupedDigits&) = delete;

 private:
  struct Grouping : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::locale before_;
};

}  // namespace tarsus::test
