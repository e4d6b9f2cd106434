#include "geometry/sweep.hpp"

#include <algorithm>

namespace tarsus {

PairBuffer buffer_of(std::vector<BodyPair>& pairs) {
  pairs.resize(std::max<std::size_t>(pairs.capacity(), 64));
  return {pairs.data(), 0, pairs.size(), &pairs, [](PairBuffer& out) {
            auto& grown = *static_cast<std::vector<BodyPair>*>(out.owner);
            grown.resize(2 * grown.size());
            out.data = grown.data(), out.capacity = grown.size();
          }};
}

void sweep_neighbours(const Rows& rows, void (*sweep)(void*, Stretch, Stretch, bool), void* context) {
  const std::size_t n = rows.row.size();
  // Half of the neighbours: the row itself and the four behind it. Each offset keeps its own position, which only
  // increases.
  const std::uint64_t offset[4] = {1, rows.grid.stride - 1, rows.grid.stride, rows.grid.stride + 1};
  std::size_t at[4] = {0, 0, 0, 0};
  for (std::size_t r = 0; r < n; ++r) {
    const Stretch mine{rows.row_begin[r], rows.row_begin[r + 1]};
    sweep(context, mine, mine, true);
    for (int k = 0; k < 4; ++k) {
      const std::uint64_t wanted = rows.row[r] + offset[k];
      while (at[k] < n && rows.row[at[k]] < wanted) ++at[k];
      if (at[k] < n && rows.row[at[k]] == wanted) {
        sweep(context, mine, {rows.row_begin[at[k]], rows.row_begin[at[k] + 1]}, false);
      }
    }
  }
}

}  // namespace tarsus
