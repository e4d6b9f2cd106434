// tarsus convert: reads a model and writes it as MJCF or URDF.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "command.hpp"
#include "tarsus/io/mjcf_writer.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/io/output_file.hpp"
#include "tarsus/io/urdf_writer.hpp"

namespace tarsus::app {

namespace {

struct Convert {
  std::string from, to;
  bool json = false;
  ReadOptions options;
};

void run(const Convert& convert) {
  const std::string extension = std::filesystem::path(convert.to).extension().string();
  const bool urdf = extension == ".urdf";
  if (!urdf && extension != ".xml" && extension != ".mjcf")
    throw ValueError("to", convert.to, "a file that ends in .xml or .mjcf (MJCF) or .urdf (URDF)");
  check_apart({{"to", convert.to}}, {{"from", convert.from}});
  check_output(convert.to);
  const Model model = load_model(convert.from, convert.options, convert.json);
  if (const auto& files = model.spec.files;
      std::ranges::find(files, std::filesystem::weakly_canonical(convert.to).string()) != files.end())
    throw ValueError("to", convert.to, "a file other than those that the model includes or attaches");
  std::vector<std::string> said;
  const std::filesystem::path folder = std::filesystem::absolute(convert.to).lexically_normal().parent_path();
  write_file(convert.to, (urdf ? write_urdf : write_mjcf)(model.spec, folder, &said));
  const auto is_ball = [](JointType type) { return turns_freely(type); };
  if (const auto balls = std::ranges::count_if(model.joints, is_ball, &Joint::type); urdf && balls > 0)
    said.push_back(
        fmt::format("ball joints ({}) are written as \"spherical\", which Bullet, MuJoCo and tarsus read; "
                    "urdfdom, and with it ROS and Pinocchio, does not",
                    balls));
  for (std::string& what : said) what = fmt::format("{}: warning: {}", convert.to, what);
  if (convert.json) {
    nlohmann::json warnings = said;
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
  for (const std::string& what : said) tell("{}\n", what);
  fmt::print("{}: {} bodies, {} joints, nv {}\n", convert.to, model.nbody() - 1, model.njoint(), model.nv);
}

}  // namespace

void add_convert_command(CLI::App& app) {
  auto convert = std::make_shared<Convert>();
  CLI::App* command = app.add_subcommand("convert", "Read a model and write it as MJCF (.xml) or URDF (.urdf)");
  command
      ->add_option("from", convert->from,
                   "MJCF or URDF file, or a built-in scene such as box_stack:5 (tarsus scene --list)")
      ->required();
  command->add_option("to", convert->to, "File to write: .xml or .mjcf gives MJCF, .urdf URDF")->required();
  command->add_flag("--json", convert->json, "Print one JSON object: sizes and warnings");
  add_read_options(*command, convert->options);
  command->footer(
      "Defaults, includes and replicates are written out. Content that the new format cannot express gives "
      "a warning or, if the model would\n"
      "move differently even without its actuators and contacts, an error.\n"
      "\n"
      "  tarsus convert models/pendulum.xml pendulum.urdf\n"
      "  tarsus convert robot.urdf robot.xml --floating-base\n"
      "\n"
      "More: docs/models.md.");
  command->callback([convert] { run(*convert); });
}

}  // namespace tarsus::app
