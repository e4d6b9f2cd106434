// Non-bonded forces between identical molecules of three sites, a pack of pairs of molecules at a time. Each gather of
// a molecule serves nine pairs of sites. Lennard-Jones acts between the first sites only, as in SPC, SPC/E and TIP3P
// water.
//
// The formulas are those of pair_kernel.inl. The reciprocal root is a division and a square root in single precision,
// which every machine rounds alike, and a step of third order: with y = 1/√(r²) to 24 bits, e = 1 - r² y²,
// 1/r = y + y e (1/2 + 3/8 e).
//
// A few packs of a list at a time go through three passes: distances; roots and slopes; forces. In a single pass the
// latency of a pack's root would exceed the processor's out-of-order window. AVX-512 has the same four lanes and twice
// the registers, and is a sixth faster than AVX2.
#pragma once

#include "math/kernel_call.inl"
#include "particles/pair_kernel.inl"
#include "particles/site_kernel.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

using Singles = Pack<float, kLanes>;

// The compiler's conversions of four floats to doubles go through memory.
TARSUS_INLINE Singles to_single(Lanes x) {
#if defined(__AVX2__)
  return Singles(_mm256_cvtpd_ps(x.value));
#else
  return Singles(__builtin_convertvector(x.value, Singles::Vector));
#endif
}
TARSUS_INLINE Lanes to_double(Singles x) {
#if defined(__AVX2__)
  return Lanes(_mm256_cvtps_pd(x.value));
#else
  return Lanes(__builtin_convertvector(x.value, Lanes::Vector));
#endif
}

/// Reciprocal square roots of two packs, to single precision.
TARSUS_INLINE void two_roots(Lanes a, Lanes b, Singles& root_a, Singles& root_b) {
#if defined(__AVX2__)
  const Pack<float, 8> x(_mm256_set_m128(to_single(b).value, to_single(a).value));
  const Pack<float, 8> y = Pack<float, 8>(1.0f) / square_root(x);
  root_a.value = _mm256_castps256_ps128(y.value), root_b.value = _mm256_extractf128_ps(y.value, 1);
#else
  root_a = Singles(1.0f) / square_root(to_single(a));
  root_b = Singles(1.0f) / square_root(to_single(b));
#endif
}

struct SitePoint {
  Lanes x, y, z;
};

/// x, y and z from a row of four numbers for each lane; row(k) is the start of lane k's row.
template <class Row>
TARSUS_INLINE SitePoint gather_rows(const Row& row) {
  SitePoint q;
#if defined(__AVX2__)
  const __m256d a = _mm256_load_pd(row(0)), b = _mm256_load_pd(row(1)), c = _mm256_load_pd(row(2));
  const __m256d d = _mm256_load_pd(row(3));
  const __m256d ab0 = _mm256_unpacklo_pd(a, b), ab1 = _mm256_unpackhi_pd(a, b);
  const __m256d cd0 = _mm256_unpacklo_pd(c, d), cd1 = _mm256_unpackhi_pd(c, d);
  q.x.value = _mm256_permute2f128_pd(ab0, cd0, 0x20), q.y.value = _mm256_permute2f128_pd(ab1, cd1, 0x20);
  q.z.value = _mm256_permute2f128_pd(ab0, cd0, 0x31);
#else
  for (int k = 0; k < kLanes; ++k) q.x.set(k, row(k)[0]), q.y.set(k, row(k)[1]), q.z.set(k, row(k)[2]);
#endif
  return q;
}

/// Adds each lane's x, y and z to its row, lane after lane.
template <class Row>
TARSUS_INLINE void add_to_rows(const Row& row, const SitePoint& f) {
#if defined(__AVX2__)
  const auto add = [](double* p, __m256d a) { _mm256_store_pd(p, _mm256_add_pd(_mm256_load_pd(p), a)); };
  const __m256d o = _mm256_setzero_pd();
  const __m256d xy0 = _mm256_unpacklo_pd(f.x.value, f.y.value), xy1 = _mm256_unpackhi_pd(f.x.value, f.y.value);
  const __m256d zo0 = _mm256_unpacklo_pd(f.z.value, o), zo1 = _mm256_unpackhi_pd(f.z.value, o);
  add(row(0), _mm256_permute2f128_pd(xy0, zo0, 0x20)), add(row(1), _mm256_permute2f128_pd(xy1, zo1, 0x20));
  add(row(2), _mm256_permute2f128_pd(xy0, zo0, 0x31)), add(row(3), _mm256_permute2f128_pd(xy1, zo1, 0x31));
#else
  for (int k = 0; k < kLanes; ++k) row(k)[0] += f.x[k], row(k)[1] += f.y[k], row(k)[2] += f.z[k];
#endif
}

/// The data that the passes propagate, for one pack of molecules.
struct SitePairs {
  Lanes other[9];   ///< sites
  Lanes r2[9];      ///< r² of the nine pairs of sites
  Singles root[9];  ///< 1/r to single precision
  Lanes slope[9];   ///< -u'(r)/r
};

TARSUS_INLINE std::size_t begin_of(unsigned entry) { return entry & ~kImageMask; }

TARSUS_INLINE void site_distances(const SiteArgs& args, const Lanes mine[9], const unsigned* entry, SitePairs& out) {
  const SitePoint shift = gather_rows([&](int k) { return args.shift + 4 * (entry[k] & kImageMask); });
  const char* const base = reinterpret_cast<const char*>(args.position);
#pragma GCC unroll 3
  for (int b = 0; b < 3; ++b) {
    const SitePoint at =
        gather_rows([&](int k) { return reinterpret_cast<const double*>(base + begin_of(entry[k])) + 4 * b; });
    const Lanes x = at.x + shift.x, y = at.y + shift.y, z = at.z + shift.z;
    out.other[3 * b] = x, out.other[3 * b + 1] = y, out.other[3 * b + 2] = z;
#pragma GCC unroll 3
    for (int a = 0; a < 3; ++a) {
      const Lanes dx = mine[3 * a] - x, dy = mine[3 * a + 1] - y, dz = mine[3 * a + 2] - z;
      out.r2[3 * a + b] = mul_add(dx, dx, mul_add(dy, dy, dz * dz));
    }
  }
}

/// The roots of pairs k and k + 1, or of the last pair.
TARSUS_INLINE void site_roots(SitePairs& pairs, int k) {
  if (k < 8)
    two_roots(pairs.r2[k], pairs.r2[k + 1], pairs.root[k], pairs.root[k + 1]);
  else
    pairs.root[8] = Singles(1.0f) / square_root(to_single(pairs.r2[8]));
}

/// Appends the entries of a pack with two sites closer than the root of keep2; returns their number.
TARSUS_INLINE int keep_near(const SitePairs& pairs, double keep2, const unsigned* entry, unsigned* out) {
  Lanes least = pairs.r2[0];
  for (int k = 1; k < 9; ++k) least = minimum(least, pairs.r2[k]);
  return append_lanes(bits(least < Lanes(keep2)), entry, out);
}

/// The slopes of one pack, interleaved with the roots of the next.
template <bool kSwitched, bool kEnergy, bool kNext>
TARSUS_INLINE void site_slopes(const SiteArgs& args, SitePairs& pairs, SitePairs* next, PairSums& sums) {
  const PairArgs& field = *args.field;
  const Lanes cutoff2(field.coulomb_cutoff2), zero(0.0);
#pragma GCC unroll 9
  for (int k = 0; k < 9; ++k) {
    if (kNext && k % 2 == 0) {
      site_roots(*next, k);
      asm volatile("" ::: "memory");  // otherwise the compiler would move all roots together
    }
    const Lanes r2 = pairs.r2[k], y = to_double(pairs.root[k]);
    const Lanes e = neg_mul_add(r2, y * y, Lanes(1.0));
    const Lanes rinv = mul_add(y * e, mul_add(Lanes(0.375), e, Lanes(0.5)), y);
    const auto inside = r2 < cutoff2;
    const Lanes steep = mul_add(Lanes(args.bare[k]), rinv * rinv, Lanes(args.linear[k]));
    Lanes f = select(inside, mul_add(steep, rinv, Lanes(args.quadratic[k])), zero);
    if constexpr (kEnergy) {
      const Lanes bare = mul_add(Lanes(field.bare), rinv, Lanes(-field.constant));
      const Lanes u = mul_add(Lanes(field.linear), r2 * rinv, mul_add(Lanes(field.quadratic), r2, bare));
      sums.coulomb += select(inside, Lanes(args.charges[k]) * u, zero);
    }
    if (k == 0) f += lennard_jones<kSwitched, kEnergy>(field, *args.law, r2, rinv, sums.lj);
    pairs.slope[k] = f;
  }
}

template <bool kEnergy>
TARSUS_INLINE void site_forces(const SiteArgs& args, const Lanes mine[9], const unsigned* entry, const SitePairs& pairs,
                               Lanes total[9], PairSums& sums) {
  char* const base = reinterpret_cast<char*>(args.force);
#pragma GCC unroll 3
  for (int b = 0; b < 3; ++b) {
    SitePoint back{Lanes(0.0), Lanes(0.0), Lanes(0.0)};
#pragma GCC unroll 3
    for (int a = 0; a < 3; ++a) {
      const Lanes *const p = mine + 3 * a, *const q = pairs.other + 3 * b, f = pairs.slope[3 * a + b];
      const Lanes dx = p[0] - q[0], dy = p[1] - q[1], dz = p[2] - q[2];
      total[3 * a] = mul_add(f, dx, total[3 * a]);
      total[3 * a + 1] = mul_add(f, dy, total[3 * a + 1]);
      total[3 * a + 2] = mul_add(f, dz, total[3 * a + 2]);
      back.x = neg_mul_add(f, dx, back.x);
      back.y = neg_mul_add(f, dy, back.y);
      back.z = neg_mul_add(f, dz, back.z);
      if constexpr (kEnergy) {
        const Lanes gx = f * dx, gy = f * dy, gz = f * dz;
        sums.xx += dx * gx, sums.xy += dx * gy, sums.xz += dx * gz;
        sums.yy += dy * gy, sums.yz += dy * gz, sums.zz += dz * gz;
      }
    }
    add_to_rows([&](int k) { return reinterpret_cast<double*>(base + begin_of(entry[k])) + 4 * b; }, back);
  }
}

template <bool kSwitched, bool kEnergy>
void site_runs(SiteArgs& shared, int from, int to) {
  constexpr int kPacks = 8;
  const SiteArgs args = shared;  // a copy that does not alias the forces
  PairSums sums;
  SitePairs pairs[kPacks];
  for (int i = from; i < to; ++i) {
    const double* p = args.position + std::int64_t(i) * kSiteRow;
    Lanes mine[9], total[9];
    for (int c = 0; c < 9; ++c) mine[c] = Lanes(p[c / 3 * 4 + c % 3]), total[c] = Lanes(0.0);
    const unsigned *entry = args.entry + args.start[i], *const end = args.entry + args.end[i];
    unsigned *const kept_from = args.kept ? args.kept + args.start[i] : nullptr, *kept = kept_from;
    while (entry < end) {
      const int packs = end - entry < kPacks * kLanes ? int(end - entry) / kLanes : kPacks;
      for (int n = 0; n < packs; ++n) site_distances(args, mine, entry + n * kLanes, pairs[n]);
      if (kept) {
        for (int n = 0; n < packs; ++n) kept += keep_near(pairs[n], args.keep2, entry + n * kLanes, kept);
      }
      for (int k = 0; k < 9; k += 2) site_roots(pairs[0], k);
      for (int n = 0; n + 1 < packs; ++n) site_slopes<kSwitched, kEnergy, true>(args, pairs[n], &pairs[n + 1], sums);
      site_slopes<kSwitched, kEnergy, false>(args, pairs[packs - 1], nullptr, sums);
      for (int n = 0; n < packs; ++n) site_forces<kEnergy>(args, mine, entry + n * kLanes, pairs[n], total, sums);
      entry += packs * kLanes;
    }
    double* const force = args.force + std::int64_t(i) * kSiteRow;
    for (int c = 0; c < 9; ++c) force[c / 3 * 4 + c % 3] += sum_of(total[c]);
    if (kept) {
      while ((kept - kept_from) % kListPadding != 0) *kept++ = args.nobody;
      args.kept_end[i] = kept - args.kept;
    }
  }
  if constexpr (kEnergy) {
    shared.lj_energy += sum_of(sums.lj), shared.coulomb_energy += sum_of(sums.coulomb);
    const Lanes parts[6] = {sums.xx, sums.xy, sums.xz, sums.yy, sums.yz, sums.zz};
    for (int c = 0; c < 6; ++c) shared.virial[c] += sum_of(parts[c]);
  }
}

inline void sites_kernel(SiteArgs& args, int from, int to) {
  if (args.field->switched) {
    if (args.with_energy)
      site_runs<true, true>(args, from, to);
    else
      site_runs<true, false>(args, from, to);
  } else {
    if (args.with_energy)
      site_runs<false, true>(args, from, to);
    else
      site_runs<false, false>(args, from, to);
  }
}

inline int near_places_kernel(const NearArgs& args, const double point[3], int from, int to, unsigned* out) {
  int found = 0, j = from;
  const Lanes x(point[0]), y(point[1]), z(point[2]), radius2(args.radius2);
  for (; j + kLanes <= to; j += kLanes) {
    const Lanes dx = x - load(args.x + j), dy = y - load(args.y + j), dz = z - load(args.z + j);
    found += append_lanes(bits(mul_add(dx, dx, mul_add(dy, dy, dz * dz)) < radius2), args.id + j, out + found);
  }
  for (; j < to; ++j) {
    const double dx = point[0] - args.x[j], dy = point[1] - args.y[j], dz = point[2] - args.z[j];
    if (mul_add(dx, dx, mul_add(dy, dy, dz * dz)) < args.radius2) out[found++] = args.id[j];
  }
  return found;
}

TARSUS_FILL_KERNELS(SiteKernels, TARSUS_SITE_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
