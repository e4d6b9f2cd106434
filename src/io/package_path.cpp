#include "tarsus/io/package_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <system_error>

#include "tarsus/io/text_number.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {

namespace {

namespace fs = std::filesystem;

constexpr int kMostLevels = 8;        // largest depth of folders below a searched folder
constexpr int kMostFolders = 20'000;  // largest number of entries looked at below a searched folder
constexpr std::size_t kMostManifest = 1u << 20;

bool is_file(const fs::path& p) {
  std::error_code ignored;
  return fs::is_regular_file(p, ignored);
}

std::string missing(const fs::path& p) {
  std::error_code ignored;
  return fmt::format("{}: {}", fs::exists(p, ignored) ? "not an ordinary file" : "no such file", p.string());
}

std::vector<fs::path> environment_paths(const char* variable) {
  std::vector<fs::path> out;
  const char* value = std::getenv(variable);
  std::string_view rest = value ? value : "";
  while (!rest.empty()) {
    const std::size_t end = rest.find(':');
    if (end != 0) out.emplace_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return out;
}

/// The package's name in the folder's package.xml, or the folder's name if it has an old manifest.xml, else empty.
std::string package_name(const fs::path& folder) {
  const fs::path manifest = folder / "package.xml";
  if (!is_file(manifest)) return is_file(folder / "manifest.xml") ? folder.filename().string() : "";
  try {
    DiagnosticSink unused;
    XmlLimits limits;
    limits.bytes = kMostManifest;
    const XmlDocument document = XmlDocument::load(manifest, unused, limits);
    const XmlElement name = document.root().child("name");
    return name ? std::string(name.content()) : "";
  } catch (const InputError&) {
    return "";  // a file of another tool with the same name
  }
}

/// The file, if `folder` contains the package or is the package, by the folder's name or by the name in its manifest.
std::optional<fs::path> in_folder(const fs::path& folder, const fs::path& package, const fs::path& rest) {
  if (is_file(folder / package / rest)) return folder / package / rest;
  if (!is_file(folder / rest)) return {};
  if (folder.filename() == package || package_name(folder) == package.string()) return folder / rest;
  return {};
}

/// The same for `top` and packages below it. As in ROS, packages inside other packages are not searched.
std::optional<fs::path> below_folder(const fs::path& top, const fs::path& package, const fs::path& rest) {
  if (const auto found = in_folder(top, package, rest)) return found;
  std::error_code error;
  int seen = 0;
  for (fs::recursive_directory_iterator at(top, fs::directory_options::skip_permission_denied, error), end;
       !error && at != end && ++seen < kMostFolders; at.increment(error)) {
    std::error_code ignored;
    if (!at->is_directory(ignored)) continue;
    const std::string name = package_name(at->path());
    if (name == package.string() && is_file(at->path() / rest)) return at->path() / rest;
    if (!name.empty() || at.depth() >= kMostLevels) at.disable_recursion_pending();
  }
  return {};
}

/// Searches in the order that resolve_uri() documents.
ResolvedFile resolve_package(const fs::path& package, const fs::path& rest, const fs::path& directory,
                             const std::vector<fs::path>& package_paths) {
  for (const fs::path& folder : package_paths) {
    if (const auto found = below_folder(folder, package, rest)) return {*found, ""};
  }
  for (const fs::path& folder : environment_paths("ROS_PACKAGE_PATH")) {
    if (const auto found = below_folder(folder, package, rest)) return {*found, ""};
  }
  for (const fs::path& prefix : environment_paths("AMENT_PREFIX_PATH")) {
    if (is_file(prefix / "share" / package / rest)) return {prefix / "share" / package / rest, ""};
  }
  for (const char* variable : {"GZ_SIM_RESOURCE_PATH", "GAZEBO_MODEL_PATH"}) {
    for (const fs::path& folder : environment_paths(variable)) {
      if (const auto found = in_folder(folder, package, rest)) return {*found, ""};
    }
  }
  std::error_code ignored;
  fs::path folder = fs::absolute(directory.empty() ? fs::path(".") : directory, ignored).lexically_normal();
  for (const fs::path start = folder;; folder = folder.parent_path()) {
    if (const auto found = in_folder(folder, package, rest)) return {*found, ""};
    if (is_file(folder / rest)) return {folder / rest, ""};  // a package whose folder was renamed
    if (folder == folder.parent_path()) {
      return {{},
              fmt::format("package {} with {} not found in {} package paths, ROS_PACKAGE_PATH, AMENT_PREFIX_PATH, or "
                          "above {}",
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
    return is_file(file) ? ResolvedFile{file, ""} : ResolvedFile{{}, missing(file)};
  }
  const std::string_view scheme = uri.substr(0, scheme_end);
  std::string_view rest = uri.substr(scheme_end + 3);
  if (scheme == "file") {
    return is_file(rest) ? ResolvedFile{fs::path(rest), ""} : ResolvedFile{{}, missing(rest)};
  }
  if (scheme != "package" && scheme != "model") {
    return {{}, fmt::format("{} addresses are not supported", quote(scheme))};
  }
  rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));  // package:///NAME/… is common
  const std::size_t slash = rest.find('/');
  if (rest.empty() || slash == std::string_view::npos || slash + 1 == rest.size()) {
    return {{}, fmt::format("{} does not name a package and a file in it", quote(uri))};
  }
  return resolve_package(fs::path(rest.substr(0, slash)), fs::path(rest.substr(slash + 1)), directory, package_paths);
}

std::string absolute_path(const std::filesystem::path& file) {
  std::error_code failed;
  const std::filesystem::path path = std::filesystem::absolute(file, failed);
  return (failed ? file : path).lexically_normal().generic_string();
}

}  // namespace tarsus
