// tarsus convert: read a model, write it in the other format.
#include <fmt/core.h>

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
  ReadOptions options;
};

void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(path + ": cannot be written");
}

void run(const Convert& convert) {
  const Model model = load_model(convert.from, convert.options, false);
  const bool urdf = std::filesystem::path(convert.to).extension() == ".urdf";
  write_text(convert.to, urdf ? write_urdf(model.spec) : write_mjcf(model.spec));
  fmt::print("{}: {} bodies, {} joints, nv {}\n", convert.to, model.nbody() - 1, model.njoint(), model.nv);
}

}  // namespace

void add_convert_command(CLI::App& app) {
  auto convert = std::make_shared<Convert>();
  CLI::App* command = app.add_subcommand("convert", "Read a model and write it as MJCF (.xml) or URDF (.urdf)");
  command->add_option("from", convert->from, "MJCF or URDF file")->required();
  command->add_option("to", convert->to, "File to write: .urdf gives URDF, anything else MJCF")->required();
  add_read_options(*command, convert->options);
  command->footer("Defaults, includes and replicates are written out. What URDF cannot say is an error that names it.");
  command->callback([convert] { run(*convert); });
}

}  // namespace tarsus::app
