// Numbers of worlds, [world][n], into the lanes of a pack, [n][lane], and back; and whether they are within a bound.
#pragma once

#include <span>

namespace tarsus {

/// out[i width + lane] = rows[lane][i] for i < n, a lane for each row.
/// @param rows [width], width 1 or lanes<R>(isa_level())  @param out aligned as AlignedVector is
template <class R>
void to_lanes(std::span<const R* const> rows, int n, R* out);

/// rows[lane][i] = in[i width + lane] for i < n; nothing where rows[lane] is null.
template <class R>
void to_rows(const R* in, int n, std::span<R* const> rows);

/// All |x| <= limit; a nan is not.
template <class R>
bool all_within(std::span<const R> x, R limit);

}  // namespace tarsus
