#pragma once
/// Files that are written whole: the file of an earlier run stays as it is until the new one is complete.
#include <filesystem>
#include <fstream>
#include <string_view>

namespace tarsus {

/// Writes `<file>.partial`, which takes the place of the file in finish() and is removed without it. The target of a
/// symbolic link is replaced, not the link. What is no ordinary file, such as a pipe, is written itself.
class OutputFile {
 public:
  /// @throws Error naming the file and the reason
  explicit OutputFile(const std::filesystem::path& file);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Binary. Errors of writing set its state; finish() reports them.
  std::ofstream& stream() { return out_; }
  /// @throws Error naming the file and the reason if anything could not be written
  void check();
  /// @throws Error as check(); the file is then as it was
  void finish();

 private:
  std::filesystem::path name_, file_, written_;  ///< as given; what is replaced; what is open
  std::ofstream out_;
};

/// Checks that a file can be written, before the work whose result it stores. Leaves the file as it is.
/// @throws Error naming the file and the reason
inline void check_output(const std::filesystem::path& file) { OutputFile{file}; }

/// @throws Error naming the file and the reason; the file is then as it was
void write_file(const std::filesystem::path& file, std::string_view text);

}  // namespace tarsus
