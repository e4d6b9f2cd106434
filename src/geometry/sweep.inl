// Compiled once for each instruction set (src/geometry/isa/).
#pragma once

#include <limits>

#include "geometry/sweep.hpp"
#include "math/kernel_call.inl"
#include "tarsus/math/row_pack.hpp"
#include "tarsus/math/scalar.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

#if defined(__AVX2__)
inline constexpr int kSweepLanes = 4;
#else
inline constexpr int kSweepLanes = 2;
#endif
using SweepPack = Pack<double, kSweepLanes>;

/// One bit per lane.
TARSUS_INLINE unsigned sweep_bits(SweepPack::Mask mask) {
#if defined(__AVX2__)
  return static_cast<unsigned>(_mm256_movemask_pd(reinterpret_cast<__m256d>(mask)));
#elif defined(__SSE2__)
  return static_cast<unsigned>(_mm_movemask_pd(reinterpret_cast<__m128d>(mask)));
#else
  unsigned word = 0;
  for (int i = 0; i < kSweepLanes; ++i) word |= (mask[i] ? 1u : 0u) << i;
  return word;
#endif
}

/// Bin of x in the grid, without a call across instruction sets.
TARSUS_INLINE std::int32_t sweep_bin(const RowGrid& g, double x) {
  const double cell = (x - g.x0) * g.inverse_bin, last = RowGrid::kMaxBins - 1;
  return static_cast<std::int32_t>(cell > 0 ? (cell < last ? cell : last) : 0);
}

/// A lower bound of every x in this bin or a later one; x itself is not sorted within a bin.
TARSUS_INLINE double sweep_floor(const RowGrid& g, std::int32_t bin) {
  return bin < 2 ? -std::numeric_limits<double>::infinity() : g.x0 + (bin - 1) * g.bin_width;
}

/// First index from `at` whose bin is not below `least`: linear search for a few steps, then doubling.
TARSUS_INLINE std::uint32_t sweep_advance(const std::int32_t* bin, std::uint32_t at, std::uint32_t end,
                                          std::int32_t least) {
  for (int k = 0; k < 8; ++k) {
    if (at == end || bin[at] >= least) return at;
    ++at;
  }
  std::uint32_t step = 8;
  while (at < end && bin[at] < least) {
    const std::uint32_t next = end - at > step ? at + step : end;
    if (next < end && bin[next] < least) {
      at = next;
      step *= 2;
      continue;
    }
    std::uint32_t low = at, high = next;  // bin[low] < least; bin[high] is not below it, or high is the end
    while (high - low > 1) {
      const std::uint32_t middle = low + (high - low) / 2;
      (bin[middle] < least ? low : high) = middle;
    }
    return high;
  }
  return at;
}

/// Writes the pairs (i, j + lane) of the hit lanes. It writes a whole pack of pairs; those not counted are overwritten
/// later. Which lanes hit is practically random, so a branch for each would be mispredicted.
#if defined(__AVX2__)
struct SweepPicks {
  std::int32_t pick[16][8] = {};
  constexpr SweepPicks() {
    for (int mask = 0; mask < 16; ++mask) {
      for (int lane = 0, to = 0; lane < 4; ++lane) {
        if (!(mask >> lane & 1)) continue;
        pick[mask][2 * to] = 2 * lane;
        pick[mask][2 * to + 1] = 2 * lane + 1;
        ++to;
      }
    }
  }
};
alignas(32) inline constexpr SweepPicks kSweepPicks{};

TARSUS_INLINE void sweep_emit(unsigned found, std::uint32_t i, std::uint32_t j, PairBuffer& out) {
  const auto a = static_cast<int>(i), b = static_cast<int>(j);
  const __m256i pairs = _mm256_setr_epi32(a, b, a, b + 1, a, b + 2, a, b + 3);
  const __m256i pick = _mm256_load_si256(reinterpret_cast<const __m256i*>(kSweepPicks.pick[found]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.data + out.count), _mm256_permutevar8x32_epi32(pairs, pick));
  out.count += static_cast<std::size_t>(__builtin_popcount(found));
}
#else
TARSUS_INLINE void sweep_emit(unsigned found, std::uint32_t i, std::uint32_t j, PairBuffer& out) {
  for (unsigned lane = 0; lane < kSweepLanes; ++lane) {
    out.data[out.count] = {i, j + lane};
    out.count += found >> lane & 1;
  }
}
#endif

/// Largest number of bins that a length spans, rounded up, for any positions within the bins.
TARSUS_INLINE std::int32_t sweep_bins(const RowGrid& g, double length) {
  const double bins = length * g.inverse_bin;
  return static_cast<std::int32_t>(bins < RowGrid::kMaxBins ? bins : RowGrid::kMaxBins) + 2;
}

/// Lanes of a pack before `end`.
TARSUS_INLINE unsigned sweep_inside(std::uint32_t j, std::uint32_t end) {
  const std::uint32_t left = end - j;
  return left >= kSweepLanes ? (1u << kSweepLanes) - 1 : (1u << left) - 1;
}

void sweep_boxes(const BoxRows& a, Stretch si, const BoxRows& b, Stretch sj, bool same, PairBuffer& out) {
  std::uint32_t first = sj.begin;
  const bool one_grid = a.grid == b.grid;
  const std::int32_t reach = sweep_bins(*b.grid, b.largest);
  for (std::uint32_t i = si.begin; i < si.end; ++i) {
    const double low = a.lower_x[i], high = a.upper_x[i];
    if (same) {
      first = i + 1;
    } else {
      const std::int32_t least =
          one_grid ? a.bin[i] - reach : sweep_bin(*b.grid, sweep_floor(*a.grid, a.bin[i]) - b.largest);
      first = sweep_advance(b.bin, first, sj.end, least);
    }
    const std::int32_t last = sweep_bin(*b.grid, high);
    const SweepPack lx(low), ux(high), ly(a.lower_y[i]), uy(a.upper_y[i]), lz(a.lower_z[i]), uz(a.upper_z[i]);
    for (std::uint32_t j = first; j < sj.end && b.bin[j] <= last; j += kSweepLanes) {
      const auto hit = (lx <= load_rows<SweepPack>(b.upper_x + j)) & (load_rows<SweepPack>(b.lower_x + j) <= ux) &
                       (ly <= load_rows<SweepPack>(b.upper_y + j)) & (load_rows<SweepPack>(b.lower_y + j) <= uy) &
                       (lz <= load_rows<SweepPack>(b.upper_z + j)) & (load_rows<SweepPack>(b.lower_z + j) <= uz);
      if (out.capacity - out.count < kSweepPadding) out.grow(out);
      sweep_emit(sweep_bits(hit) & sweep_inside(j, sj.end), i, j, out);
    }
  }
}

void sweep_spheres(const SphereRows& s, Stretch si, Stretch sj, bool same, PairBuffer& out) {
  std::uint32_t first = sj.begin;
  const std::int32_t bins = sweep_bins(*s.grid, s.reach);
  for (std::uint32_t i = si.begin; i < si.end; ++i) {
    first = same ? i + 1 : sweep_advance(s.bin, first, sj.end, s.bin[i] - bins);
    const std::int32_t last = s.bin[i] + bins;
    const SweepPack x(s.x[i]), y(s.y[i]), z(s.z[i]), reach(s.radius[i] + s.margin);
    for (std::uint32_t j = first; j < sj.end && s.bin[j] <= last; j += kSweepLanes) {
      const SweepPack dx = x - load_rows<SweepPack>(s.x + j), dy = y - load_rows<SweepPack>(s.y + j),
                      dz = z - load_rows<SweepPack>(s.z + j);
      const SweepPack sum = reach + load_rows<SweepPack>(s.radius + j);
      const auto hit = mul_add(dx, dx, mul_add(dy, dy, dz * dz)) <= sum * sum;
      if (out.capacity - out.count < kSweepPadding) out.grow(out);
      sweep_emit(sweep_bits(hit) & sweep_inside(j, sj.end), i, j, out);
    }
  }
}

void sweep_contacts(const SphereRows& s, const BodyPair* pairs, std::size_t count, const ContactArrays& out) {
  const auto gather = [&](const double* from, std::size_t k, bool second) {
    SweepPack r;
    for (int lane = 0; lane < kSweepLanes; ++lane) {
      const BodyPair& p = pairs[k + static_cast<std::size_t>(lane)];
      r.set(lane, from[second ? p.second : p.first]);
    }
    return r;
  };
  for (std::size_t k = 0; k < count; k += kSweepLanes) {
    const SweepPack dx = gather(s.x, k, false) - gather(s.x, k, true),
                    dy = gather(s.y, k, false) - gather(s.y, k, true);
    const SweepPack dz = gather(s.z, k, false) - gather(s.z, k, true);
    const SweepPack length = square_root(mul_add(dx, dx, mul_add(dy, dy, dz * dz)));
    const auto apart = length > SweepPack(1e-150);
    const SweepPack inverse = SweepPack(1.0) / select(apart, length, SweepPack(1.0));
    store_rows(out.normal_x + k, select(apart, dx * inverse, SweepPack(0.0)));
    store_rows(out.normal_y + k, select(apart, dy * inverse, SweepPack(0.0)));
    store_rows(out.normal_z + k, select(apart, dz * inverse, SweepPack(1.0)));
    store_rows(out.distance + k, length - gather(s.radius, k, false) - gather(s.radius, k, true));
  }
}

/// Spheres i, i + 1, … of a group, one per lane of P.
template <class P>
TARSUS_INLINE void sweep_carry_some(const SphereGroup& g, std::uint32_t i, SphereColumns& s) {
  using Column = std::array<std::vector<double>, 3>;
  const auto store = [i](Column& to, const Vec3<P>& a) {
    store_rows(&to[0][i], a.x), store_rows(&to[1][i], a.y), store_rows(&to[2][i], a.z);
  };
  const auto wide = [](const Vec3d& a) { return Vec3<P>{P(a.x), P(a.y), P(a.z)}; };
  const auto turned = [&](int row) {
    const Vec3d r = row == 0 ? g.rotation.row_x() : row == 1 ? g.rotation.row_y() : g.rotation.row_z();
    return mul_add(P(r.x), load_rows<P>(&s.own[0][i]),
                   mul_add(P(r.y), load_rows<P>(&s.own[1][i]), P(r.z) * load_rows<P>(&s.own[2][i])));
  };
  const Vec3<P> arm = {turned(0), turned(1), turned(2)}, spin = wide(g.spin);
  const Vec3<P> velocity = cross_add(spin, arm, wide(g.velocity));
  const P radius = load_rows<P>(&s.radius[i]), infinite(std::numeric_limits<double>::infinity());
  const P turn = select(radius < infinite, norm(spin) * radius, P(0.0));
  store(s.centre, wide(g.position) + arm), store(s.velocity, velocity);
  store_rows(&s.turn[i], turn), store_rows(&s.speed[i], norm(velocity) + turn);
}

/// A pack may write beyond its group's end; the next group overwrites this.
void sweep_carry(const SphereGroup* groups, std::size_t count, SphereColumns& s) {
  for (const SphereGroup* g = groups; g < groups + count; ++g) {
    if (g->last - g->first == 1) {
      sweep_carry_some<double>(*g, g->first, s);
      continue;
    }
    for (std::uint32_t i = g->first; i < g->last; i += kSweepLanes) sweep_carry_some<SweepPack>(*g, i, s);
  }
}

/// Tests the other spheres of a run. The test is slightly wider than necessary, to allow for rounding.
class SweepNear {
 public:
  SweepNear(const SphereColumns& s, double h, double fall) : s_(s), h_(h), fall_(fall), step_(h) {}

  /// First by the sum of the speeds, which needs no root; then by the relative speed, or the faster sphere's speed if
  /// the other may be stopped.
  TARSUS_INLINE unsigned of_sphere(std::uint32_t i, std::uint32_t j, bool stopped) const {
    const double size = s_.radius[i] + s_.margin[i] + fall_;
    const Vec3<SweepPack> way = difference(s_.centre, i, j);
    const SweepPack other = at(s_.radius, j) + at(s_.margin, j), apart = dot(way, way);
    const auto within = [&](double own, const SweepPack& approach) {
      const SweepPack most = mul_add(approach, step_, SweepPack(own) + other) * spare_;
      return sweep_bits(apart <= most * most);
    };
    if (!within(size + h_ * s_.speed[i], at(s_.speed, j))) return 0;
    const unsigned near = within(size + h_ * s_.turn[i], norm(difference(s_.velocity, i, j)) + at(s_.turn, j));
    return stopped ? near | within(size, maximum(SweepPack(s_.speed[i]), at(s_.speed, j))) : near;
  }
  /// By the height over the plane and the speed towards it.
  TARSUS_INLINE unsigned of_plane(std::uint32_t i, std::uint32_t j) const {
    const Vec3<SweepPack> n = {SweepPack(s_.normal[0][i]), SweepPack(s_.normal[1][i]), SweepPack(s_.normal[2][i])};
    const SweepPack away = dot(n, difference(s_.velocity, i, j)), none(0.0);
    const SweepPack approach = select(away < none, none - away, none) + at(s_.turn, j);
    const SweepPack own = SweepPack(s_.margin[i] + fall_) + at(s_.radius, j) + at(s_.margin, j);
    return sweep_bits(dot(n, difference(s_.centre, i, j)) <= mul_add(approach, step_, own) * spare_);
  }

 private:
  using Column = std::array<std::vector<double>, 3>;
  static SweepPack at(const std::vector<double>& from, std::uint32_t j) { return load_rows<SweepPack>(&from[j]); }
  static Vec3<SweepPack> difference(const Column& from, std::uint32_t i, std::uint32_t j) {
    return {at(from[0], j) - SweepPack(from[0][i]), at(from[1], j) - SweepPack(from[1][i]),
            at(from[2], j) - SweepPack(from[2][i])};
  }

  const SphereColumns& s_;
  double h_, fall_;
  SweepPack step_, spare_{1 + 1e-9};
};

std::size_t sweep_near(const SphereColumns& s, const SphereRun* runs, std::size_t count, const unsigned char* on,
                       double h, double fall, std::uint32_t* found) {
  const SweepNear near(s, h, fall);
  std::size_t n = 0;
  for (const SphereRun* run = runs; run < runs + count; ++run) {
    if (!on[run->around]) continue;
    const bool plane = s.radius[run->one] == std::numeric_limits<double>::infinity();
    for (std::uint32_t k = 0; k < run->count; k += kSweepLanes) {
      const std::uint32_t j = run->others + k;
      unsigned hit =
          (plane ? near.of_plane(run->one, j) : near.of_sphere(run->one, j, run->apart)) & sweep_inside(k, run->count);
      for (; hit; hit &= hit - 1) found[n++] = run->pair + k + static_cast<std::uint32_t>(__builtin_ctz(hit));
    }
  }
  return n;
}

TARSUS_FILL_KERNELS(SweepKernels, TARSUS_SWEEP_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
