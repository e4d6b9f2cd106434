#include "tarsus/io/package_path.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

#include "tarsus/io/text_number.hpp"

namespace tarsus {

namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& p) {
  std::error_code ignored;
  return fs::is_regular_file(p, ignored);
}

std::vector<fs::path> environment_paths() {
  std::vector<fs::path> out;
  const char* value = std::getenv("ROS_PACKAGE_PATH");
  std::string_view rest = value ? value : "";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    if (end != 0) out.emplace_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return out;
}

/// `folder` holds the package, or is it.
std::optional<fs::path> in_folder(const fs::path& folder, const fs::path& package, const fs::path& rest) {
  if (is_file(folder / package / rest)) return folder / package / rest;
  if (folder.filename() == package && is_file(folder / rest)) return folder / rest;
  return {};
}

ResolvedFile resolve_package(const fs::path& package, const fs::path& rest, const fs::path& directory,
                             const std::vector<fs::path>& package_paths) {
  for (const auto& list : {package_paths, environment_paths()}) {
    for (const fs::path& folder : list) {
      if (const auto found = in_folder(folder, package, rest)) return {*found, ""};
    }
  }
  std::error_code ignored;
  fs::path folder = fs::absolute(directory.empty() ? fs::path(".") : directory, ignored).lexically_normal();
  for (const fs::path start = folder;; folder = folder.parent_path()) {
    if (const auto found = in_folder(folder, package, rest)) return {*found, ""};
    if (is_file(folder / rest)) return {folder / rest, ""};  // a package whose own folder was renamed
    if (folder == folder.parent_path()) {
      return {{},
              fmt::format("package {} with {} not found in {} package paths, ROS_PACKAGE_PATH, or above {}",
                          quote(package.string()), quote(rest.string()), package_paths.size(), start.string())};
    }
  }
}

}  // namespace

ResolvedFile resolve_uri(std::string_view uri, const fs::path& directory, const std::vector<fs::path>& package_paths) {
  if (uri.empty() || uri.size() > 4000 || uri.find('\0') != std::string_view::npos) return {{}, "not a file name"};
  const std::size_t scheme_end = uri.find("://");
  if (scheme_end == std::string_view::npos) {
    const fs::path file = directory / fs::path(uri);
    return is_file(file) ? ResolvedFile{file, ""} : ResolvedFile{{}, fmt::format("no such file: {}", file.string())};
  }
  const std::string_view scheme = uri.substr(0, scheme_end), rest = uri.substr(scheme_end + 3);
  if (scheme == "file") {
    return is_file(rest) ? ResolvedFile{fs::path(rest), ""} : ResolvedFile{{}, fmt::format("no such file: {}", rest)};
  }
  if (scheme != "package" && scheme != "model") {
    return {{}, fmt::format("{} addresses are not supported", quote(scheme))};
  }
  const std::size_t slash = rest.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == rest.size()) {
    return {{}, fmt::format("{} does not name a package and a file in it", quote(uri))};
  }
  return resolve_package(fs::path(rest.substr(0, slash)), fs::path(rest.substr(slash + 1)), directory, package_paths);
}

}  // namespace tarsus
