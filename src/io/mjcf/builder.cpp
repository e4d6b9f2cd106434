#include "io/mjcf/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tarsus/io/mjcf.hpp"

namespace tarsus {
namespace mjcf {

const char* name(Kind kind) {
  static constexpr const char* kNames[] = {
      "body",     "joint",  "geom",     "site",     "mesh",   "height field", "material",
      "texture",  "skin",   "actuator", "equality", "tendon", "contact pair", "contact exclude",
      "keyframe", "sensor", "camera",   "light",    "custom", "model"};
  return kNames[static_cast<int>(kind)];
}

bool Builder::declare(Kind kind, const std::string& name, const XmlElement& e, const Scope* scope) {
  auto& names = names_[static_cast<int>(kind)];
  if (name.empty()) return true;
  if (scope && !scope->naming.suffix.empty()) {
    const std::string original = scope->naming.prefix + e.text("name");
    replicas_[fmt::format("{}/{}", static_cast<int>(kind), original)].push_back(scope->naming.suffix);
  }
  // Bodies and joints are numbered in the order of the spec; for the others only presence counts, or the caller sets
  // it.
  const int number = kind == Kind::body     ? static_cast<int>(spec_.bodies.size())
                     : kind == Kind::joint  ? static_cast<int>(joint_place_.size())
                     : kind == Kind::tendon ? static_cast<int>(spec_.tendons.size())
                                            : static_cast<int>(names.size());
  if (names.emplace(name, number).second) return true;
  const std::string message = fmt::format("a second {} is named {}", mjcf::name(kind), quote(name));
  const bool looks = kind == Kind::material || kind == Kind::texture || kind == Kind::camera || kind == Kind::light;
  looks ? e.warn(message, "name") : e.error(message, "name");
  return false;
}

int Builder::find(Kind kind, const std::string& name) const {
  const auto& names = names_[static_cast<int>(kind)];
  const auto found = names.find(name);
  return found == names.end() ? -1 : found->second;
}

int Builder::reference(const XmlElement& e, const char* attribute, Kind kind, const Scope& scope,
                       std::string* full_name) {
  const auto text = e.attribute(attribute);
  if (!text) return -1;
  const std::string base(*text);
  if (full_name) full_name->clear();
  if (kind == Kind::body && base == "world") return 0;
  std::string full = scope.naming.of(base);
  int found = find(kind, full);
  if (found < 0) found = find(kind, full = scope.naming.prefix + base);
  if (found < 0) {
    if (scope.level == 0) e.error(fmt::format("there is no {} named {}", mjcf::name(kind), quote(base)), attribute);
    return -2;
  }
  if (full_name) *full_name = full;
  return found;
}

std::vector<Scope> Builder::instances(const XmlElement& e, const Scope& scope,
                                      std::initializer_list<std::pair<const char*, Kind>> references) {
  for (const auto& [attribute, kind] : references) {
    const auto text = e.attribute(attribute);
    if (!text || find(kind, scope.naming.of(*text)) >= 0) continue;
    const auto replicas =
        replicas_.find(fmt::format("{}/{}", static_cast<int>(kind), scope.naming.prefix + std::string(*text)));
    if (replicas == replicas_.end()) continue;
    std::vector<Scope> out;
    for (const std::string& suffix : replicas->second) {
      out.push_back(scope);
      out.back().naming.suffix = suffix;
    }
    return out;
  }
  return {scope};
}

ModelSpec Builder::build(const Source& main, std::string directory) {
  const XmlElement root = main.root();
  if (!root.is("mujoco"))
    throw InputError(root.where(), fmt::format("the root element is <{}>, expected <mujoco>", root.name()));
  spec_.name = root.text("model", "MuJoCo Model");
  spec_.directory = std::move(directory);
  body_compiler_.front() = &main.compiler();
  names_[static_cast<int>(Kind::body)].emplace("world", 0);
  root.report_unread(Severity::error);
  const Scope scope{&main, {}, 0};
  read_settings(scope);
  assets_read_.insert({&main, ""});
  read_assets(scope);
  walk(scope);
  settle_inertias();
  read_sections(scope);
  for (const Scope& attachment : attachments_) read_sections(attachment);
  sink_.throw_if_failed();
  settle_by_inertia();
  sink_.throw_if_failed();
  name_default_softness(root);
  spec_.diagnostics = sink_.take();
  return std::move(spec_);
}

namespace {

ModelSpec read(XmlDocument document, DiagnosticSink& sink, const std::filesystem::path& directory,
               const ReadOptions& options) {
  const Source source(std::move(document), directory, options, sink);
  return Builder(options, sink).build(source, directory.string());
}

/// An error thrown half-way takes the ones collected before with it.
template <class Read>
ModelSpec with_all_errors(Read&& read) {
  DiagnosticSink sink;
  try {
    return read(sink);
  } catch (const InputError& error) {
    Diagnostics all = sink.take();
    for (const Diagnostic& d : error.diagnostics()) {
      const bool known = std::any_of(all.begin(), all.end(), [&](const Diagnostic& o) { return o.text() == d.text(); });
      if (!known) all.push_back(d);
    }
    throw InputError(std::move(all));
  }
}

}  // namespace
}  // namespace mjcf

ModelSpec read_mjcf(const std::filesystem::path& file, const ReadOptions& options) {
  return mjcf::with_all_errors([&](DiagnosticSink& sink) {
    XmlDocument document = XmlDocument::load(file, sink);
    return mjcf::read(std::move(document), sink, file.parent_path(), options);
  });
}

ModelSpec parse_mjcf(std::string text, const std::string& name, const std::filesystem::path& directory,
                     const ReadOptions& options) {
  return mjcf::with_all_errors([&](DiagnosticSink& sink) {
    return mjcf::read(XmlDocument::parse(std::move(text), name, sink), sink, directory, options);
  });
}

}  // namespace tarsus
