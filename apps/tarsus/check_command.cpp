// tarsus check: does a model load, and what in it is not used?
#include <fmt/core.h>

#include <memory>

#include "command.hpp"
#include "tarsus/io/model_file.hpp"

namespace tarsus::app {

namespace {

const char* word(Severity severity) {
  return severity == Severity::note ? "note" : severity == Severity::warning ? "warning" : "error";
}

nlohmann::json to_json(const Diagnostic& d) {
  return {{"severity", word(d.severity)}, {"file", d.where.file},       {"line", d.where.line},
          {"column", d.where.column},     {"element", d.where.element}, {"message", d.message}};
}

struct Check {
  std::string path;
  ReadOptions options;
  bool json = false, notes = false, strict = false;
};

int count(const Diagnostics& all, Severity severity) {
  int n = 0;
  for (const Diagnostic& d : all) n += d.severity == severity;
  return n;
}

void print(const Diagnostics& all, bool notes) {
  for (const Diagnostic& d : all) {
    if (notes || d.severity != Severity::note) fmt::print("{}\n", d.text());
  }
}

void print_checked(const Check& check, const Diagnostics& all, const Model* model) {
  nlohmann::json out{{"file", check.path}, {"loads", model != nullptr}, {"diagnostics", nlohmann::json::array()}};
  for (const Diagnostic& d : all) out["diagnostics"].push_back(to_json(d));
  if (model)
    out["model"] = {{"nq", model->nq},           {"nv", model->nv},       {"bodies", model->nbody() - 1},
                    {"joints", model->njoint()}, {"depth", model->depth}, {"mass", model->total_mass()}};
  print_json(out);
}

void run(const Check& check) {
  try {
    const Model model = compile(read_model(check.path, check.options));
    const Diagnostics& all = model.spec.diagnostics;
    const bool fails = check.strict && count(all, Severity::warning) > 0;
    if (check.json) {
      print_checked(check, all, &model);
      if (fails) throw CLI::RuntimeError(2);
      return;
    }
    print(all, check.notes);
    fmt::print("{}: loads; {} bodies, {} joints, nq {}, nv {}, {:.6g} kg; {} warnings, {} notes{}\n", check.path,
               model.nbody() - 1, model.njoint(), model.nq, model.nv, model.total_mass(), count(all, Severity::warning),
               count(all, Severity::note), check.notes || !count(all, Severity::note) ? "" : " (--notes shows them)");
    if (fails) throw CLI::RuntimeError(2);
  } catch (const InputError& e) {
    if (check.json)
      print_checked(check, e.diagnostics(), nullptr);
    else
      print(e.diagnostics(), true);
    throw CLI::RuntimeError(1);
  }
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto check = std::make_shared<Check>();
  CLI::App* command =
      app.add_subcommand("check", "Load a model; list errors, and everything in it that is not supported");
  command->add_option("model", check->path, "MJCF or URDF file")->required();
  add_read_options(*command, check->options);
  command->add_flag("--notes", check->notes, "List notes too: choices made while reading, such as axes normalised");
  command->add_flag("--strict", check->strict, "Anything that the file says and nothing computes is an error");
  command->add_flag("--json", check->json, "One JSON object: loads, diagnostics, sizes");
  command->footer(
      "Exit status: 0 the model loads, 1 it does not, 2 with --strict it loads with warnings.\n\n"
      "  tarsus check models/humanoid.xml --notes\n"
      "  tarsus check robot.urdf --package-path ~/packages --json");
  command->callback([check] { run(*check); });
}

}  // namespace tarsus::app
