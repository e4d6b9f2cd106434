// Files are written whole or stay as they were.
#include "tarsus/io/output_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <thread>

#include "support/small_files.hpp"
#include "support/temporary_folder.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/page.hpp"

namespace tarsus {
namespace {

using test::TemporaryFolder;

std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(OutputFile, ReplacesTheTargetOfALinkOnceItIsComplete) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.txt", link = folder.path() / "link";
  std::filesystem::create_symlink(file, link);
  for (const std::string text : {"first", "second"}) {
    const std::string before = slurp(file);
    OutputFile out(link);
    out.stream() << text << std::flush;
    EXPECT_EQ(slurp(file), before);
    out.finish();
    EXPECT_EQ(slurp(file), text);
  }
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.txt.partial"));
}

TEST(OutputFile, WhatFillsTheDiskLeavesTheFileThatWasThere) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a";
  const std::string page = "<script id=\"recording\" type=\"application/json\">null</script>" + std::string(9000, ' ');
  const Model model = compile(parse_mjcf("<mujoco><worldbody><geom size='1'/></worldbody></mujoco>", "test", ".", {}));
  const std::function<void()> writers[] = {
      [&] { write_file(file, page); },
      [&] { PageWriter(model).write(file, page); },
  };
  for (const auto& write : writers) {
    for (const bool there : {false, true}) {
      if (there) {
        std::ofstream(file) << "mine";
      }
      try {
        const test::SmallFiles full(4096);
        write();
        ADD_FAILURE() << "the disk was full";
      } catch (const Error& e) {
        EXPECT_EQ(std::string(e.what()), file.string() + ": cannot be written: File too large");
      }
      EXPECT_EQ(slurp(file), there ? "mine" : "");
      EXPECT_EQ(std::filesystem::is_empty(folder.path()), !there);
      EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.partial"));
    }
    write();
    EXPECT_GT(slurp(file).size(), 9000u);
    std::filesystem::remove(file);
  }
}

TEST(OutputFile, PipesAreWrittenThemselves) {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = slurp(pipe); });
  write_file(pipe, "through");
  reader.join();
  EXPECT_EQ(read, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST(OutputFile, WhatCannotBeWrittenIsNamed) {
  const TemporaryFolder folder;
  const auto refused = [](const std::filesystem::path& file, const char* reason) {
    try {
      write_file(file, "x");
      ADD_FAILURE() << file;
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()), file.string() + ": cannot be written: " + reason);
    }
  };
  refused(folder.path() / "missing" / "a", "No such file or directory");
  refused(folder.path(), "Is a directory");
  refused("/dev/full", "No space left on device");
  const auto kept = folder.path() / "kept";
  std::ofstream(kept) << "mine";
  check_output(kept);
  check_output(folder.path() / "new");
  EXPECT_EQ(slurp(kept), "mine");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "new"));
}

}  // namespace
}  // namespace tarsus
