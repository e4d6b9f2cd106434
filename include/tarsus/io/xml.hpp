// XML with source positions: every element and attribute has its line and column, every value is read with its type,
// and unread elements and attributes can be reported.
//
// The reader is stricter than common XML readers, because a model that two programs read differently is worse than a
// refused one. Before a tree is built it checks UTF-8, control bytes, nesting (in a loop, so that no depth overflows
// the stack), one root, matching tags, blanks between attributes, duplicate attributes, unknown entities, and size.
// DOCTYPE is refused, so there are no entities to expand. NUL bytes at the end and blanks before <?xml occur in real
// files and get a note.
#pragma once

#include <array>
#include <concepts>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/io/diagnostic_sink.hpp"
#include "tarsus/io/text_number.hpp"

// pugixml does the parsing; users of this header do not need its headers.
namespace pugi {
class xml_attribute;
class xml_node;
struct xml_node_struct;
}  // namespace pugi

namespace tarsus {

/// Largest accepted document. The tree takes about 64 bytes an element and 40 bytes an attribute.
struct XmlLimits {
  std::size_t bytes = 32u << 20;
  int depth = 20'000;
  std::size_t elements = 1'000'000;
  std::size_t attributes = 2'000'000;
  std::size_t attributes_of_one = 100;
};

/// The bytes of a regular file. Directories, devices, pipes and files over `most_bytes` are refused before a byte is
/// read; the error names which.
/// @param used_at where a model names the file; default: the file itself
/// @throws InputError
std::string read_file(const std::filesystem::path& file, std::size_t most_bytes, const Location& used_at = {});

class XmlElement;

/// A parsed document. Elements are valid while the document lives; the sink must outlive the document. Moving is cheap.
class XmlDocument {
 public:
  /// @throws InputError at the first violation of well-formedness, with its line and column
  static XmlDocument load(const std::filesystem::path& file, DiagnosticSink& sink, const XmlLimits& limits = {},
                          const Location& used_at = {});
  /// The same from memory; `name` stands for the file in messages.
  static XmlDocument parse(std::string text, const std::string& name, DiagnosticSink& sink,
                           const XmlLimits& limits = {});

  XmlDocument(XmlDocument&&) noexcept;
  XmlDocument& operator=(XmlDocument&&) noexcept;
  ~XmlDocument();

  XmlElement root() const;
  const std::string& file() const;

  struct State;

 private:
  explicit XmlDocument(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A light handle to an element; false if there is none. read() sets `out` and returns true if the attribute exists and
/// is valid, else leaves `out` unchanged. An invalid value is reported to the document's sink at the attribute's place.
class XmlElement {
 public:
  XmlElement() = default;
  XmlElement(XmlDocument::State* state, const pugi::xml_node& node);
  explicit operator bool() const { return node_ != nullptr; }

  std::string_view name() const;
  bool is(std::string_view name) const { return this->name() == name; }
  /// Equal for two handles to one element.
  const void* id() const { return node_; }
  DiagnosticSink& sink() const;
  /// Trimmed text between the tags ("" if none).
  std::string_view content() const;

  /// File, line, column, path.
  Location where() const;
  /// The place of an attribute; that of the element if there is no such attribute.
  Location where(const char* attribute) const;
  /// "mujoco/worldbody/body[torso]/joint[knee]". A long path keeps the root and the last six elements.
  std::string path() const;

  // Tree. Returning an element marks it as read.
  XmlElement child(const char* name) const;
  XmlElement first_child() const;
  XmlElement next() const;
  XmlElement parent() const;
  /// All elements below with this name (empty: any name), without marking them.
  std::vector<XmlElement> below(std::string_view name) const;
  /// Child elements in order, all of them or those with this name.
  std::vector<XmlElement> children(std::string_view name = {}) const;

  // Attributes. Every query but peek() marks the attribute as read.
  bool has(const char* attribute) const;
  std::optional<std::string_view> attribute(const char* attribute) const;
  std::string text(const char* attribute, std::string_view otherwise = "") const;
  /// The same without marking it as read.
  std::optional<std::string_view> peek(const char* attribute) const;
  bool read(const char* attribute, double& out, Infinities infinities = Infinities::refuse) const;
  bool read(const char* attribute, std::optional<double>& out) const;
  bool read(const char* attribute, int& out) const;
  bool read(const char* attribute, bool& out) const;
  bool read(const char* attribute, std::string& out) const;
  bool read(const char* attribute, Vec3d& out) const;
  bool read(const char* attribute, std::vector<double>& out, Count count = Count::any(),
            Infinities infinities = Infinities::refuse) const;
  bool read(const char* attribute, std::vector<int>& out, Count count = Count::any()) const;
  /// Sets the first numbers of `out`, at least `least` of them (default: all).
  template <std::floating_point T, std::size_t N>
  bool read(const char* attribute, std::array<T, N>& out, std::size_t least = N,
            Infinities infinities = Infinities::refuse) const {
    std::vector<double> values;
    if (!read(attribute, values, Count::between(least, N), infinities)) return false;
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(values[i]);
    return true;
  }
  /// All attributes as written, marked as read.
  std::vector<std::pair<std::string, std::string>> all_attributes() const;

  // Reports to the document's sink, with this element's place or an attribute's.
  void error(std::string message, const char* attribute = nullptr) const;
  void warn(std::string message, const char* attribute = nullptr) const;
  void note(std::string message, const char* attribute = nullptr) const;

  /// Marks attributes that have no effect here, such as those of the appearance, as read.
  void ignore(std::initializer_list<const char*> attributes) const;
  /// Warns of each of these that is present: "attribute 'x' is not supported and has no effect".
  void unsupported(std::initializer_list<const char*> attributes) const;
  /// Reports every attribute and child element that was not read.
  void report_unread(Severity severity) const;
  void mark_all_children() const;

 private:
  pugi::xml_node handle() const;
  pugi::xml_attribute find(const char* attribute) const;
  bool is_empty(const char* attribute) const;
  void report(Severity severity, std::string message, const char* attribute) const;

  XmlDocument::State* state_ = nullptr;
  pugi::xml_node_struct* node_ = nullptr;
};

}  // namespace tarsus
