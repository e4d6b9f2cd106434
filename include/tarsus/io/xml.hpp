// XML with places: every element and attribute knows its line and column, every value is read with its type, and what
// nobody read can be named.
//
// Stricter than common XML readers, because a model that two programs read differently is worse than one refused:
// checked before a tree is built are UTF-8, control bytes, nesting (by a loop, so no depth can overflow the stack), one
// root, matching tags, blanks between attributes, duplicate attributes, unknown entities, and size. DOCTYPE is refused,
// so there are no entities to expand. Two habits of real files are let pass with a note: NUL bytes at the end and
// blanks before <?xml.
#pragma once

#include <array>
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

// pugixml's, which does the parsing; users of this header need not have it.
namespace pugi {
class xml_attribute;
class xml_node;
struct xml_node_struct;
}  // namespace pugi

namespace tarsus {

/// What a document may cost: the tree takes about 64 bytes an element and 40 an attribute.
struct XmlLimits {
  std::size_t bytes = 32u << 20;
  int depth = 20'000;
  std::size_t elements = 1'000'000;
  std::size_t attributes = 2'000'000;
  std::size_t attributes_of_one = 100;
};

/// The bytes of a regular file. Directories, devices, pipes and files over `most_bytes` are refused by name before a
/// byte is read.
/// @param used_at where a model names the file; default: the file itself
/// @throws InputError
std::string read_file(const std::filesystem::path& file, std::size_t most_bytes, const Location& used_at = {});

class XmlElement;

/// One parsed document. Elements stay valid as long as it lives; the sink must outlive it. Moving it is cheap.
class XmlDocument {
 public:
  /// @throws InputError at the first thing that is not well-formed, with its line and column
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

/// A light handle to an element; false if there is none. The readers return true if the attribute is there and good;
/// then `out` is set, else it is left alone. A bad value is reported to the document's sink at the attribute's place.
class XmlElement {
 public:
  XmlElement() = default;
  XmlElement(XmlDocument::State* state, const pugi::xml_node& node);
  explicit operator bool() const { return node_ != nullptr; }

  std::string_view name() const;
  bool is(std::string_view name) const { return this->name() == name; }
  /// The same for two handles to one element.
  const void* id() const { return node_; }
  DiagnosticSink& sink() const;
  /// Trimmed text between the tags ("" if none).
  std::string_view content() const;

  /// File, line, column, path.
  Location where() const;
  /// The same at an attribute; the element's if there is no such attribute.
  Location where(const char* attribute) const;
  /// "mujoco/worldbody/body[torso]/joint[knee]"; long ones keep the root and the last six.
  std::string path() const;

  // Tree. Handing an element out marks it as read.
  XmlElement child(const char* name) const;
  XmlElement first_child() const;
  XmlElement next() const;
  XmlElement parent() const;
  /// All elements below of one name (empty: any), without marking them.
  std::vector<XmlElement> below(std::string_view name) const;
  /// Child elements in order, all of them or those of one name.
  std::vector<XmlElement> children(std::string_view name = {}) const;

  // Attributes. Reading one, or asking for it, marks it as read.
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
  /// Fills the first numbers of `out`, at least `least` of them (default: all).
  template <class T, std::size_t N>
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

  /// Attributes that are understood and of no effect here, such as looks.
  void ignore(std::initializer_list<const char*> attributes) const;
  /// A warning for each of these that is there: "attribute 'x' is not supported and has no effect".
  void unsupported(std::initializer_list<const char*> attributes) const;
  /// Names every attribute and child element that nobody read.
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
