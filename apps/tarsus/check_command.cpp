// tarsus check: reports whether a model loads and which parts of its file are not used.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>

#include "command.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/model/sensor_kind.hpp"

namespace tarsus::app {

namespace {

const char* word(Severity severity) {
  return severity == Severity::note ? "note" : severity == Severity::warning ? "warning" : "error";
}

nlohmann::json to_json(const Diagnostic& d) {
  return {{"severity", word(d.severity)}, {"file", d.where.file}, {"line", d.where.line},    {"column", d.where.column},
          {"element", d.where.element},   {"message", d.message}, {"other_law", d.other_law}};
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

using Counts = std::vector<std::pair<std::string, int>>;

/// "shape that is not computed" → "shapes that are not computed": the noun is the word before "that", "for", "with…".
std::string plural(std::string what) {
  std::size_t end = what.size();
  for (const char* word : {" that", " for", " without", " with", " or", " ("}) end = std::min(end, what.find(word));
  std::string noun = what.substr(0, end), rest = what.substr(end);
  if (noun.ends_with("body") || noun.ends_with("equality"))
    noun = noun.substr(0, noun.size() - 1) + "ies";
  else
    noun += noun.ends_with("mesh") ? "es" : "s";
  for (const auto& [one, many] : {std::pair<std::string, std::string>(" that is ", " that are "),
                                  {" that was ", " that were "},
                                  {" that touches ", " that touch "},
                                  {" or coupling", " or couplings"}}) {
    if (rest.starts_with(one)) rest = many + rest.substr(one.size());
  }
  return noun + rest;
}

/// "3 bodies, 1 light": kinds with a count of zero are left out; "nothing" if all counts are zero.
std::string listed(const Counts& counts) {
  std::string out;
  for (const auto& [what, count] : counts) {
    if (count == 0) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, count == 1 ? what : plural(what));
  }
  return out.empty() ? "nothing" : out;
}

/// Elements of one kind, by name, or by line if they have no name.
struct Idle {
  std::string what;
  std::vector<std::string> names;
};

/// Elements of the file that are kept for viewers and for writing the model, and that no computation uses.
std::vector<Idle> without_effect(const ModelSpec& spec) {
  std::map<std::string, Idle> looks;
  const auto label = [](const std::string& name, const Location& where) {
    return name.empty() ? fmt::format("line {}", where.line) : name;
  };
  for (const CosmeticSpec& c : spec.cosmetics) looks[c.kind].names.push_back(label(c.name, c.where));
  std::vector<Idle> out;
  for (auto& [kind, idle] : looks) out.push_back({kind, std::move(idle.names)});
  const auto add = [&](const char* what, const auto& list, auto&& test) {
    Idle idle{what, {}};
    for (const auto& item : list) {
      if (test(item)) idle.names.push_back(label(item.name, item.where));
    }
    if (!idle.names.empty()) out.push_back(std::move(idle));
  };
  std::vector<GeomSpec> geoms;
  std::vector<JointSpec> joints;
  for (const BodySpec& body : spec.bodies) {
    geoms.insert(geoms.end(), body.geoms.begin(), body.geoms.end());
    joints.insert(joints.end(), body.joints.begin(), body.joints.end());
  }
  const auto looks_alone = [](const GeomSpec& g) { return g.visual_only || (!g.contype && !g.conaffinity); };
  const OptionSpec& on = spec.option;
  add("visual-only shape", geoms, looks_alone);
  add("shape that touches nothing (contact is off)", geoms,
      [&](const GeomSpec& g) { return !on.contact_enabled && !looks_alone(g); });
  add("joint limit that is off", joints, [&](const JointSpec& j) { return j.limited && !on.limit_enabled; });
  add("mesh without a surface", spec.meshes, [](const MeshSpec& m) { return m.vertices.empty(); });
  add("height field that was not read", spec.height_fields, [](const HeightFieldSpec& f) { return f.rows == 0; });
  add("equality that is not active", spec.equalities,
      [&](const EqualitySpec& e) { return !e.active || !on.equality_enabled; });
  add("actuator that is not computed", spec.actuators,
      [&](const ActuatorSpec& a) { return !a.computed() || !on.actuation_enabled; });
  add("sensor that is not computed", spec.sensors, [](const SensorSpec& s) { return !is_computed(s); });
  return out;
}

void print(const std::vector<Idle>& idle) {
  constexpr std::size_t kNames = 8;
  if (idle.empty()) fmt::print("without effect on the motion: nothing\n");
  for (const Idle& kind : idle) {
    std::string names;
    for (std::size_t i = 0; i < kind.names.size() && i < kNames; ++i) names += (i ? ", " : "") + kind.names[i];
    if (kind.names.size() > kNames) names += fmt::format(" and {} more", kind.names.size() - kNames);
    fmt::print("without effect on the motion: {}: {}\n", listed({{kind.what, int(kind.names.size())}}), names);
  }
}

Counts simulated(const Model& model) {
  const ModelSpec& spec = model.spec;
  int shapes = 0, limits = 0, springs = 0, friction = 0, by_type[kJointTraits.size()] = {};
  for (const BodySpec& body : spec.bodies) {
    for (const GeomSpec& g : body.geoms) {
      const auto mesh = std::ranges::find(spec.meshes, g.mesh, &MeshSpec::name);
      const bool surface = g.type != GeomType::mesh || (mesh != spec.meshes.end() && !mesh->vertices.empty());
      shapes += surface && !g.visual_only && (g.contype || g.conaffinity);
    }
    for (const JointSpec& j : body.joints) {
      ++by_type[int(j.type)];
      limits += j.limited && spec.option.limit_enabled, springs += j.stiffness > 0, friction += j.friction_loss > 0;
    }
  }
  Counts out{{"body", model.nbody() - 1}};
  for (const JointTraits& t : kJointTraits) {
    if (t.part_count == 0) out.emplace_back(fmt::format("{} joint", t.name), by_type[int(t.type)]);
  }
  out.emplace_back("joint limit", limits);
  out.emplace_back("spring", springs);
  out.emplace_back("joint with dry friction", friction);
  out.emplace_back("shape that can touch", spec.option.contact_enabled ? shapes : 0);
  out.emplace_back("loop or coupling",
                   int(std::count_if(spec.equalities.begin(), spec.equalities.end(),
                                     [&](const EqualitySpec& e) { return e.active && spec.option.equality_enabled; })));
  out.emplace_back("tendon", int(spec.tendons.size()));
  out.emplace_back("actuator", spec.option.actuation_enabled
                                   ? int(std::ranges::count_if(spec.actuators, &ActuatorSpec::computed))
                                   : 0);
  out.emplace_back("sensor", int(std::count_if(spec.sensors.begin(), spec.sensors.end(), is_computed)));
  return out;
}

nlohmann::json to_json(const Counts& counts) {
  nlohmann::json out = nlohmann::json::object();
  for (const auto& [what, count] : counts) {
    if (count > 0) out[what] = count;
  }
  return out;
}

nlohmann::json to_json(const std::vector<Idle>& idle) {
  nlohmann::json out = nlohmann::json::object();
  for (const Idle& kind : idle) out[kind.what] = kind.names;
  return out;
}

void print_checked(const Check& check, const Diagnostics& all, const Model* model) {
  nlohmann::json out{{"file", check.path}, {"loads", model != nullptr}, {"diagnostics", nlohmann::json::array()}};
  for (const Diagnostic& d : all) out["diagnostics"].push_back(to_json(d));
  if (model)
    out["without_effect"] = to_json(without_effect(model->spec)), out["simulated"] = to_json(simulated(*model));
  if (model)
    out["model"] = {{"nq", model->nq},           {"nv", model->nv},       {"bodies", model->nbody() - 1},
                    {"joints", model->njoint()}, {"depth", model->depth}, {"mass", model->total_mass()}};
  print_json(out);
}

void run(const Check& check) {
  try {
    const Model model =
        within_memory("the model " + check.path, [&] { return compile(read_model(check.path, check.options)); });
    const Diagnostics& all = model.spec.diagnostics;
    const bool fails = check.strict && std::any_of(all.begin(), all.end(), [](const Diagnostic& d) {
                         return d.severity == Severity::warning && !d.other_law;
                       });
    if (check.json) {
      print_checked(check, all, &model);
      if (fails) throw CLI::RuntimeError(2);
      return;
    }
    print_kinds(all, stdout, check.notes);
    print(without_effect(model.spec));
    fmt::print("{}: loads; {} bodies, {} joints, nq {}, nv {}, {:.6g} kg; {} warnings, {} notes{}\n", check.path,
               model.nbody() - 1, model.njoint(), model.nq, model.nv, model.total_mass(), count(all, Severity::warning),
               count(all, Severity::note), check.notes || !count(all, Severity::note) ? "" : " (--notes shows them)");
    fmt::print("simulated: {}\n", listed(simulated(model)));
    if (fails) throw CLI::RuntimeError(2);
  } catch (const InputError& e) {
    if (check.json)
      print_checked(check, e.diagnostics(), nullptr);
    else
      print_kinds(e.diagnostics(), stdout, true);
    throw CLI::RuntimeError(1);
  }
}

}  // namespace

void add_check_command(CLI::App& app) {
  auto check = std::make_shared<Check>();
  CLI::App* command =
      app.add_subcommand("check", "Load a model; list its errors and everything in it that is not supported");
  command->add_option("model", check->path, "MJCF or URDF file")->required();
  add_read_options(*command, check->options);
  command->add_flag("--notes", check->notes, "Also list notes: choices made while reading, such as normalised axes");
  command->add_flag("--strict", check->strict, "Fail if the file contains anything that is not computed");
  command->add_flag("--json", check->json, "Print one JSON object: whether it loads, diagnostics, sizes");
  command->footer(
      "Findings of one kind share one line, with their count. Then follow the parts of the file that do "
      "not act on the motion, and the\n"
      "parts that are simulated. Exit status: 0 the model loads, 1 it does not, 2 with --strict: it loads, "
      "with warnings of parts without\n"
      "effect. The warning that constraints of default softness are stiffer here than in MuJoCo does not "
      "count.\n"
      "\n"
      "  tarsus check models/humanoid.xml --notes\n"
      "  tarsus check robot.urdf --package-path ~/packages --json\n"
      "\n"
      "More: docs/models.md.");
  command->callback([check] { run(*check); });
}

}  // namespace tarsus::app
