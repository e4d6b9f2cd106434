#include "npy_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <optional>

namespace tarsus {

namespace {

struct TypeRow {
  NpzType type;
  const char* name;
  const char* code;  ///< numpy's type code without the byte order
  std::size_t size;
};
constexpr std::array<TypeRow, 11> kTypes{{{NpzType::float64, "float64", "f8", 8},
                                          {NpzType::float32, "float32", "f4", 4},
                                          {NpzType::int64, "int64", "i8", 8},
                                          {NpzType::int32, "int32", "i4", 4},
                                          {NpzType::int16, "int16", "i2", 2},
                                          {NpzType::int8, "int8", "i1", 1},
                                          {NpzType::uint64, "uint64", "u8", 8},
                                          {NpzType::uint32, "uint32", "u4", 4},
                                          {NpzType::uint16, "uint16", "u2", 2},
                                          {NpzType::uint8, "uint8", "u1", 1},
                                          {NpzType::boolean, "bool", "b1", 1}}};
constexpr std::size_t kMaxDimensions = 32;  // numpy's own limit

const TypeRow& row(NpzType type) { return kTypes[std::size_t(type)]; }

std::string quoted(std::string_view text) { return fmt::format("'{}'", text.substr(0, 40)); }

/// Reads the dictionary's text token by token. It knows only the part of Python's syntax that numpy writes.
class Dictionary {
 public:
  explicit Dictionary(std::string_view text) : text_(text) {}

  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) throw Error(fmt::format("its header is damaged: expected '{}' at byte {}", c, at_));
  }
  bool at_end() {
    skip();
    return at_ >= text_.size();
  }
  std::string_view string() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"')
      throw Error(fmt::format("its header is damaged: expected a string at byte {}", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) throw Error("its header is damaged: a string without end");
    const std::string_view s = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return s;
  }
  bool boolean() {
    skip();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) return at_ += word.size(), value;
    }
    throw Error("its header is damaged: 'fortran_order' is neither True nor False");
  }
  NpzShape tuple() {
    NpzShape shape;
    expect('(');
    while (!accept(')')) {
      skip();
      std::size_t n = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), n);
      if (error != std::errc{})
        throw Error(fmt::format("its header is damaged: 'shape' has something other than a size at byte {}", at_));
      at_ = std::size_t(end - text_.data());
      accept('L');  // Python 2 wrote long integers as 5L
      if (shape.size() == kMaxDimensions)
        throw Error(fmt::format("its shape has more than {} dimensions", kMaxDimensions));
      shape.push_back(n);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
};

NpzType element_type(std::string_view descr) {
  const char order = descr.empty() ? '\0' : descr[0];
  const std::string_view code = order == '<' || order == '>' || order == '|' || order == '=' ? descr.substr(1) : descr;
  if (!code.empty() && code[0] == 'O') {
    throw Error("it contains pickled Python objects, which can run code when read and are therefore not read");
  }
  for (const TypeRow& r : kTypes) {
    if (code != r.code) continue;
    if (order == '>' && r.size > 1)
      throw Error(fmt::format("it is big-endian ({}): save it with .astype('<{}')", quoted(descr), r.code));
    return r.type;
  }
  throw Error(
      fmt::format("its element type {} is not supported (f8 f4 i8 i4 i2 i1 u8 u4 u2 u1 b1 are)", quoted(descr)));
}

}  // namespace

const char* name(NpzType type) { return row(type).name; }
std::size_t item_size(NpzType type) { return row(type).size; }

std::string text(const NpzShape& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
}

bool element_count(const NpzShape& shape, std::size_t& count) {
  constexpr std::size_t kMost = std::size_t(1) << 60;  // so that the number of bytes does not overflow either
  count = 1;
  for (const std::size_t n : shape) {
    if (n == 0) return count = 0, true;
  }
  for (const std::size_t n : shape) {
    if (n > kMost / count) return false;
    count *= n;
  }
  return true;
}

std::string write_npy_header(NpzType type, const NpzShape& shape) {
  const TypeRow& r = row(type);
  std::string dictionary = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': {}, }}",
                                       r.size > 1 ? '<' : '|', r.code, text(shape));
  constexpr std::size_t kBefore = 10;
  const std::size_t total = (kBefore + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.append(total - kBefore - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += char(dictionary.size() & 0xff);
  out += char(dictionary.size() >> 8);
  return out + dictionary;
}

NpyExtent npy_extent(std::string_view first) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  const auto byte = [&](std::size_t i) { return std::size_t(static_cast<unsigned char>(first[i])); };
  if (first.substr(0, kMagic.size()) != kMagic || first.size() < 10)
    throw Error("it is not a .npy array: the first bytes are not \\x93NUMPY");
  const std::size_t major = byte(6), minor = byte(7);
  NpyExtent extent;
  if (major == 1 && minor == 0) {
    extent = {10, byte(8) | byte(9) << 8};
  } else if ((major == 2 || major == 3) && minor == 0) {
    if (first.size() < 12) throw Error("its header is cut off");
    extent = {12, byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24};
  } else {
    throw Error(fmt::format("its .npy format {}.{} is not supported (1.0, 2.0 and 3.0 are)", major, minor));
  }
  if (extent.length > kNpyHeaderLimit)
    throw Error(fmt::format("its header claims {} bytes; at most {} are read", extent.length, kNpyHeaderLimit));
  return extent;
}

NpyHeader parse_npy_header(std::string_view text) {
  Dictionary dictionary(text);
  std::optional<std::string_view> descr;
  std::optional<bool> fortran;
  std::optional<NpzShape> shape;
  dictionary.expect('{');
  while (!dictionary.accept('}')) {
    const std::string_view key = dictionary.string();
    dictionary.expect(':');
    if (key == "descr" && !descr) {
      if (dictionary.accept('[')) throw Error("it has a structured element type; only plain numbers are read");
      descr = dictionary.string();
    } else if (key == "fortran_order" && !fortran) {
      fortran = dictionary.boolean();
    } else if (key == "shape" && !shape) {
      shape = dictionary.tuple();
    } else {
      throw Error(fmt::format("its header is damaged: key {} is unknown or repeated", quoted(key)));
    }
    if (!dictionary.accept(',')) {
      dictionary.expect('}');
      break;
    }
  }
  if (!dictionary.at_end()) throw Error("its header is damaged: text after the dictionary");
  if (!descr || !fortran || !shape) throw Error("its header lacks 'descr', 'fortran_order' or 'shape'");
  NpyHeader header{element_type(*descr), *shape};
  if (*fortran) throw Error("it is in Fortran order; save it with numpy.ascontiguousarray()");
  std::size_t count = 0;
  if (!element_count(header.shape, count))
    throw Error(fmt::format("its shape {} is larger than any memory", tarsus::text(header.shape)));
  return header;
}

}  // namespace tarsus
