#include "tarsus/io/xml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <pugixml.hpp>
#include <system_error>

#include "xml_scan.hpp"

namespace tarsus {

struct XmlDocument::State {
  std::string file;
  std::string text;                  ///< names and values in the tree point into it
  std::size_t begin = 0;             ///< offset behind a byte order mark
  std::vector<std::uint32_t> lines;  ///< offset of each line's first byte
  mutable std::vector<bool> read;    ///< [offset of a name] whether the element or attribute was read
  pugi::xml_document tree;
  DiagnosticSink* sink = nullptr;

  std::size_t offset(const char* name) const { return static_cast<std::size_t>(name - text.data()); }
  Location place(std::size_t at) const {
    const auto line = std::upper_bound(lines.begin(), lines.end(), at) - 1;
    return {file, static_cast<int>(line - lines.begin()) + 1, static_cast<int>(at - *line) + 1, {}};
  }
};

namespace {

/// Passes over NUL bytes at the end and blanks before <?xml, which occur in real files, with a note for each.
void clean_ends(XmlDocument::State& state) {
  std::string& text = state.text;
  const std::size_t last = text.find_last_not_of('\0');
  if (last == std::string::npos) text.clear();
  if (last != std::string::npos && last + 1 < text.size()) {
    state.sink->add(Severity::note, {state.file, 0, 0, {}},
                    fmt::format("{} NUL bytes at the end are ignored", text.size() - last - 1));
    text.resize(last + 1);
  }
  if (text.compare(0, 3, "\xEF\xBB\xBF") == 0) state.begin = 3;
  if (text.compare(0, 2, "\xFF\xFE") == 0 || text.compare(0, 2, "\xFE\xFF") == 0) {
    throw InputError({state.file, 1, 1, {}}, "the file is UTF-16, expected UTF-8");
  }
  const std::size_t word = text.find_first_not_of(" \t\r\n", state.begin);
  if (word == std::string::npos) throw InputError({state.file, 1, 1, {}}, "the file is empty");
  if (word > state.begin && text.compare(word, 5, "<?xml") == 0) {
    state.sink->add(Severity::note, {state.file, 1, 1, {}}, "blanks before <?xml are ignored");
  }
}

void find_lines(XmlDocument::State& state) {
  state.lines.push_back(static_cast<std::uint32_t>(state.begin));
  for (std::size_t i = state.text.find('\n'); i != std::string::npos; i = state.text.find('\n', i + 1)) {
    state.lines.push_back(static_cast<std::uint32_t>(i + 1));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& file, std::size_t most_bytes, const Location& used_at) {
  const Location where = used_at.file.empty() ? Location{file.string(), 0, 0, {}} : used_at;
  const auto fail = [&](const std::string& message) {
    throw InputError(where, fmt::format("{}: {}", quote(file.string(), 300), message));
  };
  if (file.native().find('\0') != std::string::npos || file.native().size() > 4000) fail("is not a file name");
  std::error_code status_error;
  const auto status = std::filesystem::status(file, status_error);
  if (status.type() == std::filesystem::file_type::not_found) fail("no such file");
  if (status_error) fail(status_error.message());
  if (status.type() == std::filesystem::file_type::directory) fail("is a directory");
  if (status.type() != std::filesystem::file_type::regular) fail("is not a regular file");
  const std::uintmax_t size = std::filesystem::file_size(file, status_error);
  if (status_error) fail(status_error.message());
  if (size > most_bytes) fail(fmt::format("has {} bytes, expected at most {}", size, most_bytes));
  std::ifstream in(file, std::ios::binary);
  if (!in) fail("cannot be opened");
  std::string text(size, '\0');
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (static_cast<std::uintmax_t>(in.gcount()) != size) fail("cannot be read to its end");
  return text;
}

XmlDocument::XmlDocument(std::unique_ptr<State> state) : state_(std::move(state)) {}
XmlDocument::XmlDocument(XmlDocument&&) noexcept = default;
XmlDocument& XmlDocument::operator=(XmlDocument&&) noexcept = default;
XmlDocument::~XmlDocument() = default;

XmlDocument XmlDocument::load(const std::filesystem::path& file, DiagnosticSink& sink, const XmlLimits& limits,
                              const Location& used_at) {
  return parse(read_file(file, limits.bytes, used_at), file.string(), sink, limits);
}

XmlDocument XmlDocument::parse(std::string text, const std::string& name, DiagnosticSink& sink,
                               const XmlLimits& limits) {
  if (text.size() > limits.bytes) {
    throw InputError({name, 0, 0, {}}, fmt::format("has {} bytes, expected at most {}", text.size(), limits.bytes));
  }
  auto state = std::make_unique<State>();
  state->file = name;
  state->text = std::move(text);
  state->sink = &sink;
  clean_ends(*state);
  scan_xml(std::string_view(state->text).substr(state->begin), name, limits);
  find_lines(*state);
  const pugi::xml_parse_result result = state->tree.load_buffer_inplace(
      state->text.data() + state->begin, state->text.size() - state->begin, pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    Location where = state->place(state->begin + static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0)));
    throw InputError(std::move(where), result.description());
  }
  state->read.resize(state->text.size());
  return XmlDocument(std::move(state));
}

XmlElement XmlDocument::root() const { return {state_.get(), state_->tree.document_element()}; }
const std::string& XmlDocument::file() const { return state_->file; }

XmlElement::XmlElement(XmlDocument::State* state, const pugi::xml_node& node)
    : state_(state), node_(node.internal_object()) {}

pugi::xml_node XmlElement::handle() const { return pugi::xml_node(node_); }

std::string_view XmlElement::name() const { return handle().name(); }

DiagnosticSink& XmlElement::sink() const { return *state_->sink; }

std::string_view XmlElement::content() const { return trimmed(handle().text().get()); }

Location XmlElement::where() const {
  if (!node_) return {};
  Location place = state_->place(state_->offset(handle().name()) - 1);
  place.element = path();
  return place;
}

Location XmlElement::where(const char* attribute) const {
  const pugi::xml_attribute found = attribute ? handle().attribute(attribute) : pugi::xml_attribute();
  if (!found) return where();
  Location place = state_->place(state_->offset(found.name()));
  place.element = path();
  return place;
}

std::string XmlElement::path() const {
  constexpr std::size_t kMost = 8, kKept = 6;
  std::vector<pugi::xml_node> nodes;
  for (pugi::xml_node n = handle(); n.type() == pugi::node_element && nodes.size() <= kMost; n = n.parent())
    nodes.push_back(n);
  std::string out;
  if (nodes.size() > kMost) {
    nodes.resize(kKept);
    out = std::string(state_->tree.document_element().name()) + "/…";
  }
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (!out.empty()) out += '/';
    out += std::string_view(node->name()).substr(0, 100);
    for (const char* key : {"name", "class", "file"}) {
      const std::string_view value = node->attribute(key).value();
      if (value.empty()) continue;
      const std::string shown = quote(value);
      out += "[" + shown.substr(1, shown.size() - 2) + "]";
      break;
    }
  }
  return out;
}

XmlElement XmlElement::child(const char* name) const {
  const pugi::xml_node node = handle().child(name);
  if (node) state_->read[state_->offset(node.name())] = true;
  return {state_, node};
}

XmlElement XmlElement::first_child() const {
  pugi::xml_node node = handle().first_child();
  while (node && node.type() != pugi::node_element) node = node.next_sibling();
  if (node) state_->read[state_->offset(node.name())] = true;
  return {state_, node};
}

XmlElement XmlElement::next() const {
  pugi::xml_node node = handle().next_sibling();
  while (node && node.type() != pugi::node_element) node = node.next_sibling();
  if (node) state_->read[state_->offset(node.name())] = true;
  return {state_, node};
}

XmlElement XmlElement::parent() const {
  const pugi::xml_node node = handle().parent();
  return {state_, node.type() == pugi::node_element ? node : pugi::xml_node()};
}

std::vector<XmlElement> XmlElement::below(std::string_view name) const {
  std::vector<XmlElement> out;
  pugi::xml_node node = handle().first_child();
  while (node) {
    if (node.type() == pugi::node_element && (name.empty() || name == node.name())) out.emplace_back(state_, node);
    if (node.first_child()) {
      node = node.first_child();
      continue;
    }
    while (node && node != handle() && !node.next_sibling()) node = node.parent();
    node = node == handle() ? pugi::xml_node() : node.next_sibling();
  }
  return out;
}

std::vector<XmlElement> XmlElement::children(std::string_view name) const {
  std::vector<XmlElement> out;
  for (pugi::xml_node node = handle().first_child(); node; node = node.next_sibling()) {
    if (node.type() != pugi::node_element || (!name.empty() && name != node.name())) continue;
    state_->read[state_->offset(node.name())] = true;
    out.emplace_back(state_, node);
  }
  return out;
}

pugi::xml_attribute XmlElement::find(const char* attribute) const {
  const pugi::xml_attribute found = handle().attribute(attribute);
  if (found) state_->read[state_->offset(found.name())] = true;
  return found;
}

bool XmlElement::has(const char* attribute) const { return bool(find(attribute)); }

std::optional<std::string_view> XmlElement::attribute(const char* attribute) const {
  const pugi::xml_attribute found = find(attribute);
  if (!found) return std::nullopt;
  return found.value();
}

std::optional<std::string_view> XmlElement::peek(const char* attribute) const {
  const pugi::xml_attribute found = handle().attribute(attribute);
  if (!found) return std::nullopt;
  return found.value();
}

std::string XmlElement::text(const char* attribute, std::string_view otherwise) const {
  return std::string(this->attribute(attribute).value_or(otherwise));
}

namespace {

template <class T>
bool take(const XmlElement& element, const char* attribute, Parsed<T>&& parsed, T& out) {
  if (!parsed) {
    element.error(fmt::format("attribute '{}': {}", attribute, parsed.error), attribute);
    return false;
  }
  out = std::move(parsed.value);
  return true;
}

}  // namespace

bool XmlElement::read(const char* attribute, double& out, Infinities infinities) const {
  const auto value = this->attribute(attribute);
  return value && take(*this, attribute, parse_number(*value, infinities), out);
}

bool XmlElement::read(const char* attribute, std::optional<double>& out) const {
  double number = 0;
  if (!read(attribute, number)) return false;
  out = number;
  return true;
}

bool XmlElement::read(const char* attribute, int& out) const {
  const auto value = this->attribute(attribute);
  return value && take(*this, attribute, parse_integer(*value), out);
}

bool XmlElement::read(const char* attribute, bool& out) const {
  const auto value = this->attribute(attribute);
  return value && take(*this, attribute, parse_bool(*value), out);
}

bool XmlElement::read(const char* attribute, std::string& out) const {
  const auto value = this->attribute(attribute);
  if (value) out = *value;
  return value.has_value();
}

/// An attribute without any number, such as rgba="", counts as absent, as in MuJoCo. Such attributes are common in
/// files.
bool XmlElement::is_empty(const char* attribute) const {
  const auto value = this->attribute(attribute);
  if (!value || !trimmed(*value).empty()) return !value;
  note(fmt::format("attribute '{}' is empty and is ignored", attribute), attribute);
  return true;
}

bool XmlElement::read(const char* attribute, Vec3d& out) const {
  const auto value = this->attribute(attribute);
  return !is_empty(attribute) && take(*this, attribute, parse_vec3(*value), out);
}

bool XmlElement::read(const char* attribute, std::vector<double>& out, Count count, Infinities infinities) const {
  const auto value = this->attribute(attribute);
  return !is_empty(attribute) && take(*this, attribute, parse_numbers(*value, count, infinities), out);
}

bool XmlElement::read(const char* attribute, std::vector<int>& out, Count count) const {
  const auto value = this->attribute(attribute);
  return !is_empty(attribute) && take(*this, attribute, parse_integers(*value, count), out);
}

std::vector<std::pair<std::string, std::string>> XmlElement::all_attributes() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (const pugi::xml_attribute attribute : handle().attributes()) {
    state_->read[state_->offset(attribute.name())] = true;
    out.emplace_back(attribute.name(), attribute.value());
  }
  return out;
}

void XmlElement::report(Severity severity, std::string message, const char* attribute) const {
  state_->sink->add(severity, where(attribute), std::move(message));
}
void XmlElement::error(std::string message, const char* attribute) const {
  report(Severity::error, std::move(message), attribute);
}
void XmlElement::warn(std::string message, const char* attribute) const {
  report(Severity::warning, std::move(message), attribute);
}
void XmlElement::note(std::string message, const char* attribute) const {
  report(Severity::note, std::move(message), attribute);
}

void XmlElement::ignore(std::initializer_list<const char*> attributes) const {
  for (const char* attribute : attributes) find(attribute);
}

void XmlElement::unsupported(std::initializer_list<const char*> attributes) const {
  for (const char* attribute : attributes) {
    if (find(attribute)) {
      warn(fmt::format("attribute '{}' of <{}> is not supported and has no effect", attribute, name()), attribute);
    }
  }
}

void XmlElement::report_unread(Severity severity) const {
  for (const pugi::xml_attribute attribute : handle().attributes()) {
    if (state_->read[state_->offset(attribute.name())]) continue;
    report(severity, fmt::format("<{}> has no attribute {}", name(), quote(attribute.name())), attribute.name());
  }
  for (pugi::xml_node node = handle().first_child(); node; node = node.next_sibling()) {
    if (node.type() != pugi::node_element || state_->read[state_->offset(node.name())]) continue;
    const std::string_view its_name = std::string_view(node.name()).substr(0, 100);
    const pugi::xml_node first = handle().child(node.name());
    const bool second = first != node && state_->read[state_->offset(first.name())];
    XmlElement(state_, node)
        .report(severity,
                second ? fmt::format("a second <{}> in one <{}>: only the first is used", its_name, name())
                       : fmt::format("<{}> is not an element of <{}>", its_name, name()),
                nullptr);
  }
}

void XmlElement::mark_all_children() const { children(); }

}  // namespace tarsus
