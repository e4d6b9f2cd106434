// JSON with source positions. Every value keeps its place in the text, which common JSON libraries discard after
// parsing. Numbers are read by std::from_chars. Arrays of plain numbers, of which a clip has thousands, are stored
// packed. Depth, size and count are bounded, so that no text can overflow the stack or the memory.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/base/error.hpp"
#include "tarsus/io/diagnostic_sink.hpp"

namespace tarsus {

struct JsonLimits {
  std::size_t bytes = 8u << 20;
  int depth = 32;
  std::size_t values = 200'000;  ///< numbers in packed arrays do not count
};

struct JsonValue {
  enum class Type : std::uint8_t { null, boolean, number, string, array, numbers, object };
  Type type = Type::null;
  bool boolean = false;
  std::uint32_t offset = 0;  ///< of the value's first byte in the text
  double number = 0;
  std::string text;
  std::vector<JsonValue> items;        ///< elements of an array or values of an object
  std::vector<std::string> keys;       ///< keys of an object, in the text's order
  std::vector<double> numbers;         ///< elements of an array that has only numbers or is empty
  std::vector<std::uint32_t> offsets;  ///< of the first byte of each of `numbers`

  bool is(Type t) const { return type == t; }
  bool is_array() const { return type == Type::array || type == Type::numbers; }
  std::size_t size() const { return type == Type::numbers ? numbers.size() : items.size(); }
  /// The value of a key; nullptr if there is none or this is not an object.
  const JsonValue* find(std::string_view key) const;
};
/// "an object", "a number", … for messages.
const char* describe(const JsonValue& value);

/// A parsed text. where() gives the line and column of each value.
class JsonDocument {
 public:
  /// @throws InputError at the first syntax error, with line and column
  JsonDocument(std::string text, std::string file, const JsonLimits& limits = {});

  const JsonValue& root() const { return root_; }
  const std::string& file() const { return file_; }
  /// Line and column of a byte; `path` names the element, e.g. "joints/left_knee/from".
  Location where(std::size_t offset, std::string path = {}) const;
  Location where(const JsonValue& value, std::string path = {}) const { return where(value.offset, std::move(path)); }

 private:
  std::string text_, file_;
  std::vector<std::uint32_t> lines_;  ///< offset of the first byte of each line
  JsonValue root_;
};

/// Reads the members of one object by name and type. Each fault goes to the sink with its place and path. done()
/// reports the members that were not read.
class JsonObject {
 public:
  /// A `value` that is not an object is reported and treated as an empty object.
  JsonObject(const JsonDocument& document, const JsonValue& value, std::string path, DiagnosticSink& sink);

  /// The member's value; nullptr if there is none.
  const JsonValue* get(std::string_view key);
  /// Sets `out` and returns true if the member exists and has that type. A wrong type is reported.
  bool read(std::string_view key, std::string& out);
  bool read(std::string_view key, double& out);
  bool read(std::string_view key, bool& out);
  /// Exactly `count` numbers.
  bool read(std::string_view key, std::vector<double>& out, std::size_t count);
  /// One string or an array of strings.
  bool read(std::string_view key, std::vector<std::string>& out);
  /// Reports the members that were not read, as `severity`.
  void done(Severity severity, const std::string& expected);

  void fault(const JsonValue& at, std::string_view key, std::string message);
  std::string path(std::string_view key) const;

 private:
  const JsonDocument& document_;
  const JsonValue& value_;
  std::string path_;
  DiagnosticSink& sink_;
  std::vector<bool> seen_;
};

}  // namespace tarsus
