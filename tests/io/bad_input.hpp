// Asserts that a reader refuses a text: the message, the line, and that it takes under a second of processor time
// (which other work on the machine does not lengthen; sanitizers do, by up to a factor of ten).
#pragma once

#include <gtest/gtest.h>

#include <ctime>
#include <string>

#include "tarsus/base/error.hpp"

namespace tarsus {

/// Some error of `read()` contains `words` in its message and has the line number `line` (0: any).
template <class Read>
void expect_refused(Read&& read, int line, const std::string& words, const std::string& what) {
#ifdef TARSUS_SANITIZED
  constexpr double kMostSeconds = 10;
#else
  constexpr double kMostSeconds = 1;
#endif
  const std::clock_t begin = std::clock();
  try {
    read();
    ADD_FAILURE() << what << ": was accepted";
  } catch (const InputError& error) {
    bool found = false;
    for (const Diagnostic& d : error.diagnostics()) {
      if (d.severity != Severity::error || d.message.find(words) == std::string::npos) continue;
      EXPECT_FALSE(d.where.file.empty()) << what << ": " << d.text();
      found = found || line == 0 || d.where.line == line;
    }
    EXPECT_TRUE(found) << what << ": expected \"" << words << "\" at line " << line << ", got\n" << error.what();
  }
  EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, kMostSeconds) << what;
}

}  // namespace tarsus
