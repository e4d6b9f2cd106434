#include "io/mjcf/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

namespace tarsus::mjcf {
namespace {

constexpr std::size_t kMostIncludes = 1'000, kMostClasses = 10'000;
constexpr std::size_t kMostIncludedBytes = 64u << 20;

/// Replaces backslashes in paths that were written on Windows.
std::filesystem::path portable(std::string text) {
  for (char& c : text) {
    if (c == '\\') c = '/';
  }
  return text;
}

std::string identity(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::filesystem::path path = std::filesystem::weakly_canonical(file, ignored);
  return ignored ? file.string() : path.string();
}

bool is_there(const std::filesystem::path& file) {
  std::error_code ignored;
  return std::filesystem::exists(file, ignored);
}

}  // namespace

Source::Source(XmlDocument main, std::filesystem::path directory, const ReadOptions& options, DiagnosticSink& sink)
    : directory_(std::move(directory)) {
  files_.insert(identity(main.file()));
  documents_.push_back(std::move(main));
  load_includes(options, sink);
  for (const XmlElement& e : items(root())) {
    if (e.is("compiler")) read_compiler(e, compiler_);
  }
  classes_.emplace("", std::make_unique<Defaults>());
  for (const XmlElement& e : items(root())) {
    if (e.is("default")) read_defaults(e);
  }
}

void Source::load_includes(const ReadOptions& options, DiagnosticSink& sink) {
  for (std::size_t i = 0; i < documents_.size(); ++i) {  // documents_ grows in the loop
    for (const XmlElement& e : documents_[i].root().below("include")) load_include(e, options, sink);
  }
}

void Source::load_include(const XmlElement& e, const ReadOptions& options, DiagnosticSink& sink) {
  std::string file;
  const bool named = require(e, "file") && e.read("file", file);
  e.report_unread(Severity::error);
  if (!named) return;
  if (options.disable_includes) return e.error("<include> is not allowed here", "file");
  const std::filesystem::path relative = portable(file);
  if (file.empty() || relative.is_absolute()) {
    return e.error(fmt::format("{} is not a path relative to the model's file", quote(file)), "file");
  }
  if (file.find("..") != std::string::npos && *relative.lexically_normal().begin() == "..") {
    e.warn("the included file is outside of the model's folder", "file");
  }
  std::filesystem::path path = directory_ / relative;
  if (!is_there(path)) {
    const std::filesystem::path beside = folder_of(e.where()) / relative;
    if (is_there(beside)) path = beside;
  }
  if (!files_.insert(identity(path)).second) {
    return e.error(fmt::format("{} is included twice, or includes itself", quote(file)), "file");
  }
  if (documents_.size() > kMostIncludes)
    return e.error(fmt::format("more than {} included files", kMostIncludes), "file");
  XmlLimits limits;
  limits.bytes = std::min(limits.bytes, kMostIncludedBytes - included_bytes_);
  try {
    documents_.push_back(XmlDocument::load(path, sink, limits, e.where("file")));
  } catch (const InputError& error) {
    for (const Diagnostic& d : error.diagnostics()) sink.add(d.severity, d.where, d.message);
    return;
  }
  std::error_code ignored;
  included_bytes_ += std::min<std::size_t>(std::filesystem::file_size(path, ignored), limits.bytes);
  included_.emplace(e.id(), documents_.back().root());
}

std::vector<XmlElement> Source::items(const XmlElement& parent) const {
  std::vector<XmlElement> out, open = parent.children();
  std::reverse(open.begin(), open.end());
  while (!open.empty()) {
    const XmlElement e = open.back();
    open.pop_back();
    if (!e.is("include")) {
      out.push_back(e);
      continue;
    }
    const auto file = included_.find(e.id());
    if (file == included_.end()) continue;  // already reported by load_include()
    std::vector<XmlElement> inner = file->second.children();
    open.insert(open.end(), inner.rbegin(), inner.rend());
  }
  return out;
}

std::vector<XmlElement> Source::section(std::string_view name) const {
  std::vector<XmlElement> out;
  for (const XmlElement& e : items(root())) {
    if (!e.is(name)) continue;
    const std::vector<XmlElement> inner = items(e);
    out.insert(out.end(), inner.begin(), inner.end());
  }
  return out;
}

bool Source::has_section(std::string_view name) const {
  const std::vector<XmlElement> all = items(root());
  return std::any_of(all.begin(), all.end(), [&](const XmlElement& e) { return e.is(name); });
}

Defaults* Source::open_class(const XmlElement& e, Defaults* parent) {
  std::string name;
  const bool named = e.read("class", name);
  e.mark_all_children();
  e.report_unread(Severity::error);
  if (!parent) {
    if (named && name != "main")
      e.error(fmt::format("the top default class is named {}, expected \"main\" or no name", quote(name)), "class");
    return classes_.find("")->second.get();
  }
  if (!named || name.empty()) {
    e.error("a nested default class needs a name ('class')");
    return nullptr;
  }
  if (name == "main" || classes_.count(name) > 0) {
    e.error(fmt::format("default class {} is defined twice", quote(name)), "class");
    return nullptr;
  }
  if (classes_.size() >= kMostClasses) {
    e.error(fmt::format("more than {} default classes", kMostClasses));
    return nullptr;
  }
  auto copy = std::make_unique<Defaults>(*parent);
  copy->actuator.outer_laws = copy->actuator.laws.size();
  return (classes_[name] = std::move(copy)).get();
}

void Source::read_defaults(const XmlElement& top) {
  std::vector<std::pair<XmlElement, Defaults*>> open{{top, nullptr}};
  while (!open.empty()) {
    const auto [e, parent] = open.back();
    open.pop_back();
    Defaults* defaults = open_class(e, parent);
    if (!defaults) continue;
    const std::vector<XmlElement> children = items(e);
    std::set<std::string_view> seen;
    for (const XmlElement& child : children) {
      if (child.is("default")) continue;
      if (!seen.insert(child.name()).second)
        child.error(fmt::format("a second <{}> in one default class", child.name()));
      read_default_element(child, *defaults);
    }
    for (auto child = children.rbegin(); child != children.rend(); ++child) {
      if (child->is("default")) open.emplace_back(*child, defaults);
    }
  }
}

/// What elements of <default> do not have, beside a name and a class.
constexpr std::pair<std::string_view, std::string_view> kNotInClasses[] = {
    {"texture", "content_type file fileback filedown filefront fileleft fileright fileup"},
    {"camera", "target"},
    {"light", "target texture"},
    {"muscle", "tausmooth"},
    {"actuator", "lengthrange"}};

void Source::read_default_element(const XmlElement& e, Defaults& defaults) {
  for (const char* attribute : {"name", "class"}) {
    if (e.has(attribute))
      e.error(fmt::format("<{}> of <default> has no attribute '{}'", e.name(), attribute), attribute);
  }
  for (const auto& [element, attributes] : kNotInClasses) {
    if (!e.is(element) && !(element == "actuator" && is_actuator(e.name()))) continue;
    for (const std::string_view attribute : split_blanks(attributes)) {
      const std::string name(attribute);
      if (e.has(name.c_str()))
        e.error(fmt::format("<{}> of <default> has no attribute '{}'", e.name(), name), name.c_str());
    }
  }
  static constexpr std::string_view kLooks[] = {"material", "texture", "camera", "light"};
  for (const std::string_view look : kLooks) {
    if (!e.is(look)) continue;
    refuse_unknown(e);
    for (const XmlElement& layer : e.children()) refuse_unknown(layer);
    if (e.is("camera"))
      e.read("pos", defaults.camera.position), read_orientation(e, compiler_, defaults.camera.orientation);
    if (e.is("light")) e.read("pos", defaults.light.position), e.read("dir", defaults.light_direction);
    return overlay(e.all_attributes(), defaults.looks[std::string(look)]);
  }
  if (e.is("joint"))
    overlay(e, compiler_, defaults.joint);
  else if (e.is("geom"))
    overlay(e, compiler_, defaults.geom);
  else if (e.is("site"))
    overlay(e, compiler_, defaults.site);
  else if (e.is("equality"))
    overlay(e, defaults.equality);
  else if (e.is("tendon"))
    overlay(e, defaults.tendon);
  else if (e.is("pair"))
    overlay(e, defaults.pair);
  else if (is_actuator(e.name()))
    overlay(e, defaults.actuator);
  else if (e.is("mesh")) {
    e.read("scale", defaults.mesh_scale);
    read_word(e, "inertia", {"convex", "exact", "legacy", "shell"}, defaults.mesh_inertia);
    check_hull_limit(e);
    e.unsupported({"maxhullvert"});
  } else {
    return e.error(fmt::format("<{}> is not an element of <default>", e.name()));
  }
  e.report_unread(Severity::error);
}

const Defaults& Source::defaults(const XmlElement& e, const Defaults& otherwise, const char* attribute) const {
  const auto name = e.attribute(attribute);
  if (!name) return otherwise;
  if (*name == "main") return main_defaults();
  const auto found = classes_.find(*name);
  if (found != classes_.end() && !name->empty()) return *found->second;
  e.error(fmt::format("default class {} is not defined", quote(*name)), attribute);
  return otherwise;
}

/// The folder of the file that names a path. Text without a file counts as in the main folder.
std::filesystem::path Source::folder_of(const Location& used_at) const {
  const std::filesystem::path folder = std::filesystem::path(used_at.file).parent_path();
  return folder.empty() ? directory_ : folder;
}

std::filesystem::path Source::model_path(const std::string& file, const Location& used_at) const {
  const std::filesystem::path beside = folder_of(used_at) / portable(file);
  return is_there(beside) ? beside : directory_ / portable(file);
}

std::filesystem::path Source::asset_path(const std::string& file, const std::string& folder,
                                         const Location& used_at) const {
  std::filesystem::path name = portable(file);
  if (compiler_.strip_path) name = name.filename();
  if (name.is_absolute()) return name;
  const std::filesystem::path path = directory_ / portable(folder) / name;
  if (is_there(path)) return path;
  const std::filesystem::path beside = folder_of(used_at);
  for (const std::filesystem::path& other : {beside / name, beside / portable(folder) / name, directory_ / name}) {
    if (is_there(other)) return other;
  }
  return path;
}

}  // namespace tarsus::mjcf
