#include <fmt/format.h>
#include <zlib.h>

#include <bit>
#include <set>

#include "npy_header.hpp"
#include "npz_zip.hpp"
#include "tarsus/io/npz.hpp"
#include "tarsus/io/output_file.hpp"

namespace tarsus {

static_assert(std::endian::native == std::endian::little, "arrays are written as they lie in memory");

namespace {

struct Member {
  std::string name;
  std::uint64_t offset = 0, size = 0;
  std::uint32_t crc = 0;
};

constexpr std::uint16_t kDosDate = 1 << 5 | 1;  // 1 January 1980, so that files do not depend on the clock
constexpr std::size_t kCrcField = 14;           // offset of the CRC in the local header

/// A member's local header. Only large members get a zip64 field.
std::string local_header(const Member& m) {
  const bool large = m.size >= zip::kMax32;
  std::string h;
  zip::put(h, zip::kLocal, 4);
  zip::put(h, large ? 45 : 20, 2), zip::put(h, 0, 2), zip::put(h, zip::kStored, 2);
  zip::put(h, 0, 2), zip::put(h, kDosDate, 2), zip::put(h, m.crc, 4);
  for (int i = 0; i < 2; ++i) zip::put(h, large ? zip::kMax32 : m.size, 4);
  zip::put(h, m.name.size(), 2), zip::put(h, large ? 20 : 0, 2);
  h += m.name;
  if (large) zip::put(h, zip::kExtra64, 2), zip::put(h, 16, 2), zip::put(h, m.size, 8), zip::put(h, m.size, 8);
  return h;
}

std::string central_header(const Member& m) {
  const bool large = m.size >= zip::kMax32, far = m.offset >= zip::kMax32;
  std::string extra;
  if (large) zip::put(extra, m.size, 8), zip::put(extra, m.size, 8);
  if (far) zip::put(extra, m.offset, 8);
  std::string h;
  zip::put(h, zip::kCentral, 4);
  const int version = large || far ? 45 : 20;
  zip::put(h, 3 << 8 | version, 2), zip::put(h, version, 2), zip::put(h, 0, 2), zip::put(h, zip::kStored, 2);
  zip::put(h, 0, 2), zip::put(h, kDosDate, 2), zip::put(h, m.crc, 4);
  for (int i = 0; i < 2; ++i) zip::put(h, large ? zip::kMax32 : m.size, 4);
  zip::put(h, m.name.size(), 2), zip::put(h, extra.empty() ? 0 : extra.size() + 4, 2), zip::put(h, 0, 2);
  zip::put(h, 0, 2), zip::put(h, 0, 2), zip::put(h, std::uint64_t(0100644) << 16, 4);  // disk, attributes: -rw-r--r--
  zip::put(h, far ? zip::kMax32 : m.offset, 4);
  h += m.name;
  if (!extra.empty()) zip::put(h, zip::kExtra64, 2), zip::put(h, extra.size(), 2), h += extra;
  return h;
}

/// The end of the directory. The zip64 records precede it if a number does not fit.
std::string directory_end(std::uint64_t start, std::uint64_t size, std::uint64_t count) {
  std::string h;
  const bool large = start >= zip::kMax32 || size >= zip::kMax32 || count >= zip::kMax16;
  if (large) {
    zip::put(h, zip::kEnd64, 4), zip::put(h, zip::kEnd64Size - 12, 8), zip::put(h, 45, 2), zip::put(h, 45, 2);
    zip::put(h, 0, 4), zip::put(h, 0, 4), zip::put(h, count, 8), zip::put(h, count, 8), zip::put(h, size, 8),
        zip::put(h, start, 8);
    zip::put(h, zip::kLocator64, 4), zip::put(h, 0, 4), zip::put(h, start + size, 8), zip::put(h, 1, 4);
  }
  zip::put(h, zip::kEnd, 4), zip::put(h, 0, 2), zip::put(h, 0, 2);
  for (int i = 0; i < 2; ++i) zip::put(h, large ? zip::kMax16 : count, 2);
  zip::put(h, large ? zip::kMax32 : size, 4), zip::put(h, large ? zip::kMax32 : start, 4), zip::put(h, 0, 2);
  return h;
}

}  // namespace

struct NpzWriter::State {
  OutputFile out;
  std::vector<Member> members;
  std::set<std::string, std::less<>> names;
  std::uint64_t at = 0;    ///< bytes written to the file
  std::uint64_t left = 0;  ///< bytes missing from the open array
  bool open = false, finished = false;

  explicit State(const std::filesystem::path& file) : out(file) {}

  void put(const void* data, std::size_t size) {
    out.stream().write(static_cast<const char*>(data), std::streamsize(size));
    out.check();
    at += size;
  }
  void put(const std::string& text) { put(text.data(), text.size()); }
  void array_bytes(const void* data, std::size_t size) {
    Member& m = members.back();
    const auto* p = static_cast<const Bytef*>(data);
    m.crc = std::uint32_t(crc32_z(m.crc, p, size));
    put(data, size);
  }
  void close_array();
};

/// Writes the CRC into the local header, which was written before the CRC was known.
void NpzWriter::State::close_array() {
  const Member& m = members.back();
  std::string crc;
  zip::put(crc, m.crc, 4);
  out.stream().seekp(std::streamoff(m.offset + kCrcField)).write(crc.data(), std::streamsize(crc.size()));
  out.stream().seekp(std::streamoff(at));
  out.check();
  open = false;
}

NpzWriter::NpzWriter(const std::filesystem::path& file) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(file, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Error(fmt::format("{}: cannot be written: it exists and is not an ordinary file", file.string()));
  }
  state_ = std::make_unique<State>(file);
}

NpzWriter::~NpzWriter() = default;

void NpzWriter::begin(std::string_view name, NpzType type, const NpzShape& shape) {
  State& s = *state_;
  if (s.open) throw ShapeError("npz: bytes still missing from the last array", s.left, 0);
  if (name.empty() || name.size() > 256 || name.find_first_of(std::string_view("/\\:\0", 4)) != name.npos ||
      name.find("..") != name.npos) {
    throw ValueError("name", std::string(name),
                     "1 to 256 characters without / \\ : and .., because it names a file in a zip");
  }
  if (!s.names.emplace(name).second)
    throw ValueError("name", std::string(name), "a name that no other array of this file has");
  std::size_t count = 0;
  if (!element_count(shape, count))
    throw ValueError("shape", text(shape), "a shape whose number of elements does not overflow");
  const std::string header = write_npy_header(type, shape);
  s.left = count * item_size(type);
  s.members.push_back({std::string(name) + ".npy", s.at, header.size() + s.left, 0});
  s.open = true;
  s.put(local_header(s.members.back()));
  s.array_bytes(header.data(), header.size());
  if (s.left == 0) s.close_array();
}

void NpzWriter::write(std::span<const std::byte> bytes) {
  State& s = *state_;
  if (bytes.size() > s.left) throw ShapeError("npz: bytes of the array", bytes.size(), s.left);
  if (bytes.empty()) return;
  s.array_bytes(bytes.data(), bytes.size());
  s.left -= bytes.size();
  if (s.left == 0) s.close_array();
}

void NpzWriter::add_text(std::string_view name, std::string_view text) {
  begin(name, NpzType::uint8, {text.size()});
  write(std::as_bytes(std::span(text)));
}

void NpzWriter::finish() {
  State& s = *state_;
  if (s.finished) throw Error("finish() was called before");
  if (s.open) throw ShapeError("npz: bytes still missing from the last array", s.left, 0);
  const std::uint64_t start = s.at;
  for (const Member& m : s.members) s.put(central_header(m));
  s.put(directory_end(start, s.at - start, s.members.size()));
  s.out.finish();
  s.finished = true;
}

}  // namespace tarsus
