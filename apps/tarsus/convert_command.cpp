// tarsus convert: read a model, write it in the other format.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "command.hpp"
#include "tarsus/io/mjcf_writer.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/io/urdf_writer.hpp"

namespace tarsus::app {

namespace {

struct Convert {
  std::string from, to;
  bool json = false;
  ReadOptions options;
};

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(path + ": cannot be written");
}

void run(const Convert& convert) {
  const std::string extension = std::filesystem::path(convert.to).extension().string();
  const bool urdf = extension == ".urdf";
  if (!urdf && extension != ".xml" && extension != ".mjcf")
    throw ValueError("to", convert.to, "a file that ends in .xml or .mjcf (MJCF) or .urdf (URDF)");
  check_output(convert.to);
  const Model model = load_model(convert.from, convert.options, convert.json);
  write_text(convert.to, urdf ? write_urdf(model.spec)
                              : write_mjcf(model.spec, std::filesystem::absolute(convert.to).parent_path()));
  std::string spherical;
  if (const auto balls = std::ranges::count_if(model.joints, turns_freely, &Joint::type); urdf && balls > 0)
    spherical = fmt::format(
        "{}: warning: ball joints ({}) are written as \"spherical\", which Bullet, MuJoCo and tarsus read; "
        "urdfdom, and with it ROS and Pinocchio, does not",
        convert.to, balls);
  if (convert.json) {
    nlohmann::json warnings = nlohmann::json::array();
    if (!spherical.empty()) warnings.push_back(spherical);
    for (const Diagnostic& d : model.spec.diagnostics) {
      if (d.severity != Severity::note && !d.other_law) warnings.push_back(d.text());
    }
    return print_json({{"from", convert.from},
                       {"to", convert.to},
                       {"format", urdf ? "urdf" : "mjcf"},
                       {"bodies", model.nbody() - 1},
                       {"joints", model.njoint()},
                       {"nv", model.nv},
                       {"warnings", warnings}});
  }
  if (!spherical.empty()) fmt::print(stderr, "{}\n", spherical);
  fmt::print("{}: {} bodies, {} joints, nv {}\n", convert.to, model.nbody() - 1, model.njoint(), model.nv);
}

}  // namespace

void add_convert_command(CLI::App& app) {
  auto convert = std::make_shared<Convert>();
  CLI::App* command = app.add_subcommand("convert", "Read a model and write it as MJCF (.xml) or URDF (.urdf)");
  command->add_option("from", convert->from, "MJCF or URDF file")->required();
  command->add_option("to", convert->to, "File to write: .xml or .mjcf gives MJCF, .urdf URDF")->required();
  command->add_flag("--json", convert->json, "One JSON object: sizes and warnings");
  add_read_options(*command, convert->options);
  command->footer(
      "Defaults, includes and replicates are written out. What URDF cannot say is an error that names "
      "it.\n\n"
      "  tarsus convert models/pendulum.xml pendulum.urdf\n"
      "  tarsus convert robot.urdf robot.xml --floating-base");
  command->callback([convert] { run(*convert); });
}

}  // namespace tarsus::app
