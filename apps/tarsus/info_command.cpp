// tarsus info: shows the content of a recording, a model or a clip.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "command.hpp"
#include "tarsus/io/clip_file.hpp"
#include "tarsus/io/model_file.hpp"
#include "tarsus/io/npz.hpp"
#include "tarsus/io/recording.hpp"
#include "tarsus/sim/rigid_scene.hpp"

namespace tarsus::app {

namespace {

enum class FileKind { npz, model, clip };

struct Info {
  std::string path;
  ReadOptions options;
  bool json = false;
};

/// Detects the kind from the first bytes of the file, whatever its extension: "PK" for a zip, "<" for XML, else a clip.
FileKind kind_of(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    if (named_scene(path)) return FileKind::model;
    throw Error(path + ": no such file");
  }
  if (!std::filesystem::is_regular_file(path)) throw Error(path + ": this is not an ordinary file");
  std::ifstream file(path, std::ios::binary);
  char first[1024];
  file.read(first, sizeof first);
  std::string_view head(first, std::size_t(file.gcount()));
  if (head.starts_with("PK")) return FileKind::npz;
  if (head.starts_with("\xEF\xBB\xBF")) head.remove_prefix(3);
  const std::size_t at = head.find_first_not_of(" \t\r\n");
  const bool npz_name = std::filesystem::path(path).extension() == ".npz";
  if (npz_name) return FileKind::npz;
  return at != head.npos && head[at] == '<' ? FileKind::model : FileKind::clip;
}

void row(const char* what, const std::string& value) { fmt::print("  {:<14}{}\n", what, value); }

struct Range {
  double low = 0, high = 0;
};
Range range(std::span<const double> values) {
  if (values.empty()) return {};
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {*low, *high};
}
nlohmann::json to_json(const Range& r) { return {{"min", r.low}, {"max", r.high}}; }

/// Column `k` of every frame.
std::vector<double> column(std::span<const double> values, int width, int k) {
  std::vector<double> out;
  for (std::size_t i = std::size_t(k); i < values.size(); i += std::size_t(width)) out.push_back(values[i]);
  return out;
}

// -- recordings -----------------------------------------------------------------------------------------------------

struct JointRow {
  std::string name, type;
  int qpos = 0, qvel = 0, nq = 0, nv = 0;
};

/// Each joint's place in qpos and qvel, from the joint types; empty if a type is unknown or the sizes do not match.
std::vector<JointRow> layout(const Recording& r) {
  std::vector<JointRow> rows;
  int nq = 0, nv = 0;
  for (std::size_t i = 0; i < r.joints.size(); ++i) {
    const JointTraits* t = find_joint_type(r.joint_types[i]);
    if (!t) return {};
    rows.push_back({r.joints[i], r.joint_types[i], nq, nv, t->nq(), t->nv()});
    nq += t->nq(), nv += t->nv();
  }
  return nq == r.nq && nv == r.nv ? rows : std::vector<JointRow>{};
}

std::string meta_text(const MetaValue& value) {
  struct Visitor {
    std::string operator()(const std::string& s) const { return s; }
    std::string operator()(double x) const { return fmt::format("{:g}", x); }
    std::string operator()(std::int64_t x) const { return fmt::format("{}", x); }
    std::string operator()(bool x) const { return x ? "true" : "false"; }
  };
  return std::visit(Visitor{}, value);
}

Range joint_range(std::span<const double> values, int width, int first, int count) {
  Range all{kInfinity, -kInfinity};
  for (int k = 0; k < count; ++k) {
    const Range r = range(column(values, width, first + k));
    all.low = std::min(all.low, r.low), all.high = std::max(all.high, r.high);
  }
  return all;
}

void print_recording(const Recording& r) {
  fmt::print("recording {}\n", r.file);
  row("model", fmt::format("{}: {} joints, nq {}, nv {}", r.model, r.joints.size(), r.nq, r.nv));
  row("frames", fmt::format("{}, {:.6g} s to {:.6g} s, mean spacing {:.6g} s", r.frame_count(),
                            r.time.empty() ? 0 : r.time.front(), r.time.empty() ? 0 : r.time.back(), r.dt()));
  row("arrays",
      fmt::format("time ({},), qpos ({}, {}), qvel ({}, {}){}", r.frame_count(), r.frame_count(), r.nq, r.frame_count(),
                  r.nv, r.target.empty() ? "; no targets" : fmt::format(", target ({}, {})", r.frame_count(), r.nq)));
  for (const auto& [key, value] : r.extra) row(key.c_str(), meta_text(value));
  if (!r.unused.empty()) row("not used", fmt::format("{}", fmt::join(r.unused, ", ")));
  if (r.frame_count() == 0) return;
  fmt::print("\n  {:<24}{:<7}{:>24}{:>26}\n", "joint", "type", "qpos min … max", "qvel min … max");
  for (const JointRow& j : layout(r)) {
    const Range q = joint_range(r.qpos, r.nq, j.qpos, j.nq), v = joint_range(r.qvel, r.nv, j.qvel, j.nv);
    fmt::print("  {:<24}{:<7}{:>24}{:>24}\n", j.name, j.type, fmt::format("{:.4g} … {:.4g}", q.low, q.high),
               fmt::format("{:.4g} … {:.4g}", v.low, v.high));
  }
}

nlohmann::json json_recording(const Recording& r) {
  nlohmann::json out{
      {"kind", "recording"},       {"file", r.file},           {"model", r.model}, {"nq", r.nq},        {"nv", r.nv},
      {"frames", r.frame_count()}, {"duration", r.duration()}, {"dt", r.dt()},     {"unused", r.unused}};
  out["meta"] = nlohmann::json::parse(r.meta);
  const std::size_t n = r.time.size();
  out["arrays"] = {{"time", {{"shape", {n}}, {"range", to_json(range(r.time))}}},
                   {"qpos", {{"shape", {n, r.nq}}, {"range", to_json(range(r.qpos))}}},
                   {"qvel", {{"shape", {n, r.nv}}, {"range", to_json(range(r.qvel))}}}};
  if (!r.target.empty()) out["arrays"]["target"] = {{"shape", {n, r.nq}}, {"range", to_json(range(r.target))}};
  out["joints"] = nlohmann::json::array();
  for (const JointRow& j : layout(r)) {
    nlohmann::json joint{{"name", j.name}, {"type", j.type}, {"qpos", j.qpos}, {"qvel", j.qvel}};
    if (n > 0) {
      joint["qpos_range"] = to_json(joint_range(r.qpos, r.nq, j.qpos, j.nq));
      joint["qvel_range"] = to_json(joint_range(r.qvel, r.nv, j.qvel, j.nv));
    }
    out["joints"].push_back(joint);
  }
  return out;
}

/// Prints the arrays of an .npz that is not a recording.
void plain_npz(NpzReader& npz, const Info& info) {
  nlohmann::json out{{"kind", "npz"}, {"file", info.path}, {"arrays", nlohmann::json::object()}};
  if (!info.json) fmt::print("arrays {} (not a recording: no \"meta\")\n", info.path);
  for (const std::string& array : npz.names()) {
    const NpzInfo i = npz.info(array);
    if (info.json)
      out["arrays"][array] = {{"type", name(i.type)}, {"shape", i.shape}};
    else
      row(array.c_str(), fmt::format("{} {}", name(i.type), text(i.shape)));
  }
  if (info.json) print_json(out);
}

// -- models ---------------------------------------------------------------------------------------------------------

std::string limits(const Joint& j) { return j.limited ? fmt::format("{:.4g} … {:.4g}", j.range[0], j.range[1]) : ""; }

std::string parent_name(const Model& m, const Joint& j) {
  return j.parent < 0 ? "(world)" : m.joints[std::size_t(j.parent)].name;
}

void print_model(const Model& m, const std::string& path) {
  fmt::print("model {}\n", path);
  row("name", m.name);
  row("sizes",
      fmt::format("{} bodies, {} joints, nq {}, nv {}, depth {} DoFs", m.nbody() - 1, m.njoint(), m.nq, m.nv, m.depth));
  row("mass", fmt::format("{:.6g} kg", m.total_mass()));
  row("timestep", fmt::format("{:g} s", m.timestep));
  row("gravity", fmt::format("{:g} {:g} {:g} m/s²", m.gravity.x, m.gravity.y, m.gravity.z));
  row("also", fmt::format("{} meshes, {} actuators, {} equalities, {} tendons, {} keyframes, {} sensors (kept)",
                          m.spec.meshes.size(), m.spec.actuators.size(), m.spec.equalities.size(),
                          m.spec.tendons.size(), m.spec.keyframes.size(), m.spec.sensors.size()));
  if (m.njoint() > 0)
    fmt::print("\n  {:<24}{:<7}{:>5}{:>6}  {:<24}{:<20}{:>10}{:>10}{:>10}\n", "joint", "type", "qpos", "qvel", "parent",
               "limits", "armature", "damping", "stiffness");
  for (const Joint& j : m.joints) {
    fmt::print("  {:<24}{:<7}{:>5}{:>6}  {:<24}{:<20}{:>10.4g}{:>10.4g}{:>10.4g}\n", j.name, name(j.type), j.qpos,
               j.qvel, parent_name(m, j), limits(j), j.armature, j.damping, j.stiffness);
  }
  fmt::print("\n  {:<24}{:<24}{:>12}\n", "body", "parent", "mass [kg]");
  for (int b = 1; b < m.nbody(); ++b) {
    const Body& body = m.bodies[std::size_t(b)];
    fmt::print("  {:<24}{:<24}{:>12.6g}\n", body.name, m.bodies[std::size_t(body.parent)].name, body.mass);
  }
}

nlohmann::json json_model(const Model& m, const std::string& path) {
  nlohmann::json out{{"kind", "model"},
                     {"file", path},
                     {"name", m.name},
                     {"nq", m.nq},
                     {"nv", m.nv},
                     {"depth", m.depth},
                     {"mass", m.total_mass()},
                     {"timestep", m.timestep},
                     {"gravity", {m.gravity.x, m.gravity.y, m.gravity.z}}};
  out["joints"] = nlohmann::json::array(), out["bodies"] = nlohmann::json::array();
  for (const Joint& j : m.joints) {
    nlohmann::json joint{{"name", j.name},
                         {"type", name(j.type)},
                         {"qpos", j.qpos},
                         {"qvel", j.qvel},
                         {"body", m.bodies[std::size_t(j.body)].name},
                         {"armature", j.armature},
                         {"damping", j.damping},
                         {"stiffness", j.stiffness}};
    if (j.limited) joint["range"] = {j.range[0], j.range[1]};
    out["joints"].push_back(joint);
  }
  for (int b = 1; b < m.nbody(); ++b) {
    const Body& body = m.bodies[std::size_t(b)];
    out["bodies"].push_back(
        {{"name", body.name}, {"parent", m.bodies[std::size_t(body.parent)].name}, {"mass", body.mass}});
  }
  return out;
}

// -- clips ----------------------------------------------------------------------------------------------------------

void print_clip(const MotionClip& c) {
  fmt::print("clip {}\n", c.file);
  row("name", fmt::format("{} ({})", c.name, c.format));
  row("frames", fmt::format("{}, {:.6g} s, {}", c.frame_count(), c.duration(), c.loop ? "loops" : "does not loop"));
  row("axes", fmt::format("up {:g} {:g} {:g}, forward {:g} {:g} {:g}", c.up.x, c.up.y, c.up.z, c.forward.x, c.forward.y,
                          c.forward.z));
  fmt::print("\n  {:<28}{:<13}{:>28}\n", "channel", "kind", "min … max");
  for (const ClipChannel& channel : c.channels) {
    const Range r = joint_range(c.values, c.width, channel.column, width(channel.kind));
    fmt::print("  {:<28}{:<13}{:>28}\n", channel.name, name(channel.kind),
               fmt::format("{:.4g} … {:.4g}", r.low, r.high));
  }
  if (!c.diagnostics.empty()) fmt::print("\n  repaired or not used:\n");
  for (const Diagnostic& d : c.diagnostics) fmt::print("  {}\n", d.text());
}

nlohmann::json json_clip(const MotionClip& c) {
  nlohmann::json out{{"kind", "clip"},          {"file", c.file}, {"name", c.name},
                     {"format", c.format},      {"loop", c.loop}, {"frames", c.frame_count()},
                     {"duration", c.duration()}};
  out["channels"] = nlohmann::json::array(), out["repairs"] = nlohmann::json::array();
  for (const ClipChannel& channel : c.channels) {
    out["channels"].push_back(
        {{"name", channel.name},
         {"kind", name(channel.kind)},
         {"range", to_json(joint_range(c.values, c.width, channel.column, width(channel.kind)))}});
  }
  for (const Diagnostic& d : c.diagnostics) out["repairs"].push_back(d.text());
  return out;
}

void info_clip(const Info& info) {
  const MotionClip clip = read_clip(info.path);
  info.json ? print_json(json_clip(clip)) : print_clip(clip);
}

void info_npz(const Info& info) {
  {
    NpzReader npz(info.path);
    if (npz.has("trans") && (npz.has("poses") || npz.has("root_orient"))) return info_clip(info);  // AMASS
    if (!npz.has("meta")) return plain_npz(npz, info);
  }
  const Recording r = read_recording(info.path);
  if (info.json)
    print_json(json_recording(r));
  else
    print_recording(r);
}

void run(const Info& info) {
  const FileKind kind = kind_of(info.path);
  if (kind != FileKind::model) refuse_read_options(info.options, "a model file, to which these options apply");
  switch (kind) {
    case FileKind::npz: return info_npz(info);
    case FileKind::model: {
      const Model model = load_model(info.path, info.options, info.json);
      return info.json ? print_json(json_model(model, info.path)) : print_model(model, info.path);
    }
    case FileKind::clip: return info_clip(info);
  }
}

}  // namespace

void add_info_command(CLI::App& app) {
  auto info = std::make_shared<Info>();
  CLI::App* command = app.add_subcommand("info", "Show the content of a file: a recording, a model or a clip");
  command
      ->add_option("file", info->path,
                   "Recording (.npz), model (MJCF, URDF) or clip (BVH, AMC, AMASS, DeepMimic, MimicKit, this project's "
                   "format); detected from the content")
      ->required();
  add_read_options(*command, info->options);
  command->add_flag("--json", info->json, "One JSON object instead of tables");
  command->footer(
      "For a recording: arrays, duration and the range of each joint. For a model: sizes, joints and "
      "masses. For a clip: channels and\n"
      "repairs. In Python, numpy.load(FILE)[\"qpos\"] reads an array of a recording.\n"
      "\n"
      "  tarsus info models/humanoid.xml\n"
      "  tarsus info models/clips/humanoid_walk.json\n"
      "  tarsus info out/humanoid.npz --json\n"
      "\n"
      "More: docs/models.md, docs/clips.md.");
  command->callback([info] { run(*info); });
}

}  // namespace tarsus::app
