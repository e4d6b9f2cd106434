#include "tarsus/io/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tarsus/base/error.hpp"

namespace tarsus {

namespace {
[[noreturn]] void fail(const std::filesystem::path& file, const std::string& reason) {
  throw Error(fmt::format("{}: cannot be written: {}", file.string(), reason));
}
}  // namespace

OutputFile::OutputFile(const std::filesystem::path& file) : name_(file), file_(file) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  for (int links = 0; links < 40 && fs::is_symlink(fs::symlink_status(file_, ignored)); ++links)
    file_ = file_.parent_path() / fs::read_symlink(file_, ignored);
  written_ = file_;
  const fs::file_status status = fs::status(file_, ignored);
  if (fs::exists(status) && ::access(file_.c_str(), W_OK) != 0) fail(name_, std::strerror(errno));
  if (!fs::exists(status) || fs::is_regular_file(status)) written_ += ".partial";
  out_.open(written_, std::ios::binary);
  if (!out_) fail(name_, std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (!out_.is_open() || written_ == file_) return;
  out_.close();
  std::error_code ignored;
  std::filesystem::remove(written_, ignored);
}

void OutputFile::check() {
  if (!out_) fail(name_, std::strerror(errno));
}

void OutputFile::finish() {
  out_.flush();
  check();  // the destructor removes the partial file
  out_.close();
  if (written_ == file_) return;
  std::error_code error, ignored;
  // On the disk before it takes the old file's place, or a power cut could leave neither.
  if (const int written = ::open(written_.c_str(), O_RDONLY | O_CLOEXEC); written >= 0) {
    if (::fsync(written) != 0) error.assign(errno, std::generic_category());
    ::close(written);
  }
  if (!error) std::filesystem::rename(written_, file_, error);
  if (!error) return;
  std::filesystem::remove(written_, ignored);
  fail(name_, error.message());
}

void write_file(const std::filesystem::path& file, std::string_view text) {
  OutputFile out(file);
  out.stream() << text;
  out.finish();
}

}  // namespace tarsus
