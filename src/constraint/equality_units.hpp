// The rows of equality constraints, grouped by unit.
#pragma once

#include <algorithm>

#include "tarsus/constraint/equality.hpp"

namespace tarsus {

/// Calls f(first, end) for the rows of one unit in constraints [begin, end): a weld's positions, then its angles.
template <class F>
void each_unit(const EqualitySet& set, int begin, int end, const F& f) {
  for (int i = begin; i < end; ++i) {
    for (int row = 0; row < set[i].nrow; row += 3)
      f(set[i].first_row + row, set[i].first_row + std::min(row + 3, set[i].nrow));
  }
}

}  // namespace tarsus
