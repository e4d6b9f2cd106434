#include "json_text.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "quick_number.hpp"
#include "tarsus/io/text_number.hpp"

namespace tarsus {

const JsonValue* JsonValue::find(std::string_view key) const {
  const auto it = std::find(keys.begin(), keys.end(), key);
  return it == keys.end() ? nullptr : &items[it - keys.begin()];
}

const char* describe(const JsonValue& value) {
  switch (value.type) {
    case JsonValue::Type::null: return "null";
    case JsonValue::Type::boolean: return "true or false";
    case JsonValue::Type::number: return "a number";
    case JsonValue::Type::string: return "a string";
    case JsonValue::Type::array:
    case JsonValue::Type::numbers: return "an array";
    case JsonValue::Type::object: return "an object";
  }
  return "?";
}

namespace {

void append_utf8(std::string& out, unsigned c) {
  if (c < 0x80) {
    out += char(c);
  } else if (c < 0x800) {
    out += char(0xC0 | c >> 6), out += char(0x80 | (c & 63));
  } else if (c < 0x10000) {
    out += char(0xE0 | c >> 12), out += char(0x80 | (c >> 6 & 63)), out += char(0x80 | (c & 63));
  } else {
    out += char(0xF0 | c >> 18), out += char(0x80 | (c >> 12 & 63)), out += char(0x80 | (c >> 6 & 63));
    out += char(0x80 | (c & 63));
  }
}

/// Recursive-descent parser. The depth limit bounds the recursion.
class Parser {
 public:
  Parser(std::string_view text, const JsonDocument& document, const JsonLimits& limits)
      : text_(text), document_(document), limits_(limits) {}

  JsonValue run() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") at_ = 3;
    blanks();
    if (at_ == text_.size()) fail(at_, "the file is empty");
    JsonValue root = value(0);
    blanks();
    if (at_ != text_.size()) fail(at_, fmt::format("{} after the end of the document", quote(text_.substr(at_, 20))));
    return root;
  }

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& message) { throw InputError(document_.where(at), message); }

  void blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void expect(char c, const char* what) {
    blanks();
    if (at_ >= text_.size()) fail(text_.size(), fmt::format("the text ends where {} is expected", what));
    if (text_[at_] != c) fail(at_, fmt::format("{} found where {} is expected", quote(text_.substr(at_, 12)), what));
    ++at_;
  }

  JsonValue value(int depth) {
    blanks();
    if (at_ >= text_.size()) fail(at_, "the text ends where a value is expected");
    if (depth >= limits_.depth) fail(at_, fmt::format("nested more than {} deep", limits_.depth));
    if (++values_ > limits_.values) fail(at_, fmt::format("more than {} values", limits_.values));
    JsonValue v;
    v.offset = std::uint32_t(at_);
    switch (peek()) {
      case '{': object(v, depth); return v;
      case '[': array(v, depth); return v;
      case '"': v.type = JsonValue::Type::string, v.text = string(); return v;
      default: break;
    }
    const std::string_view token = this->token();
    if (token == "null") return v;
    if (token == "true" || token == "false") {
      v.type = JsonValue::Type::boolean, v.boolean = token == "true";
      return v;
    }
    v.type = JsonValue::Type::number, v.number = number(token);
    return v;
  }

  static bool ends_token(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == ',' || c == ':' || c == '[' || c == ']' ||
           c == '{' || c == '}' || c == '"';
  }

  std::string_view token() {
    const std::size_t from = at_;
    while (at_ < text_.size() && !ends_token(text_[at_])) ++at_;
    if (at_ == from) fail(at_, fmt::format("{} found where a value is expected", quote(text_.substr(at_, 1))));
    return text_.substr(from, at_ - from);
  }

  double number(std::string_view token) {
    if (double value = 0; quick_number(token, value)) return value;
    const Parsed<double> parsed = parse_number(token);
    if (!parsed) fail(std::size_t(token.data() - text_.data()), parsed.error);
    return parsed.value;
  }

  bool starts_number() const {
    const char c = peek();
    return c == '-' || c == '+' || c == '.' || (c >= '0' && c <= '9');
  }

  void array(JsonValue& v, int depth) {
    v.type = JsonValue::Type::numbers;
    ++at_;
    blanks();
    if (peek() == ']') {
      ++at_;
      return;
    }
    while (true) {
      blanks();
      if (v.type == JsonValue::Type::numbers && starts_number()) {
        v.offsets.push_back(std::uint32_t(at_));
        v.numbers.push_back(number(token()));
      } else {
        unpack(v);
        v.items.push_back(value(depth + 1));
      }
      blanks();
      if (peek() == ']') break;
      expect(',', "',' or ']'");
    }
    ++at_;
    v.numbers.shrink_to_fit(), v.offsets.shrink_to_fit();
  }

  /// Converts a packed array of numbers to values, when an element that is not a number follows.
  void unpack(JsonValue& v) {
    if (v.type == JsonValue::Type::array) return;
    v.type = JsonValue::Type::array;
    if ((values_ += v.numbers.size()) > limits_.values) fail(at_, fmt::format("more than {} values", limits_.values));
    for (std::size_t i = 0; i < v.numbers.size(); ++i) {
      JsonValue item;
      item.type = JsonValue::Type::number, item.number = v.numbers[i], item.offset = v.offsets[i];
      v.items.push_back(std::move(item));
    }
    v.numbers.clear(), v.offsets.clear();
  }

  void object(JsonValue& v, int depth) {
    v.type = JsonValue::Type::object;
    ++at_;
    blanks();
    if (peek() == '}') {
      ++at_;
      return;
    }
    constexpr std::size_t kMostKeys = 1000;  // the look-up is linear
    while (true) {
      blanks();
      const std::size_t at = at_;
      if (peek() != '"') expect('"', "a key in double quotes");
      std::string key = string();
      if (v.find(key)) fail(at, fmt::format("key {} is given twice", quote(key)));
      if (v.keys.size() == kMostKeys) fail(at, fmt::format("more than {} keys in one object", kMostKeys));
      expect(':', "':'");
      v.items.push_back(value(depth + 1));
      v.keys.push_back(std::move(key));
      blanks();
      if (peek() == '}') break;
      expect(',', "',' or '}'");
    }
    ++at_;
  }

  std::string string() {
    std::string out;
    const std::size_t from = at_++;
    while (true) {
      if (at_ >= text_.size()) fail(from, "this string never ends");
      const char c = text_[at_];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) fail(at_, "a control character inside a string");
      ++at_;
      if (c != '\\') {
        out += c;
      } else {
        escape(out);
      }
    }
    ++at_;
    return out;
  }

  void escape(std::string& out) {
    const char c = peek();
    const std::size_t at = at_++;
    const std::string_view from = "\"\\/bfnrt", to = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
      unsigned code = hex4(at);
      if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        const unsigned low = hex4(at);
        if (low < 0xDC00 || low > 0xDFFF) fail(at, "one half of a surrogate pair without the other");
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      } else if (code >= 0xD800 && code < 0xE000) {
        fail(at, "one half of a surrogate pair without the other");
      }
      append_utf8(out, code);
    } else if (const auto i = from.find(c); c != '\0' && i != std::string_view::npos) {
      out += to[i];
    } else {
      fail(at, "this is not an escape sequence of JSON");
    }
  }

  unsigned hex4(std::size_t at) {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail(at, "\\u takes four hexadecimal digits");
      code = code * 16 + unsigned(digit);
    }
    return code;
  }

  std::string_view text_;
  const JsonDocument& document_;
  const JsonLimits& limits_;
  std::size_t at_ = 0, values_ = 0;
};

}  // namespace

JsonDocument::JsonDocument(std::string text, std::string file, const JsonLimits& limits)
    : text_(std::move(text)), file_(std::move(file)) {
  if (text_.size() > limits.bytes) {
    throw InputError(Location{file_, 0, 0, {}},
                     fmt::format("{} bytes, expected at most {}", text_.size(), limits.bytes));
  }
  lines_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') lines_.push_back(std::uint32_t(i + 1));
  }
  root_ = Parser(text_, *this, limits).run();
}

Location JsonDocument::where(std::size_t offset, std::string path) const {
  const auto line = std::upper_bound(lines_.begin(), lines_.end(), std::uint32_t(offset)) - 1;
  return {file_, int(line - lines_.begin()) + 1, int(offset - *line) + 1, std::move(path)};
}

JsonObject::JsonObject(const JsonDocument& document, const JsonValue& value, std::string path, DiagnosticSink& sink)
    : document_(document), value_(value), path_(std::move(path)), sink_(sink), seen_(value.keys.size(), false) {
  if (!value.is(JsonValue::Type::object)) {
    sink_.add(Severity::error, document_.where(value, path_),
              fmt::format("an object is expected here, not {}", describe(value)));
  }
}

std::string JsonObject::path(std::string_view key) const {
  return path_.empty() ? std::string(key) : fmt::format("{}/{}", path_, key);
}

void JsonObject::fault(const JsonValue& at, std::string_view key, std::string message) {
  sink_.add(Severity::error, document_.where(at, path(key)), std::move(message));
}

const JsonValue* JsonObject::get(std::string_view key) {
  const JsonValue* found = value_.find(key);
  if (found) seen_[found - value_.items.data()] = true;
  return found;
}

bool JsonObject::read(std::string_view key, std::string& out) {
  const JsonValue* v = get(key);
  if (!v) return false;
  if (!v->is(JsonValue::Type::string))
    return fault(*v, key, fmt::format("a string is expected, not {}", describe(*v))), false;
  return out = v->text, true;
}

bool JsonObject::read(std::string_view key, double& out) {
  const JsonValue* v = get(key);
  if (!v) return false;
  if (!v->is(JsonValue::Type::number))
    return fault(*v, key, fmt::format("a number is expected, not {}", describe(*v))), false;
  return out = v->number, true;
}

bool JsonObject::read(std::string_view key, bool& out) {
  const JsonValue* v = get(key);
  if (!v) return false;
  if (!v->is(JsonValue::Type::boolean)) {
    return fault(*v, key, fmt::format("true or false is expected, not {}", describe(*v))), false;
  }
  return out = v->boolean, true;
}

bool JsonObject::read(std::string_view key, std::vector<double>& out, std::size_t count) {
  const JsonValue* v = get(key);
  if (!v) return false;
  if (!v->is(JsonValue::Type::numbers) || v->numbers.size() != count) {
    const std::string got = v->is(JsonValue::Type::numbers) ? fmt::format("{}", v->numbers.size())
                            : v->is_array()                 ? "one with other elements"
                                                            : describe(*v);
    return fault(*v, key, fmt::format("an array of {} numbers is expected, not {}", count, got)), false;
  }
  return out = v->numbers, true;
}

bool JsonObject::read(std::string_view key, std::vector<std::string>& out) {
  const JsonValue* v = get(key);
  if (!v) return false;
  const auto is_text = [](const JsonValue& item) { return item.is(JsonValue::Type::string); };
  out.clear();
  if (is_text(*v)) return out.push_back(v->text), true;
  if (!v->is_array() || !v->numbers.empty() || !std::all_of(v->items.begin(), v->items.end(), is_text)) {
    return fault(*v, key, fmt::format("a string or an array of strings is expected")), false;
  }
  for (const JsonValue& item : v->items) out.push_back(item.text);
  return true;
}

void JsonObject::done(Severity severity, const std::string& expected) {
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    if (seen_[i]) continue;
    sink_.add(severity, document_.where(value_.items[i], path(value_.keys[i])),
              fmt::format("unknown key {}{}; known keys: {}", quote(value_.keys[i]),
                          severity == Severity::error ? "" : ": it is not used", expected));
  }
}

}  // namespace tarsus
