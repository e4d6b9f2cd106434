// NumPy's .npz: a zip of .npy arrays.  [NEP 1; PKWARE APPNOTE 6.3.10]
//
// Written: stored (not compressed) members, little-endian, C order, format 1.0, zip64 where a size needs it. The file
// has no time stamps: equal arrays give equal files.
// Read: stored and deflated members (numpy.savez and savez_compressed), zip64, formats 1.0 to 3.0, the element types of
// NpzType.
// Refused by name: pickled objects, text, complex and structured types, big-endian and Fortran-ordered arrays,
// encryption, other compressions. Every size in the file is checked against the bytes that are there before memory is
// allocated for it. Every member is checked against its CRC.
#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tarsus/base/error.hpp"

namespace tarsus {

enum class NpzType { float64, float32, int64, int32, int16, int8, uint64, uint32, uint16, uint8, boolean };
const char* name(NpzType type);
std::size_t item_size(NpzType type);

template <class E>
constexpr NpzType npz_type() {
  if constexpr (std::is_same_v<E, double>)
    return NpzType::float64;
  else if constexpr (std::is_same_v<E, float>)
    return NpzType::float32;
  else if constexpr (std::is_same_v<E, std::int64_t>)
    return NpzType::int64;
  else if constexpr (std::is_same_v<E, std::uint64_t>)
    return NpzType::uint64;
  else {
    static_assert(std::is_same_v<E, std::uint8_t>, "written: double, float, int64, uint64, uint8");
    return NpzType::uint8;
  }
}

using NpzShape = std::vector<std::size_t>;
/// The shape as numpy writes a tuple: "(300, 43)".
std::string text(const NpzShape& shape);

/// Writes FILE.partial and renames it in finish(), so that FILE is either complete or unchanged. Every function throws
/// Error naming the file and the system's reason.
class NpzWriter {
 public:
  /// @throws Error if FILE.partial cannot be created, or FILE exists and is not a regular file
  explicit NpzWriter(const std::filesystem::path& file);
  ~NpzWriter();  ///< removes FILE.partial unless finish() was reached
  NpzWriter(const NpzWriter&) = delete;
  NpzWriter& operator=(const NpzWriter&) = delete;

  /// Adds a whole array. @param name without ".npy"   @throws ShapeError, ValueError for a duplicate or invalid name
  template <class E>
  void add(std::string_view name, std::span<const E> values, const NpzShape& shape) {
    begin(name, npz_type<E>(), shape);
    write(std::as_bytes(values));
  }
  /// Adds UTF-8 text as an array of uint8.
  void add_text(std::string_view name, std::string_view text);

  /// Adds an array piece by piece: begin(), then write() until the array is full.
  void begin(std::string_view name, NpzType type, const NpzShape& shape);
  /// @throws ShapeError for more bytes than the array has
  void write(std::span<const std::byte> bytes);

  /// Writes the zip's directory, flushes the file to disk and renames it. @throws also if an array is not full
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One array of an .npz, as its header describes it.
struct NpzInfo {
  std::string name;  ///< without ".npy"
  NpzType type = NpzType::float64;
  NpzShape shape;
  std::size_t count() const;
};

class NpzReader {
 public:
  /// Reads the zip's directory. @throws InputError naming the file (and the member where there is one)
  explicit NpzReader(const std::filesystem::path& file);
  /// From memory; `name` stands for the file in messages.
  NpzReader(std::string bytes, const std::string& name);
  ~NpzReader();

  /// Names of the arrays in the file's order, without ".npy".
  const std::vector<std::string>& names() const;
  /// Full names of the members that are not arrays.
  const std::vector<std::string>& others() const;
  bool has(std::string_view name) const;

  /// @throws InputError if there is no such array, or its header cannot be used
  NpzInfo info(std::string_view name);
  /// float64 or float32 values. @param shape expected; kAny matches any size
  /// @throws InputError naming file and array: another type or shape, damaged data, a deflated array larger than 64 MiB
  ///   plus 16 times the file's size
  std::vector<double> read_real(std::string_view name, const NpzShape& shape);
  /// The value of an array with a single element, of any type.
  double read_number(std::string_view name);
  /// uint64 values; otherwise like read_real().
  std::vector<std::uint64_t> read_words(std::string_view name, const NpzShape& shape);
  /// A uint8 array as text, up to 16 MiB.
  std::string read_text(std::string_view name);
  static constexpr std::size_t kAny = ~std::size_t(0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tarsus
