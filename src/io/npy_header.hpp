// The text at the head of a .npy member: a Python dictionary with the element type, the order and the shape.  [NEP 1]
#pragma once

#include <string>
#include <string_view>

#include "tarsus/io/npz.hpp"

namespace tarsus {

struct NpyHeader {
  NpzType type = NpzType::float64;
  NpzShape shape;
};

/// Computes the number of elements of an array of that shape. False if it exceeds any memory.
bool element_count(const NpzShape& shape, std::size_t& count);

/// The header: magic, version 1.0, length and dictionary, padded to a multiple of 64 bytes as numpy does.
std::string write_npy_header(NpzType type, const NpzShape& shape);

inline constexpr std::size_t kNpyMagicSize = 12;         ///< largest number of bytes before the dictionary
inline constexpr std::size_t kNpyHeaderLimit = 1 << 16;  ///< largest dictionary that is read [bytes]
/// The place of the dictionary in a member [bytes], found from the member's first bytes (up to kNpyMagicSize). @throws
/// Error naming the fault
struct NpyExtent {
  std::size_t start = 0, length = 0;
};
NpyExtent npy_extent(std::string_view first);

/// @param dictionary the text at npy_extent()   @throws Error saying what is wrong or not supported
NpyHeader parse_npy_header(std::string_view dictionary);

}  // namespace tarsus
