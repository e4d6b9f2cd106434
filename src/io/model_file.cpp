#include "tarsus/io/model_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "clip_json.hpp"
#include "model_origin.hpp"
#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/urdf.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {
namespace {

/// Refuses files of other kinds given as a model. Detects them from their first bytes.
void refuse_others(const std::filesystem::path& file) {
  char first[64] = {};
  std::ifstream(file, std::ios::binary).read(first, sizeof first - 1);
  std::string_view head = first;
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  std::string what;
  if (head.starts_with("PK\x03\x04"))
    what = "an .npz file (a recording or a policy): tarsus replay takes a recording, --policy a policy";
  if (head.starts_with('{') || head.starts_with('[')) {
    try {
      const JsonDocument document(read_file(file, JsonLimits{}.bytes), file.string());
      what = is_clip(document.root()) ? "a motion clip: give it with a model, as tarsus run MODEL --clip CLIP"
                                      : content_of(document.root());
    } catch (const InputError&) {
      what = "JSON with errors";
    }
  }
  if (head.starts_with("HIERARCHY")) what = "a BVH clip: give it with a model, as tarsus run MODEL --clip CLIP";
  const int text = head.starts_with('P') ? 0 : 1;
  if (!what.empty())
    throw InputError(Location{file.string(), text, text, {}},
                     fmt::format("expected a model (MJCF or URDF), but this is {}", what));
}

}  // namespace

ModelOrigin model_origin(const std::filesystem::path& file, const ReadOptions& options) {
  ModelOrigin out;
  std::error_code gone;
  if (!file.empty()) out.file = file.string(), out.folder = std::filesystem::current_path(gone).string();
  if (options.lenient) out.options.push_back("--lenient");
  if (options.floating_base) out.options.push_back("--floating-base");
  if (options.fix_balance) out.options.insert(out.options.end(), {"--fix", "balance"});
  for (const std::filesystem::path& path : options.package_paths)
    out.options.insert(out.options.end(), {"--package-path", path.string()});
  return out;
}

ModelSpec read_model(const std::filesystem::path& file, const ReadOptions& options) {
  const std::string extension = file.extension().string();
  if (extension == ".mjb" || extension == ".usd" || extension == ".usda" || extension == ".usdc") {
    throw InputError(Location{file.string(), 0, 0, {}},
                     fmt::format("{} files are not supported; models are MJCF or URDF", extension));
  }
  std::error_code unreadable;
  if (std::filesystem::is_regular_file(file, unreadable)) refuse_others(file);
  Location where;
  std::string root;
  {
    DiagnosticSink unused;  // discarded: the reader parses the file again and reports its findings
    const XmlDocument document = XmlDocument::load(file, unused);
    root = document.root().name();
    where = document.root().where();
  }
  const auto urdf_only = [](const char* option) {
    throw ValueError(option, "given", "a URDF file, but this file is MJCF");
  };
  if (root == "mujoco" && options.floating_base) urdf_only("floating_base, --floating-base");
  if (root == "mujoco" && !options.package_paths.empty()) urdf_only("package_paths, --package-path");
  if (root == "mujoco") return read_mjcf(file, options);
  if (root == "robot") return read_urdf(file, options);
  if (root == "sdf" || root == "gazebo")
    throw InputError(where, "SDF files are not supported; models are MJCF or URDF");
  if (root == "COLLADA") throw InputError(where, "this is a Collada mesh, not a model; models are MJCF or URDF");
  if (root == "mujocoinclude") throw InputError(where, "this is a part of an MJCF model, to be included by a model");
  throw InputError(where,
                   fmt::format("the root element {} is neither <mujoco> (MJCF) nor <robot> (URDF)", quote(root)));
}

}  // namespace tarsus
