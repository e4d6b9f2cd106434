#include <fmt/format.h>
#include <zlib.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>

#include "npy_header.hpp"
#include "npz_zip.hpp"
#include "tarsus/io/npz.hpp"

namespace tarsus {

static_assert(std::endian::native == std::endian::little, "arrays are read as they lie in memory");

namespace {

constexpr std::size_t kCommentMost = 0xffff;
constexpr std::uint64_t kDirectoryMost = 4 << 20;
constexpr std::uint64_t kInflatedFree = 64 << 20, kInflatedPerByte = 16;  // see read_real()
constexpr std::uint64_t kDeflateMost = 1032;                              // no deflate stream expands further
constexpr std::string_view kSuffix = ".npy";

struct Entry {
  std::string file_name;
  int method = 0;
  std::uint32_t crc = 0;
  std::uint64_t compressed = 0, size = 0, offset = 0;
};

struct Directory {
  std::uint64_t start = 0, size = 0, count = 0;
};

/// The first 60 bytes, with a '?' for each that is not printable ASCII, so that they cannot disturb a terminal.
std::string printable(std::string_view text) {
  std::string out(text.substr(0, 60));
  for (char& c : out) c = c < ' ' || c > '~' ? '?' : c;
  return out;
}

bool safe_name(std::string_view name) {
  if (name.empty() || name[0] == '/' || name.find_first_of("\\:") != name.npos) return false;
  for (const char c : name) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) return false;
  }
  for (std::size_t at = 0; at <= name.size();) {  // the parts between slashes
    const std::size_t end = std::min(name.find('/', at), name.size());
    if (name.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

}  // namespace

struct NpzReader::State {
  std::string file;
  std::unique_ptr<std::istream> in;
  std::uint64_t file_size = 0, inflated = 0;
  std::map<std::string, Entry, std::less<>> entries;
  std::vector<std::string> names, others;

  [[noreturn]] void fail(std::string_view member, const std::string& message) const {
    throw InputError(Location{file, 0, 0, printable(member)}, message);
  }
  std::string bytes_at(std::uint64_t offset, std::uint64_t count, std::string_view member);
  void open();
  Directory find_directory();
  Directory find_directory64(std::uint64_t end);
  void read_directory(const Directory& d);
  std::size_t read_entry(std::string_view data, std::size_t at, std::uint64_t before);
  void read_extra64(std::string_view extra, Entry& e) const;
  void add(Entry e);
  const Entry& entry(std::string_view name) const;
  template <class Use>
  void with_array(std::string_view name, Use use);
  void read(std::string_view name, const std::function<void(const char* data, std::size_t bytes)>& take);
};

/// Precondition: the caller has bounded `count` by something smaller than the file.
std::string NpzReader::State::bytes_at(std::uint64_t offset, std::uint64_t count, std::string_view member) {
  if (offset > file_size || count > file_size - offset) {
    fail(member, fmt::format("the zip is damaged or cut off: bytes {} to {} are beyond its end ({})", offset,
                             offset + count, file_size));
  }
  std::string out(count, '\0');
  in->clear();
  in->seekg(std::streamoff(offset));
  in->read(out.data(), std::streamsize(count));
  if (!*in) fail(member, "cannot be read");
  return out;
}

void NpzReader::State::open() {
  in->seekg(0, std::ios::end);
  const std::streamoff end = in->tellg();
  if (!*in || end < 0) fail({}, "cannot be read");
  file_size = std::uint64_t(end);
  read_directory(find_directory());
}

Directory NpzReader::State::find_directory() {
  if (file_size < zip::kEndSize)
    fail({}, fmt::format("this is not a .npz file: {} bytes are too few for a zip", file_size));
  const std::uint64_t tail_size = std::min<std::uint64_t>(file_size, zip::kEndSize + kCommentMost),
                      tail_start = file_size - tail_size;
  const std::string tail = bytes_at(tail_start, tail_size, {});
  for (std::size_t at = tail.size() - zip::kEndSize + 1; at-- > 0;) {
    if (zip::get(tail, at, 4) != zip::kEnd || at + zip::kEndSize + zip::get(tail, at + 20, 2) != tail.size()) continue;
    const std::uint64_t disk = zip::get(tail, at + 4, 2), count_here = zip::get(tail, at + 8, 2);
    Directory d{zip::get(tail, at + 16, 4), zip::get(tail, at + 12, 4), zip::get(tail, at + 10, 2)};
    if (d.start == zip::kMax32 || d.size == zip::kMax32 || d.count == zip::kMax16)
      return find_directory64(tail_start + at);
    if (disk != 0 || count_here != d.count) fail({}, "a zip in several parts is not supported");
    return d;
  }
  const bool zip_start = zip::get(bytes_at(0, 4, {}), 0, 4) == zip::kLocal;
  fail({},
       zip_start ? "the zip is cut off: its directory is missing" : "this is not a .npz file: it has no zip directory");
}

Directory NpzReader::State::find_directory64(std::uint64_t end) {
  if (end < zip::kLocator64Size) fail({}, "the zip is damaged: its zip64 directory is missing");
  const std::string locator = bytes_at(end - zip::kLocator64Size, zip::kLocator64Size, {});
  if (zip::get(locator, 0, 4) != zip::kLocator64) fail({}, "the zip is damaged: its zip64 directory is missing");
  const std::string record = bytes_at(zip::get(locator, 8, 8), zip::kEnd64Size, {});
  if (zip::get(record, 0, 4) != zip::kEnd64) fail({}, "the zip is damaged: its zip64 directory is missing");
  return {zip::get(record, 48, 8), zip::get(record, 40, 8), zip::get(record, 32, 8)};
}

void NpzReader::State::read_directory(const Directory& d) {
  if (d.size > kDirectoryMost)
    fail({}, fmt::format("the zip's directory claims {} bytes; at most {} are read", d.size, kDirectoryMost));
  const std::string data = bytes_at(d.start, d.size, {});
  if (d.count > data.size() / zip::kCentralSize) {
    fail({}, fmt::format("the zip is damaged: its directory claims {} members, and has room for {}", d.count,
                         data.size() / zip::kCentralSize));
  }
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < d.count; ++i) at = read_entry(data, at, d.start);
  if (at != data.size()) fail({}, "the zip is damaged: its directory has more members than it claims");
}

/// Reads one member of the directory and returns where the next begins. The member's data must lie before byte
/// `before`.
std::size_t NpzReader::State::read_entry(std::string_view data, std::size_t at, std::uint64_t before) {
  if (data.size() - at < zip::kCentralSize || zip::get(data, at, 4) != zip::kCentral)
    fail({}, "the zip is damaged: its directory ends in the middle");
  const std::size_t name_size = zip::get(data, at + 28, 2), extra_size = zip::get(data, at + 30, 2),
                    comment_size = zip::get(data, at + 32, 2);
  const std::size_t name_at = at + zip::kCentralSize;
  if (name_size + extra_size + comment_size > data.size() - name_at)
    fail({}, "the zip is damaged: its directory ends in the middle");
  Entry e;
  e.file_name = data.substr(name_at, name_size);
  e.method = int(zip::get(data, at + 10, 2));
  e.crc = std::uint32_t(zip::get(data, at + 16, 4));
  e.compressed = zip::get(data, at + 20, 4), e.size = zip::get(data, at + 24, 4), e.offset = zip::get(data, at + 42, 4);
  read_extra64(data.substr(name_at + name_size, extra_size), e);
  if (!safe_name(e.file_name))
    fail(e.file_name, "a member's name leads out of the file (.. or an absolute path) or holds control characters");
  if (zip::get(data, at + 8, 2) & 1) fail(e.file_name, "it is encrypted");
  if (e.method != zip::kStored && e.method != zip::kDeflated) {
    fail(e.file_name, fmt::format("its compression (method {}) is not supported; stored and deflated are", e.method));
  }
  if (e.offset > before || e.compressed > before - e.offset) {
    fail(e.file_name, fmt::format("it claims {} bytes at byte {} of a file of {}", e.compressed, e.offset, file_size));
  }
  if (e.method == zip::kStored && e.compressed != e.size)
    fail(e.file_name, "the zip is damaged: a stored member with two different sizes");
  if (e.size / kDeflateMost > e.compressed)
    fail(e.file_name, fmt::format("it claims {} bytes, more than {} compressed bytes can hold", e.size, e.compressed));
  add(std::move(e));
  return name_at + name_size + extra_size + comment_size;
}

/// Reads numbers that do not fit into 32 bits from the zip64 field, which has them in this order.
void NpzReader::State::read_extra64(std::string_view extra, Entry& e) const {
  while (extra.size() >= 4) {
    const std::uint64_t id = zip::get(extra, 0, 2), size = zip::get(extra, 2, 2);
    if (size > extra.size() - 4) break;
    std::string_view field = extra.substr(4, size);
    extra.remove_prefix(4 + size);
    if (id != zip::kExtra64) continue;
    for (std::uint64_t* value : {&e.size, &e.compressed, &e.offset}) {
      if (*value != zip::kMax32) continue;
      if (field.size() < 8) fail(e.file_name, "the zip is damaged: its zip64 sizes are cut off");
      *value = zip::get(field, 0, 8);
      field.remove_prefix(8);
    }
    return;
  }
}

void NpzReader::State::add(Entry e) {
  const bool array = e.file_name.ends_with(kSuffix) && e.file_name.size() > kSuffix.size();
  const std::string key = array ? e.file_name.substr(0, e.file_name.size() - kSuffix.size()) : e.file_name;
  if (!array) {
    others.push_back(key);
    return;
  }
  if (entries.contains(key)) fail(e.file_name, "the name occurs twice");
  names.push_back(key);
  entries.emplace(key, std::move(e));
}

const Entry& NpzReader::State::entry(std::string_view name) const {
  const auto found = entries.find(name);
  if (found != entries.end()) return found->second;
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < 20; ++i) list += (i ? ", " : "") + printable(names[i]);
  fail(name, fmt::format("there is no array of this name; the file has {}", names.empty() ? "none" : list));
}

namespace {

/// Reads the decoded bytes of one member in order.
class MemberStream {
 public:
  MemberStream(std::istream& in, const Entry& entry, std::uint64_t start)
      : in_(in), entry_(entry), left_(entry.compressed) {
    in_.clear();
    in_.seekg(std::streamoff(start));
    if (entry.method != zip::kDeflated) return;
    z_ = z_stream{};
    if (inflateInit2(&*z_, -MAX_WBITS) != Z_OK) throw Error("zlib cannot start");
  }
  ~MemberStream() {
    if (z_) inflateEnd(&*z_);
  }
  MemberStream(const MemberStream&) = delete;
  MemberStream& operator=(const MemberStream&) = delete;

  /// Reads up to `size` bytes; fewer only at the end. @throws Error for damaged data
  std::size_t read(char* out, std::size_t size) {
    const std::size_t n = z_ ? inflate_some(out, size) : raw(out, size);
    crc_ = std::uint32_t(crc32_z(crc_, reinterpret_cast<const Bytef*>(out), n));
    return n;
  }
  void check_end() {
    char more = 0;
    if (read(&more, 1) != 0) throw Error(fmt::format("it has more than the {} bytes that the zip claims", entry_.size));
    if (crc_ != entry_.crc) throw Error("its data are damaged: the CRC does not match");
  }

 private:
  std::size_t raw(char* out, std::size_t size) {
    const std::size_t n = std::size_t(std::min<std::uint64_t>(size, left_));
    in_.read(out, std::streamsize(n));
    if (!in_ && n > 0) throw Error("cannot be read");
    left_ -= n;
    return n;
  }
  std::size_t inflate_some(char* out, std::size_t size) {
    std::size_t done = 0;
    while (done < size && !ended_) {
      if (z_->avail_in == 0) {
        z_->avail_in = uInt(raw(buffer_, sizeof buffer_));
        z_->next_in = reinterpret_cast<Bytef*>(buffer_);
        if (z_->avail_in == 0) throw Error("its compressed data end in the middle");
      }
      z_->next_out = reinterpret_cast<Bytef*>(out + done);
      const uInt room = uInt(std::min<std::size_t>(size - done, 1u << 30));
      z_->avail_out = room;
      const int result = inflate(&*z_, Z_NO_FLUSH);
      done += room - z_->avail_out;
      ended_ = result == Z_STREAM_END;
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR)
        throw Error("its compressed data are damaged");
    }
    return done;
  }

  std::istream& in_;
  const Entry& entry_;
  std::uint64_t left_;
  std::uint32_t crc_ = 0;
  std::optional<z_stream> z_;
  bool ended_ = false;
  char buffer_[1 << 15];
};

/// An array whose header is read. The stream is at the data.
struct OpenArray {
  NpyHeader header;
  std::size_t bytes = 0;
};

OpenArray open_array(MemberStream& stream, const Entry& entry) {
  char first[kNpyMagicSize];
  std::size_t have = stream.read(first, 10);
  if (have == 10 && static_cast<unsigned char>(first[6]) > 1) have += stream.read(first + 10, 2);
  const NpyExtent extent = npy_extent({first, have});
  std::string dictionary(extent.length, '\0');
  if (stream.read(dictionary.data(), extent.length) != extent.length) throw Error("its header is cut off");
  OpenArray array{parse_npy_header(dictionary), 0};
  std::size_t count = 0;
  element_count(array.header.shape, count);
  array.bytes = count * item_size(array.header.type);
  const std::uint64_t there =
      entry.size >= extent.start + extent.length ? entry.size - extent.start - extent.length : 0;
  if (array.bytes != there) {
    throw Error(fmt::format("its shape {} of {} needs {} bytes, and it has {}", text(array.header.shape),
                            name(array.header.type), array.bytes, there));
  }
  return array;
}

std::string shape_pattern(const NpzShape& shape) {
  std::string s = "(";
  for (std::size_t i = 0; i < shape.size(); ++i)
    s += (i ? ", " : "") + (shape[i] == NpzReader::kAny ? "any" : std::to_string(shape[i]));
  return s + (shape.size() == 1 ? ",)" : ")");
}

bool matches(const NpzShape& shape, const NpzShape& pattern) {
  if (shape.size() != pattern.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (pattern[i] != NpzReader::kAny && pattern[i] != shape[i]) return false;
  }
  return true;
}

using Take = std::function<void(const char* data, std::size_t bytes)>;

/// Passes the array's bytes to `take` in pieces of whole elements, so that no second copy is in memory.
void read_pieces(MemberStream& stream, std::size_t bytes, const Take& take) {
  std::vector<char> piece(std::min<std::size_t>(bytes, 1 << 16));
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t want = std::min(piece.size(), bytes - done);
    if (stream.read(piece.data(), want) != want) throw Error("its data are cut off");
    take(piece.data(), want);
    done += want;
  }
  stream.check_end();
}

template <class E>
void append(std::vector<double>& out, const char* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; i += sizeof(E)) {
    E value;
    std::memcpy(&value, data + i, sizeof(E));
    out.push_back(double(value));
  }
}

}  // namespace

NpzReader::NpzReader(const std::filesystem::path& file) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.file = file.string();
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) s.fail({}, "there is no such file");
  if (!std::filesystem::is_regular_file(status)) s.fail({}, "this is not an ordinary file");
  s.in = std::make_unique<std::ifstream>(file, std::ios::binary);
  if (!*s.in) s.fail({}, "cannot be opened");
  s.open();
}

NpzReader::NpzReader(std::string bytes, const std::string& name) : state_(std::make_unique<State>()) {
  state_->file = name;
  state_->in = std::make_unique<std::istringstream>(std::move(bytes), std::ios::binary);
  state_->open();
}

NpzReader::~NpzReader() = default;

const std::vector<std::string>& NpzReader::names() const { return state_->names; }
const std::vector<std::string>& NpzReader::others() const { return state_->others; }
bool NpzReader::has(std::string_view name) const { return state_->entries.contains(name); }

std::size_t NpzInfo::count() const {
  std::size_t n = 0;
  return element_count(shape, n) ? n : 0;
}

/// Opens a member and passes it to `use`. Adds the names of file and member to every error.
template <class Use>
void NpzReader::State::with_array(std::string_view name, Use use) {
  const Entry& e = entry(name);
  const std::string local = bytes_at(e.offset, zip::kLocalSize, name);
  if (zip::get(local, 0, 4) != zip::kLocal)
    fail(name, "the zip is damaged: its directory points to a place without a member");
  // The local header's name and extra fields may differ in length from the directory's.
  const std::uint64_t start = e.offset + zip::kLocalSize + zip::get(local, 26, 2) + zip::get(local, 28, 2);
  if (start > file_size || e.compressed > file_size - start)
    fail(name, "the zip is damaged or cut off: the member's data are not there");
  try {
    MemberStream stream(*in, e, start);
    const OpenArray array = open_array(stream, e);
    use(stream, array);
  } catch (const Error& error) {
    fail(name, error.what());
  }
}

void NpzReader::State::read(std::string_view name, const Take& take) {
  const Entry& e = entry(name);
  const std::uint64_t most = kInflatedFree + kInflatedPerByte * file_size;
  if (e.method == zip::kDeflated && (e.size > most || (inflated += e.size) > most)) {
    fail(
        name,
        fmt::format(
            "the compressed arrays of this file may have at most {} bytes in all when decompressed; numpy.savez writes "
            "uncompressed arrays",
            most));
  }
  with_array(name, [&](MemberStream& stream, const OpenArray& array) { read_pieces(stream, array.bytes, take); });
}

NpzInfo NpzReader::info(std::string_view name) {
  NpzInfo info{std::string(name), {}, {}};
  state_->with_array(name, [&](MemberStream&, const OpenArray& array) {
    info.type = array.header.type, info.shape = array.header.shape;
  });
  return info;
}

std::vector<double> NpzReader::read_real(std::string_view name, const NpzShape& shape) {
  const NpzInfo i = info(name);
  if (i.type != NpzType::float64 && i.type != NpzType::float32) {
    state_->fail(name, fmt::format("its element type is {}; expected float64 or float32", tarsus::name(i.type)));
  }
  if (!matches(i.shape, shape))
    state_->fail(name, fmt::format("its shape is {}; expected {}", text(i.shape), shape_pattern(shape)));
  std::vector<double> out;
  state_->read(name, [&](const char* data, std::size_t bytes) {
    if (out.empty()) out.reserve(i.count());
    if (i.type == NpzType::float64)
      append<double>(out, data, bytes);
    else
      append<float>(out, data, bytes);
  });
  return out;
}

double NpzReader::read_number(std::string_view name) {
  const NpzInfo i = info(name);
  if (i.count() != 1) state_->fail(name, fmt::format("its shape is {}; expected one number", text(i.shape)));
  std::string bytes;
  state_->read(name, [&](const char* data, std::size_t count) { bytes.append(data, count); });
  const auto as = [&]<class E>(E value) {
    std::memcpy(&value, bytes.data(), sizeof value);
    return double(value);
  };
  switch (i.type) {
    case NpzType::float64: return as(double());
    case NpzType::float32: return as(float());
    case NpzType::int64: return as(std::int64_t());
    case NpzType::int32: return as(std::int32_t());
    case NpzType::int16: return as(std::int16_t());
    case NpzType::int8: return as(std::int8_t());
    case NpzType::uint64: return as(std::uint64_t());
    case NpzType::uint32: return as(std::uint32_t());
    case NpzType::uint16: return as(std::uint16_t());
    case NpzType::uint8:
    case NpzType::boolean: return as(std::uint8_t());
  }
  return 0;
}

std::vector<std::uint64_t> NpzReader::read_words(std::string_view name, const NpzShape& shape) {
  const NpzInfo i = info(name);
  if (i.type != NpzType::uint64)
    state_->fail(name, fmt::format("its element type is {}; expected uint64", tarsus::name(i.type)));
  if (!matches(i.shape, shape))
    state_->fail(name, fmt::format("its shape is {}; expected {}", text(i.shape), shape_pattern(shape)));
  std::string bytes;
  state_->read(name, [&](const char* data, std::size_t count) { bytes.append(data, count); });
  std::vector<std::uint64_t> out(i.count());
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof out[0]);
  return out;
}

std::string NpzReader::read_text(std::string_view name) {
  const NpzInfo i = info(name);
  if (i.type != NpzType::uint8 || i.shape.size() != 1) {
    state_->fail(name, fmt::format("it is {} of shape {}; expected text: uint8 of shape (any,)", tarsus::name(i.type),
                                   text(i.shape)));
  }
  constexpr std::size_t kTextMost = 16 << 20;
  if (i.shape[0] > kTextMost)
    state_->fail(name, fmt::format("its text has {} bytes; at most {} are read", i.shape[0], kTextMost));
  std::string out;
  state_->read(name, [&](const char* data, std::size_t bytes) { out.append(data, bytes); });
  return out;
}

}  // namespace tarsus
