// Indices that users give, checked.
#pragma once

#include <string>
#include <string_view>

#include "tarsus/base/error.hpp"

namespace tarsus {

/// @throws ValueError naming `argument` unless 0 <= index < count
inline void check_index(std::string_view argument, int index, int count) {
  if (index < 0 || index >= count)
    throw ValueError(std::string(argument), std::to_string(index), "an index below " + std::to_string(count));
}

}  // namespace tarsus
