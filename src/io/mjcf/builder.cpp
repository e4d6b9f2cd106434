#include "io/mjcf/builder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io/model_origin.hpp"
#include "tarsus/constraint/contact_geometry.hpp"
#include "tarsus/io/mjcf.hpp"

namespace tarsus {
namespace mjcf {

const char* name(Kind kind) {
  static constexpr const char* kNames[] = {
      "body",    "joint",    "geom",     "site",    "mesh",         "height field",    "material",
      "texture", "actuator", "equality", "tendon",  "contact pair", "contact exclude", "keyframe",
      "sensor",  "camera",   "light",    "numeric", "text",         "tuple",           "frame"};
  return kNames[static_cast<int>(kind)];
}

std::vector<Reference> references(const XmlElement& e) {
  static constexpr Reference kReferences[] = {{"joint", Kind::joint},       {"joint1", Kind::joint},
                                              {"joint2", Kind::joint},      {"jointinparent", Kind::joint},
                                              {"site", Kind::site},         {"site1", Kind::site},
                                              {"site2", Kind::site},        {"refsite", Kind::site},
                                              {"sidesite", Kind::site},     {"cranksite", Kind::site},
                                              {"slidersite", Kind::site},   {"geom", Kind::geom},
                                              {"geom1", Kind::geom},        {"geom2", Kind::geom},
                                              {"body", Kind::body},         {"body1", Kind::body},
                                              {"body2", Kind::body},        {"subtree1", Kind::body},
                                              {"subtree2", Kind::body},     {"tendon", Kind::tendon},
                                              {"tendon1", Kind::tendon},    {"tendon2", Kind::tendon},
                                              {"actuator", Kind::actuator}, {"camera", Kind::camera},
                                              {"mesh", Kind::mesh}};
  static constexpr std::pair<std::string_view, Kind> kObjects[] = {
      {"body", Kind::body},         {"xbody", Kind::body},          {"geom", Kind::geom},
      {"site", Kind::site},         {"joint", Kind::joint},         {"tendon", Kind::tendon},
      {"actuator", Kind::actuator}, {"camera", Kind::camera},       {"light", Kind::light},
      {"mesh", Kind::mesh},         {"hfield", Kind::height_field}, {"texture", Kind::texture},
      {"material", Kind::material}, {"pair", Kind::pair},           {"exclude", Kind::exclude},
      {"equality", Kind::equality}, {"sensor", Kind::sensor},       {"numeric", Kind::numeric},
      {"text", Kind::text},         {"tuple", Kind::tuple}};
  std::vector<Reference> out;
  for (const Reference& reference : kReferences) {
    if (e.peek(reference.attribute)) out.push_back(reference);
  }
  for (const auto& [type, attribute] : {std::pair("objtype", "objname"), std::pair("reftype", "refname")}) {
    for (const auto& [object, kind] : kObjects) {
      if (e.peek(type) == object && e.peek(attribute)) out.push_back({attribute, kind});
    }
  }
  return out;
}

bool Builder::declare(Kind kind, const std::string& name, const XmlElement& e, const Scope* scope) {
  auto& names = names_[static_cast<int>(kind)];
  if (name.empty()) return true;
  if (scope && scope->replica > 0) {
    const std::string original = name.substr(0, name.size() - scope->naming.suffix.size());
    replicas_.made[fmt::format("{}/{}", static_cast<int>(kind), original)].insert(scope->replica);
  }
  // Bodies, joints and tendons are numbered in the order in which they are read. Of other kinds only the presence is
  // used, or the caller sets the number.
  const int number = kind == Kind::body     ? static_cast<int>(spec_.bodies.size())
                     : kind == Kind::joint  ? static_cast<int>(joint_place_.size())
                     : kind == Kind::tendon ? static_cast<int>(spec_.tendons.size())
                                            : static_cast<int>(names.size());
  if (names.emplace(name, number).second) return true;
  e.error(fmt::format("a second {} is named {}", mjcf::name(kind), quote(name)), "name");
  return false;
}

namespace {

/// Whether a body's name means the world. If a model's world was attached as a body, "world" means the world only in
/// that model's equalities.
bool is_world(const XmlElement& e, const Scope& scope, std::string_view name) {
  return name == "world" && (!scope.world_is_body || e.is("connect") || e.is("weld"));
}

}  // namespace

int Builder::find(Kind kind, const std::string& name) const {
  const auto& names = names_[static_cast<int>(kind)];
  const auto found = names.find(name);
  return found == names.end() ? -1 : found->second;
}

JointSpec& Builder::joint(int number) {
  const auto [body, place] = joint_place_[static_cast<std::size_t>(number)];
  return spec_.bodies[static_cast<std::size_t>(body)].joints[static_cast<std::size_t>(place)];
}

int Builder::reference(const XmlElement& e, const char* attribute, Kind kind, const Scope& scope,
                       std::string* full_name) {
  const auto text = e.attribute(attribute);
  if (!text) return -1;
  const std::string base(*text);
  if (full_name) full_name->clear();
  if (kind == Kind::body && is_world(e, scope, base)) return 0;
  std::string full;
  int found = -1;
  for (int replica = scope.replica;; replica = replicas_.all[static_cast<std::size_t>(replica)].outer) {
    full = scope.naming.prefix + base + replicas_.all[static_cast<std::size_t>(replica)].suffix;
    found = find(kind, full);
    if (found >= 0 || replica == 0) break;
  }
  if (found < 0 && kind == Kind::actuator && replicas_.actuators_left_out.count(full) > 0) {
    e.warn(
        fmt::format("this element refers to actuator {}, which was left out, so it is left out as well", quote(base)));
    return -2;
  }
  if (found < 0) {
    const char* why = made_in(kind, full) ? ": no replica contains all the elements that are named here" : "";
    const std::string text = fmt::format("there is no {} named {}{}", mjcf::name(kind), quote(base), why);
    if (scope.level == 0)
      e.error(text, attribute);
    else
      e.note(text + " in the attached model: this element is left out", attribute);
    return -2;
  }
  if (full_name) *full_name = full;
  return found;
}

const std::set<int>* Builder::made_in(Kind kind, const std::string& name) const {
  const auto found = replicas_.made.find(fmt::format("{}/{}", static_cast<int>(kind), name));
  return found == replicas_.made.end() ? nullptr : &found->second;
}

void Builder::refuse_ambiguous(const XmlElement& e, const Reference& reference, const Scope& scope) const {
  const std::string name(*e.peek(reference.attribute)), full = scope.naming.of(name);
  for (std::size_t i = 1; i < replicas_.all.size(); ++i) {
    const std::string& suffix = replicas_.all[i].suffix;
    if (!full.ends_with(suffix)) continue;
    const std::string original = full.substr(0, full.size() - suffix.size());
    const std::set<int>* replicas = made_in(reference.kind, original);
    if (!replicas || replicas->count(static_cast<int>(i)) == 0) continue;
    return e.error(fmt::format("{0} {1} is replicated, but a replica of {0} {2} has that name too: "
                               "give the <replicate> another sep, such as \"_\"",
                               mjcf::name(reference.kind), quote(name), quote(original)),
                   reference.attribute);
  }
}

std::vector<Scope> Builder::instances(const XmlElement& e, const Scope& scope, bool whole) {
  std::vector<const std::set<int>*> made;
  bool outside = false;
  const bool tendon = e.is("fixed") || e.is("spatial");
  for (const XmlElement& part : tendon ? scope.source->items(e) : std::vector{e}) {
    for (const Reference& reference : references(part)) {
      const Kind kind = reference.kind;
      const std::string name(*part.peek(reference.attribute));
      if (kind == Kind::body && is_world(part, scope, name)) continue;
      const std::set<int>* replicas = made_in(kind, scope.naming.prefix + name);
      if (replicas && find(kind, scope.naming.of(name)) >= 0) {
        if (replicas->count(scope.replica) == 0) refuse_ambiguous(part, reference, scope);
        replicas = nullptr;
      }
      replicas ? made.push_back(replicas) : void(outside = true);
    }
  }
  if (made.empty()) return {scope};
  std::set<int> candidates;
  for (const auto* replicas : made) candidates.insert(replicas->begin(), replicas->end());
  const auto outer = [&](int replica) { return replicas_.all[static_cast<std::size_t>(replica)].outer; };
  bool found = false;
  std::vector<Scope> out;
  for (const int replica : candidates) {
    const auto has = [&](const std::set<int>* replicas) { return replicas->count(replica) > 0; };
    const auto reaches = [&](const std::set<int>* replicas) {
      int r = replica;
      while (r > 0 && replicas->count(r) == 0) r = outer(r);
      return r > 0;
    };
    int r = replica;
    while (r > scope.replica) r = outer(r);
    if (r != scope.replica || !std::all_of(made.begin(), made.end(), reaches)) continue;
    found = true;
    if (whole && (outside || !std::all_of(made.begin(), made.end(), has))) continue;
    out.push_back(scope);
    out.back().replica = replica;
    out.back().naming.suffix = replicas_.all[static_cast<std::size_t>(replica)].suffix;
  }
  if (!found) return {scope};  // the element's reader reports what is missing
  if (out.empty()) {
    e.all_attributes();
    if (const auto name = e.peek("name"))
      replicas_.actuators_left_out.insert(scope.naming.of(*name));  // not used for equalities
    e.warn(fmt::format("this <{}> refers both to replicated elements and to others, so it is left out", e.name()));
  }
  return out;
}

/// Reads the bodies. Returns the scopes of the main model and of the models that it attaches.
std::vector<Scope> Builder::read_bodies(const Source& main) {
  names_[static_cast<int>(Kind::body)].emplace("world", 0);
  std::vector<Scope> scopes{{&main, {}, 0}};
  walk(scopes.front());
  scopes.insert(scopes.end(), attachments_.begin(), attachments_.end());
  return scopes;
}

ModelSpec Builder::build(const Source& main, std::string directory) {
  const XmlElement root = main.root();
  if (!root.is("mujoco"))
    throw InputError(root.where(), fmt::format("the root element is <{}>, expected <mujoco>", root.name()));
  spec_.name = root.text("model", "MuJoCo Model");
  spec_.directory = std::move(directory);
  spec_.bodies[0].where = root.where();
  root.report_unread(Severity::error);
  body_compiler_.front() = &main.compiler();
  read_settings({&main, {}, 0});
  assets_read_.insert({&main, ""});
  read_assets({&main, {}, 0});
  const std::vector<Scope> scopes = read_bodies(main);
  check_looks();
  settle_inertias();
  for (std::size_t i = 0; i < spec_.meshes.size(); ++i)
    if (!spec_.meshes[i].triangles.empty())
      mesh_mass(int(i), nullptr);  // reports meshes that no mass can be computed of
  read_sections(scopes);
  read_keyframes(scopes);
  sink_.throw_if_failed();
  settle_by_inertia();
  sink_.throw_if_failed();
  for (const Diagnostic& d : contact_findings(spec_)) sink_.add(d.severity, d.where, d.message);
  name_default_softness(root);
  const auto add_files = [&](const Source& source) {
    spec_.files.insert(spec_.files.end(), source.files().begin(), source.files().end());
  };
  add_files(main);
  for (const auto& [path, source] : sources_) {
    if (source) add_files(*source);
  }
  spec_.diagnostics = sink_.take();
  return std::move(spec_);
}

namespace {

ModelSpec read(XmlDocument document, DiagnosticSink& sink, const std::filesystem::path& directory,
               const ReadOptions& options, const std::filesystem::path& file = {}) {
  const Source source(std::move(document), directory, options, sink);
  ModelSpec spec = Builder(options, sink).build(source, directory.string());
  spec.origin = model_origin(file, options);
  return spec;
}

/// Runs `read`. An InputError that it throws also gets the errors collected before.
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
    return mjcf::read(std::move(document), sink, file.parent_path(), options, file);
  });
}

ModelSpec parse_mjcf(std::string text, const std::string& name, const std::filesystem::path& directory,
                     const ReadOptions& options) {
  return mjcf::with_all_errors([&](DiagnosticSink& sink) {
    return mjcf::read(XmlDocument::parse(std::move(text), name, sink), sink, directory, options);
  });
}

}  // namespace tarsus
