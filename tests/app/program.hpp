// Runs the command line as a user does and returns its exit status and output.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <string>

namespace tarsus::test {

inline const std::string kPrograms = std::string(TARSUS_BINARY_DIR) + "/bin/", kProgram = kPrograms + "tarsus";

#define TARSUS_NEEDS_PROGRAM() \
  if (!std::filesystem::exists(tarsus::test::kProgram)) GTEST_SKIP() << "no program " << tarsus::test::kProgram

struct Outcome {
  int code;
  std::string text;  ///< stdout and stderr
};

/// Runs a command. Arguments "-kkt ..." run tarsus-kkt.
/// @param redirect the shell's redirection of the output
/// @param folder the working folder: the repository's root, as for the documentation's commands
inline Outcome tarsus_command(const std::string& arguments, const std::string& redirect = "2>&1",
                              const std::string& folder = TARSUS_SOURCE_DIR) {
  const std::string line =
      "cd '" + folder + "' && '" + kPrograms + "'tarsus" + (arguments.starts_with("-kkt ") ? "" : " ") + arguments;
  FILE* const pipe = popen((line + " " + redirect).c_str(), "r");
  Outcome run{-1, ""};
  char buffer[4096];
  while (const std::size_t n = fread(buffer, 1, sizeof buffer, pipe)) run.text.append(buffer, n);
  const int status = pclose(pipe);
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

}  // namespace tarsus::test
