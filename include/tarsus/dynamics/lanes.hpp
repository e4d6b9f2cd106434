// Transposes arrays between world-major order, [world][n], and the lanes of a pack, [n][lane]; checks numbers for a
// bound.
#pragma once

#include <span>

namespace tarsus {

/// out[i width + lane] = rows[lane][i] for i < n, with one lane per row.
/// @param rows [width], width 1 or lanes<R>(isa_level())  @param out aligned as AlignedVector is
template <class R>
void to_lanes(std::span<const R* const> rows, int n, R* out);

/// rows[lane][i] = in[i width + lane] for i < n; skips lanes whose row is null. The inverse of to_lanes().
template <class R>
void to_rows(const R* in, int n, std::span<R* const> rows);

/// Whether |x| <= limit for all x; false for nan.
template <class R>
bool all_within(std::span<const R> x, R limit);

}  // namespace tarsus
