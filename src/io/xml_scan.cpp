#include "xml_scan.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tarsus {
namespace {

constexpr std::string_view kXmlBlanks = " \t\r\n";

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
         (static_cast<unsigned char>(c) & 0x80);
}

bool is_name(char c) { return is_name_start(c) || (c >= '0' && c <= '9') || c == '-' || c == '.'; }

/// Length of the UTF-8 sequence at `at`; 0 if it is invalid (overlong, surrogate, beyond U+10FFFF, cut off).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!follows(1) || !follows(2)) return 0;
    if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!follows(1) || !follows(2) || !follows(3)) return 0;
    if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
    return 4;
  }
  return 0;
}

class Scanner {
 public:
  Scanner(std::string_view text, const std::string& file, const XmlLimits& limits)
      : text_(text), file_(file), limits_(limits) {}

  void run() {
    check_bytes();
    while (at_ < text_.size()) {
      skip_text();
      if (at_ >= text_.size()) break;
      if (starts("<!--"))
        skip_past("-->", "comment");
      else if (starts("<![CDATA["))
        scan_cdata();
      else if (starts("<!"))
        fail(at_, "a document type declaration is not accepted: models need none, and its entities can be abused");
      else if (starts("<?"))
        skip_past("?>", "processing instruction");
      else if (starts("</"))
        close_tag();
      else
        open_tag();
    }
    if (!open_.empty()) {
      fail(text_.size(), fmt::format("the file ends inside <{}>, opened at line {}: is it truncated?",
                                     open_.back().name, line_of(open_.back().at)));
    }
    if (!had_root_) fail(text_.size(), "the file contains no element");
  }

 private:
  struct Open {
    std::string_view name;
    std::size_t at;
  };

  bool starts(std::string_view what) const { return text_.substr(at_, what.size()) == what; }

  int line_of(std::size_t offset) const {
    return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
  }

  [[noreturn]] void fail(std::size_t offset, const std::string& message) const {
    offset = std::min(offset, text_.size());
    const std::size_t newline = offset == 0 ? std::string_view::npos : text_.rfind('\n', offset - 1);
    const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    throw InputError({file_, line_of(offset), static_cast<int>(offset - begin) + 1, element_path()}, message);
  }

  std::string element_path() const {
    std::string out;
    const std::size_t first = open_.size() > 8 ? open_.size() - 6 : 0;
    if (first > 0) out = std::string(open_[0].name) + "/…";
    for (std::size_t i = first; i < open_.size(); ++i)
      out += (out.empty() ? "" : "/") + std::string(open_[i].name.substr(0, 100));
    return out;
  }

  void check_bytes() const {
    for (std::size_t i = 0; i < text_.size();) {
      const auto byte = static_cast<unsigned char>(text_[i]);
      if (byte >= 0x80) {
        const std::size_t length = utf8_length(text_, i);
        if (length == 0) fail(i, fmt::format("byte 0x{:02x} is not UTF-8", byte));
        i += length;
        continue;
      }
      if (byte < 0x20 && !is_blank(text_[i])) fail(i, fmt::format("control byte 0x{:02x} is not allowed in XML", byte));
      ++i;
    }
  }

  void skip_text() {
    const std::size_t end = std::min(text_.find('<', at_), text_.size());
    const std::string_view between = text_.substr(at_, end - at_);
    if (open_.empty()) {
      const std::size_t word = between.find_first_not_of(kXmlBlanks);
      if (word != std::string_view::npos) fail(at_ + word, "text outside of the root element");
    } else {
      check_entities(at_, end);
    }
    at_ = end;
  }

  void skip_past(std::string_view end, const char* what) {
    const std::size_t found = text_.find(end, at_ + 2);
    if (found == std::string_view::npos) fail(at_, fmt::format("this {} is never closed by {}", what, end));
    at_ = found + end.size();
  }

  void scan_cdata() {
    if (open_.empty()) fail(at_, "text outside of the root element");
    skip_past("]]>", "CDATA section");
  }

  std::string_view scan_name() {
    const std::size_t begin = at_;
    if (at_ >= text_.size() || !is_name_start(text_[at_])) return {};
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  bool skip_blanks() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
    return at_ > begin;
  }

  void close_tag() {
    const std::size_t begin = at_;
    at_ += 2;
    const std::string_view name = scan_name();
    skip_blanks();
    if (name.empty() || at_ >= text_.size() || text_[at_] != '>') fail(begin, "this closing tag is not well-formed");
    if (open_.empty()) fail(begin, fmt::format("</{}> closes nothing", name));
    if (open_.back().name != name) {
      fail(begin, fmt::format("</{}> does not match <{}>, opened at line {}", name, open_.back().name,
                              line_of(open_.back().at)));
    }
    open_.pop_back();
    ++at_;
  }

  void open_tag() {
    const std::size_t begin = at_++;
    const std::string_view name = scan_name();
    if (name.empty()) fail(begin, "'<' is not followed by a name; in text it is written &lt;");
    if (open_.empty() && had_root_) fail(begin, fmt::format("<{}> is a second root element", name));
    had_root_ = true;
    if (++elements_ > limits_.elements) fail(begin, fmt::format("more than {} elements", limits_.elements));
    if (static_cast<int>(open_.size()) >= limits_.depth)
      fail(begin, fmt::format("elements nest deeper than {}", limits_.depth));
    open_.push_back({name, begin});
    attributes();
    if (text_[at_] == '/') {
      if (at_ + 1 >= text_.size() || text_[at_ + 1] != '>') fail(at_, "'/' is not followed by '>'");
      open_.pop_back();
      ++at_;
    }
    ++at_;
  }

  /// Reads attributes up to the '>' or '/' that ends the tag.
  void attributes() {
    names_.clear();
    while (true) {
      const bool blank = skip_blanks();
      if (at_ >= text_.size())
        fail(text_.size(), fmt::format("the file ends inside the tag <{}>: is it truncated?", open_.back().name));
      if (text_[at_] == '>' || text_[at_] == '/') return;
      const std::size_t begin = at_;
      const std::string_view name = scan_name();
      if (name.empty()) fail(at_, fmt::format("{} is not the beginning of an attribute", quote(text_.substr(at_, 1))));
      if (!blank) fail(begin, fmt::format("no blank before the attribute '{}'", name.substr(0, 100)));
      if (++attributes_ > limits_.attributes) fail(begin, fmt::format("more than {} attributes", limits_.attributes));
      if (names_.size() >= limits_.attributes_of_one) {
        fail(begin, fmt::format("more than {} attributes in one element", limits_.attributes_of_one));
      }
      if (std::find(names_.begin(), names_.end(), name) != names_.end()) {
        fail(begin, fmt::format("attribute '{}' is given twice", name.substr(0, 100)));
      }
      names_.push_back(name);
      attribute_value(name);
    }
  }

  void attribute_value(std::string_view name) {
    const std::string shown(name.substr(0, 100));
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != '=') fail(at_, fmt::format("attribute '{}' has no '='", shown));
    ++at_;
    skip_blanks();
    if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) {
      fail(at_, fmt::format("the value of '{}' does not begin with a quote", shown));
    }
    const std::size_t begin = at_ + 1;
    const std::size_t end = text_.find(text_[at_], begin);
    if (end == std::string_view::npos)
      fail(at_, fmt::format("the value of '{}' has no closing quote: is the file truncated?", shown));
    const std::size_t less = text_.substr(begin, end - begin).find('<');
    if (less != std::string_view::npos) {
      fail(begin + less, fmt::format("'<' inside the value of '{}': is a quote missing?", shown));
    }
    check_entities(begin, end);
    at_ = end + 1;
  }

  void check_entities(std::size_t begin, std::size_t end) const {
    const std::string_view part = text_.substr(begin, end - begin);
    for (std::size_t i = part.find('&'); i != std::string_view::npos; i = part.find('&', i + 1)) {
      const std::size_t stop = part.substr(i, 12).find(';');
      const std::string_view entity = stop == std::string_view::npos ? part.substr(i, 0) : part.substr(i + 1, stop - 1);
      static constexpr std::string_view kKnown[] = {"lt", "gt", "amp", "quot", "apos"};
      const bool known = std::find(std::begin(kKnown), std::end(kKnown), entity) != std::end(kKnown);
      if (!known && !is_character_reference(entity)) {
        fail(begin + i,
             fmt::format("{} is not an entity that XML defines; '&' is written &amp;", quote(part.substr(i, 12))));
      }
    }
  }

  /// Whether an entity is a reference such as #65 or #x41 to a character that XML allows, so not to NUL or a surrogate.
  static bool is_character_reference(std::string_view entity) {
    if (entity.size() < 2 || entity[0] != '#') return false;
    const bool hex = entity[1] == 'x';
    const std::string_view digits = entity.substr(hex ? 2 : 1);
    if (digits.empty()) return false;
    unsigned long code = 0;
    for (const char c : digits) {
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : 99;
      if (digit >= (hex ? 16 : 10)) return false;
      code = code * (hex ? 16 : 10) + static_cast<unsigned long>(digit);
    }
    if (code < 0x20) return code == 9 || code == 10 || code == 13;
    return code <= 0x10FFFF && !(code >= 0xD800 && code <= 0xDFFF);
  }

  std::string_view text_;
  const std::string& file_;
  const XmlLimits& limits_;
  std::size_t at_ = 0;
  std::vector<Open> open_;
  std::vector<std::string_view> names_;
  std::size_t elements_ = 0, attributes_ = 0;
  bool had_root_ = false;
};

}  // namespace

void scan_xml(std::string_view text, const std::string& file, const XmlLimits& limits) {
  Scanner(text, file, limits).run();
}

}  // namespace tarsus
