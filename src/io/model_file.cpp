#include "tarsus/io/model_file.hpp"

#include <fmt/format.h>

#include "tarsus/io/mjcf.hpp"
#include "tarsus/io/urdf.hpp"
#include "tarsus/io/xml.hpp"

namespace tarsus {

ModelSpec read_model(const std::filesystem::path& file, const ReadOptions& options) {
  const std::string extension = file.extension().string();
  if (extension == ".mjb" || extension == ".usd" || extension == ".usda" || extension == ".usdc") {
    throw InputError(Location{file.string(), 0, 0, {}},
                     fmt::format("{} files are not supported; models are MJCF or URDF", extension));
  }
  Location where;
  std::string root;
  {
    DiagnosticSink unused;  // the reader parses again and reports what it finds
    const XmlDocument document = XmlDocument::load(file, unused);
    root = document.root().name();
    where = document.root().where();
  }
  const auto urdf_only = [](const char* option) { throw ValueError(option, "given", "a URDF file: this one is MJCF"); };
  if (root == "mujoco" && options.floating_base) urdf_only("floating_base, --floating-base");
  if (root == "mujoco" && !options.package_paths.empty()) urdf_only("package_paths, --package-path");
  if (root == "mujoco") return read_mjcf(file, options);
  if (root == "robot") return read_urdf(file, options);
  if (root == "sdf" || root == "gazebo")
    throw InputError(where, "this is SDF, which is not read; models are MJCF or URDF");
  if (root == "COLLADA") throw InputError(where, "this is a Collada mesh, not a model; models are MJCF or URDF");
  if (root == "mujocoinclude")
    throw InputError(where, "this is a part of an MJCF model, made to be included, not a model");
  throw InputError(where,
                   fmt::format("the root element {} is neither <mujoco> (MJCF) nor <robot> (URDF)", quote(root)));
}

}  // namespace tarsus
