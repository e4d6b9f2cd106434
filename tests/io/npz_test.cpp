// .npz files: written files against the format's rules, reading, and refused input.
#include "tarsus/io/npz.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>

#include "io/npz_zip.hpp"
#include "support/small_files.hpp"
#include "support/temporary_folder.hpp"

namespace tarsus::test {
namespace {

std::string slurp(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A zip written here byte by byte, independently of the writer under test, so that each field can be falsified.
struct TestMember {
  std::string name, data;  ///< data as they stand in the zip
  int method = 0, flags = 0;
  std::uint32_t crc = 0;
  std::uint64_t size = 0;  ///< uncompressed
  std::string local_extra, central_extra;
};

TestMember stored(std::string name, std::string data) {
  const std::uint32_t crc = std::uint32_t(crc32(0, reinterpret_cast<const Bytef*>(data.data()), uInt(data.size())));
  const std::uint64_t size = data.size();
  return {std::move(name), std::move(data), 0, 0, crc, size, {}, {}};
}

TestMember deflated(std::string name, const std::string& data) {
  TestMember m = stored(std::move(name), data);
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY);
  m.data.assign(deflateBound(&z, uLong(data.size())), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data())), z.avail_in = uInt(data.size());
  z.next_out = reinterpret_cast<Bytef*>(m.data.data()), z.avail_out = uInt(m.data.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  m.data.resize(z.total_out);
  deflateEnd(&z);
  m.method = 8;
  return m;
}

std::string make_zip(const std::vector<TestMember>& members) {
  std::string out, directory;
  for (const TestMember& m : members) {
    const std::size_t offset = out.size();
    const auto common = [&](std::string& h, const std::string& extra) {
      zip::put(h, 20, 2), zip::put(h, m.flags, 2), zip::put(h, m.method, 2), zip::put(h, 0, 4), zip::put(h, m.crc, 4);
      zip::put(h, m.data.size(), 4), zip::put(h, m.size, 4), zip::put(h, m.name.size(), 2),
          zip::put(h, extra.size(), 2);
    };
    zip::put(out, zip::kLocal, 4), common(out, m.local_extra);
    out += m.name + m.local_extra + m.data;
    zip::put(directory, zip::kCentral, 4), zip::put(directory, 20, 2), common(directory, m.central_extra);
    zip::put(directory, 0, 2), zip::put(directory, 0, 2), zip::put(directory, 0, 2), zip::put(directory, 0, 4),
        zip::put(directory, offset, 4);
    directory += m.name + m.central_extra;
  }
  const std::size_t start = out.size();
  out += directory;
  zip::put(out, zip::kEnd, 4), zip::put(out, 0, 4), zip::put(out, members.size(), 2), zip::put(out, members.size(), 2);
  zip::put(out, directory.size(), 4), zip::put(out, start, 4), zip::put(out, 0, 2);
  return out;
}

std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string out = "\x93NUMPY";
  out += char(version), out += '\0';
  zip::put(out, dictionary.size(), version == 1 ? 2 : 4);
  return out + dictionary + data;
}

std::string dict(const std::string& descr, const std::string& shape, const std::string& fortran = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

template <class E>
std::string raw(const std::vector<E>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(E)};
}

const std::vector<double> kSix{1, -2.5, 3e300, 0, 5e-324, 6};
std::string good_array() { return npy(dict("'<f8'", "(2, 3)"), raw(kSix)); }

/// The message must name the file, and the member where one is given, and contain `part`.
void expect_npz_refused(
    const std::string& bytes, const std::string& member, const std::string& part,
    const std::function<void(NpzReader&)>& use = [](NpzReader& r) {
      r.read_real("a", {2, 3});
    }) {
  try {
    NpzReader reader(bytes, "test.npz");
    use(reader);
    ADD_FAILURE() << "accepted; expected: " << part;
  } catch (const InputError& e) {
    const std::string what = e.what();
    EXPECT_EQ(e.diagnostics().at(0).where.file, "test.npz") << what;
    EXPECT_NE(e.diagnostics().at(0).where.element.find(member), std::string::npos) << what;
    EXPECT_NE(what.find(part), std::string::npos) << what << "\nexpected: " << part;
  }
}

TEST(Npz, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.npz";
  const std::vector<float> floats{1.5f, -0.0f};
  const std::vector<std::int64_t> integers{-1, std::int64_t(1) << 62, 3};
  NpzWriter writer(file);
  writer.add<double>("six", kSix, {2, 3});
  writer.add<float>("floats", floats, {2});
  writer.add<std::int64_t>("integers", integers, {3, 1});
  writer.add<double>("none", {}, {0, 7});
  writer.add<double>("scalar", std::span(kSix).first(1), {});
  writer.add_text("meta", "{\"ä\": 1}");
  EXPECT_FALSE(std::filesystem::exists(file)) << "the file must not appear before it is complete";
  writer.finish();
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.npz.partial"));

  NpzReader reader(file);
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"six", "floats", "integers", "none", "scalar", "meta"}));
  EXPECT_EQ(reader.read_real("six", {2, 3}), kSix);
  EXPECT_EQ(reader.read_real("six", {NpzReader::kAny, 3}), kSix);
  EXPECT_EQ(reader.read_real("floats", {2}), (std::vector<double>{1.5, -0.0}));
  EXPECT_TRUE(std::signbit(reader.read_real("floats", {2})[1]));
  EXPECT_EQ(reader.info("integers").type, NpzType::int64);
  EXPECT_EQ(reader.info("integers").shape, (NpzShape{3, 1}));
  EXPECT_TRUE(reader.read_real("none", {0, 7}).empty());
  EXPECT_EQ(reader.read_real("scalar", {}), std::vector<double>{1});
  EXPECT_EQ(reader.read_text("meta"), "{\"ä\": 1}");
}

/// NEP 1: magic, version, little-endian length, a dictionary that ends in a newline, data at a multiple of 64 bytes.
TEST(Npz, WritesTheNpyFormat) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.npz";
  NpzWriter writer(file);
  writer.add<double>("a", kSix, {2, 3});
  writer.add<double>("b", kSix, {6});
  writer.finish();
  const std::string bytes = slurp(file);
  const std::size_t name_size = std::strlen("a.npy"), start = 30 + name_size;
  ASSERT_EQ(bytes.substr(0, 4), "PK\x03\x04");
  EXPECT_EQ(zip::get(bytes, 6, 2), 0u) << "flags";
  EXPECT_EQ(zip::get(bytes, 8, 2), 0u) << "stored";
  ASSERT_EQ(bytes.substr(start, 8), std::string("\x93NUMPY\x01\x00", 8));
  const std::size_t length = zip::get(bytes, start + 8, 2);
  EXPECT_EQ((10 + length) % 64, 0u);
  const std::string header = bytes.substr(start + 10, length);
  EXPECT_EQ(header.back(), '\n');
  EXPECT_EQ(header.substr(0, header.find_last_not_of(" \n") + 1),
            "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
  const std::string data = bytes.substr(start + 10 + length, 48);
  EXPECT_EQ(data, raw(kSix));
  const std::string member = bytes.substr(start, 10 + length + 48);
  EXPECT_EQ(zip::get(bytes, 14, 4), crc32(0, reinterpret_cast<const Bytef*>(member.data()), uInt(member.size())));
  EXPECT_EQ(zip::get(bytes, 18, 4), member.size());
  EXPECT_NE(bytes.find("'shape': (6,), }"), std::string::npos) << "Python's tuple of one";
}

TEST(Npz, EqualArraysGiveEqualFiles) {
  const TemporaryFolder folder;
  std::string bytes[2];
  for (int i = 0; i < 2; ++i) {
    const auto file = folder.path() / (i ? "b.npz" : "a.npz");
    NpzWriter writer(file);
    writer.add<double>("six", kSix, {2, 3});
    writer.finish();
    bytes[i] = slurp(file);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
}

TEST(Npz, PiecesEqualTheWhole) {
  const TemporaryFolder folder;
  NpzWriter whole(folder.path() / "whole.npz"), pieces(folder.path() / "pieces.npz");
  whole.add<double>("six", kSix, {6});
  pieces.begin("six", NpzType::float64, {6});
  pieces.write(std::as_bytes(std::span(kSix).first(1)));
  EXPECT_THROW(pieces.begin("other", NpzType::float64, {6}), ShapeError);
  EXPECT_THROW(pieces.finish(), ShapeError);
  EXPECT_THROW(pieces.write(std::as_bytes(std::span(kSix))), ShapeError);
  pieces.write(std::as_bytes(std::span(kSix).subspan(1)));
  whole.finish(), pieces.finish();
  EXPECT_EQ(slurp(folder.path() / "whole.npz"), slurp(folder.path() / "pieces.npz"));
}

TEST(Npz, UnfinishedLeavesTheOldFileAlone) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "a.npz";
  std::ofstream(file) << "old";
  {
    NpzWriter writer(file);
    writer.add<double>("six", kSix, {6});
  }
  EXPECT_EQ(slurp(file), "old");
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "a.npz.partial"));
}

TEST(Npz, WriterNamesWhatIsWrong) {
  const TemporaryFolder folder;
  const auto refused = [](const std::filesystem::path& file, const char* reason) {
    try {
      NpzWriter writer(file);
      ADD_FAILURE() << file;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(file.string()), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(reason), std::string::npos) << e.what();
    }
  };
  refused(folder.path() / "missing" / "a.npz", "No such file or directory");
  refused(folder.path(), "not an ordinary file");
  refused("/dev/null", "not an ordinary file");
  NpzWriter writer(folder.path() / "a.npz");
  writer.add<double>("six", kSix, {6});
  EXPECT_THROW(writer.add<double>("six", kSix, {6}), ValueError) << "a name twice";
  for (const char* name : {"", "../a", "/a", "a\\b", "c:a"})
    EXPECT_THROW(writer.add<double>(name, kSix, {6}), ValueError) << name;
  EXPECT_THROW(writer.add<double>("big", kSix, {std::size_t(1) << 40, std::size_t(1) << 40}), ValueError);
}

TEST(Npz, FullDiskIsReportedAndLeavesNothing) {
  const TemporaryFolder folder;
  try {
    const test::SmallFiles full(4096);
    NpzWriter writer(folder.path() / "a.npz");
    writer.add<double>("big", std::vector<double>(100'000), {100'000});
    writer.finish();
    ADD_FAILURE() << "the disk was full";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("a.npz"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("File too large"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Npz, ReadsWhatNumpyWrites) {
  TestMember zip64 = stored("a.npy", good_array());  // numpy.savez writes a zip64 field into every local header
  zip::put(zip64.local_extra, 1, 2), zip::put(zip64.local_extra, 16, 2), zip::put(zip64.local_extra, zip64.size, 8),
      zip::put(zip64.local_extra, zip64.size, 8);
  for (const TestMember& member : {stored("a.npy", good_array()), deflated("a.npy", good_array()), zip64}) {
    NpzReader reader(make_zip({member, stored("readme.txt", "x")}), "test.npz");
    EXPECT_EQ(reader.read_real("a", {2, 3}), kSix);
    EXPECT_EQ(reader.others(), std::vector<std::string>{"readme.txt"});
  }
  for (const int version : {1, 2, 3}) {
    NpzReader reader(make_zip({stored("a.npy", npy(dict("'<f8'", "(2, 3)"), raw(kSix), version))}), "test.npz");
    EXPECT_EQ(reader.read_real("a", {2, 3}), kSix) << "version " << version;
  }
  NpzReader python2(
      make_zip({stored("a.npy", npy("{\"shape\": (2L, 3L), 'fortran_order': False, 'descr': \"<f8\"}", raw(kSix)))}),
      "test.npz");
  EXPECT_EQ(python2.read_real("a", {2, 3}), kSix);
}

TEST(Npz, RefusesWhatItDoesNotRead) {
  const auto with = [](const std::string& dictionary) {
    return make_zip({stored("a.npy", npy(dictionary, raw(kSix)))});
  };
  expect_npz_refused(with(dict("'|O'", "(6,)")), "a", "pickled");
  expect_npz_refused(with(dict("'>f8'", "(2, 3)")), "a", "big-endian");
  expect_npz_refused(with(dict("'<f8'", "(2, 3)", "True")), "a", "Fortran");
  expect_npz_refused(with(dict("'<c16'", "(3,)")), "a", "<c16");
  expect_npz_refused(with(dict("'<U2'", "(6,)")), "a", "<U2");
  expect_npz_refused(with(dict("[('x', '<f8')]", "(6,)")), "a", "structured");
  expect_npz_refused(with(dict("'<i8'", "(2, 3)")), "a", "int64; expected float64");
  expect_npz_refused(with(dict("'<f8'", "(3, 2)")), "a", "(3, 2); expected (2, 3)");
  expect_npz_refused(with(dict("'<f8'", "(6,)")), "a", "(6,); expected (2, 3)");
  TestMember secret = stored("a.npy", good_array());
  secret.flags = 1;
  expect_npz_refused(make_zip({secret}), "a.npy", "encrypted");
  TestMember lzma = stored("a.npy", good_array());
  lzma.method = 14;
  expect_npz_refused(make_zip({lzma}), "a.npy", "method 14");
  expect_npz_refused(make_zip({stored("b.npy", good_array())}), "a", "the file has b");
  expect_npz_refused(make_zip({stored("a.npy", good_array()), stored("a.npy", good_array())}), "a.npy", "twice");
  for (const char* name : {"../a.npy", "/etc/a.npy", "x/../../a.npy", "..\\a.npy", "c:a.npy", "a\n.npy", ""}) {
    expect_npz_refused(make_zip({stored(name, good_array())}), "", "leads out of the file");
  }
}

TEST(Npz, RefusesDamagedHeaders) {
  const auto with = [](const std::string& data) { return make_zip({stored("a.npy", data)}); };
  expect_npz_refused(with("hello, this is text"), "a", "not a .npy array");
  expect_npz_refused(with(""), "a", "not a .npy array");
  expect_npz_refused(with(npy(dict("'<f8'", "(2, 3)"), raw(kSix), 9)), "a", "9.0 is not supported");
  expect_npz_refused(with(good_array().substr(0, 30)), "a", "cut off");
  expect_npz_refused(with(good_array().substr(0, good_array().size() - 1)), "a", "needs 48 bytes");
  expect_npz_refused(with(good_array() + "x"), "a", "needs 48 bytes");
  expect_npz_refused(with(npy(dict("'<f8'", "(99999999999, 99999999999)"), raw(kSix))), "a", "larger than any memory");
  expect_npz_refused(with(npy(dict("'<f8'", "(99999999999,)"), raw(kSix))), "a", "needs 799999999992 bytes");
  expect_npz_refused(with(npy(dict("'<f8'", "(-2, 3)"), raw(kSix))), "a", "other than a size");
  expect_npz_refused(with(npy(dict("'<f8'", "(99999999999999999999999,)"), raw(kSix))), "a", "other than a size");
  expect_npz_refused(with(npy("{'descr': '<f8', 'shape': (6,)}", raw(kSix))), "a", "lacks");
  expect_npz_refused(with(npy("{'descr': '<f8', 'descr': '<f8'}", raw(kSix))), "a", "repeated");
  expect_npz_refused(with(npy("__import__('os').system('true')", raw(kSix))), "a", "damaged");
  expect_npz_refused(with(npy("{'descr': '<f8", raw(kSix))), "a", "without end");
  std::string long_header = "\x93NUMPY\x02";
  long_header += '\0';
  zip::put(long_header, 0xfffffff0, 4);
  expect_npz_refused(with(long_header), "a", "claims 4294967280 bytes");
  std::string many = "(";
  for (int i = 0; i < 100; ++i) many += "1, ";
  expect_npz_refused(with(npy(dict("'<f8'", many + ")"), raw(kSix))), "a", "32 dimensions");
}

/// A file truncated anywhere is refused, and no changed byte changes an array silently.
TEST(Npz, EveryTruncationAndEveryFlippedByteIsNoticed) {
  for (const TestMember& member : {stored("a.npy", good_array()), deflated("a.npy", good_array())}) {
    const std::string bytes = make_zip({member});
    for (std::size_t n = 0; n < bytes.size(); ++n) expect_npz_refused(bytes.substr(0, n), "", "");
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      for (const int flip : {0x01, 0x80, 0xff}) {
        std::string changed = bytes;
        changed[i] = char(changed[i] ^ flip);
        try {
          NpzReader reader(changed, "test.npz");
          EXPECT_EQ(reader.read_real("a", {2, 3}), kSix)
              << "byte " << i;  // a byte that means nothing: a date, a version
        } catch (const InputError&) {
        }
      }
    }
  }
}

TEST(Npz, SizesThatLieAreRefused) {
  TestMember claims = stored("a.npy", good_array());
  claims.size = 0x7fffffff;
  expect_npz_refused(make_zip({claims}), "a.npy", "two different sizes");
  TestMember bomb = deflated("a.npy", npy(dict("'<f8'", "(2, 3)"), raw(kSix)));
  bomb.size = 0x7fffffff;
  expect_npz_refused(make_zip({bomb}), "a.npy", "compressed bytes can hold");
  TestMember more = deflated("a.npy", good_array() + std::string(100, 'x'));
  more.size = good_array().size();
  expect_npz_refused(make_zip({more}), "a", "has more than");
  TestMember wrong_crc = stored("a.npy", good_array());
  wrong_crc.crc ^= 1;
  expect_npz_refused(make_zip({wrong_crc}), "a", "CRC");
  // Valid, but 72 MB of zeros in 70 kB.
  const std::size_t count = 9'000'000;
  const std::string huge = make_zip(
      {deflated("a.npy", npy(dict("'<f8'", "(" + std::to_string(count) + ",)"), std::string(8 * count, '\0')))});
  expect_npz_refused(huge, "a", "when decompressed", [&](NpzReader& r) { r.read_real("a", {count}); });
}

TEST(Npz, FilesThatAreNone) {
  const TemporaryFolder folder;
  const auto refused = [](const std::filesystem::path& file, const char* reason) {
    try {
      NpzReader reader(file);
      ADD_FAILURE() << file;
    } catch (const InputError& e) {
      EXPECT_NE(std::string(e.what()).find(reason), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(file.string()), std::string::npos) << e.what();
    }
  };
  refused(folder.path() / "missing.npz", "no such file");
  refused(folder.path(), "not an ordinary file");
  refused("/dev/zero", "not an ordinary file");
  std::ofstream(folder.path() / "empty.npz");
  refused(folder.path() / "empty.npz", "too few for a zip");
  std::ofstream(folder.path() / "text.npz") << std::string(1000, 'x');
  refused(folder.path() / "text.npz", "no zip directory");
}

}  // namespace
}  // namespace tarsus::test
