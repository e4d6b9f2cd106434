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

/// Elements of an array of that shape; false when the product is beyond any memory.
bool element_count(const NpzShape& shape, std::size_t& count);

/// Magic, version 1.0, length and dictionary, padded to a multiple of 64 bytes as numpy does.
std::string write_npy_header(NpzType type, const NpzShape& shape);

inline constexpr std::size_t kNpyMagicSize = 12;         ///< the longest of what stands before the dictionary
inline constexpr std::size_t kNpyHeaderLimit = 1 << 16;  ///< bytes of dictionary that are read at most
/// Where the dictionary lies, from a member's first bytes (up to kNpyMagicSize of them). @throws Error saying what is
/// wrong
struct NpyExtent {
  std::size_t start = 0, length = 0;
};
NpyExtent npy_extent(std::string_view first);

/// @param dictionary what npy_extent() points at   @throws Error saying what is wrong or not supported
NpyHeader parse_npy_header(std::string_view dictionary);

}  // namespace tarsus
