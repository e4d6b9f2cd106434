// Asserting that a reader refuses a text: what it says, at which line, and that it takes under a second.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tarsus/base/error.hpp"

namespace tarsus {

/// Some error of `read()` has `words` in its message and stands at `line` (0: any).
template <class Read>
void expect_refused(Read&& read, int line, const std::string& words, const std::string& what) {
  const auto begin = std::chrono::steady_clock::now();
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
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_LT(seconds, 1.0) << what;
}

}  // namespace tarsus
