// Non-bonded forces between molecules of three sites, kLanes pairs of molecules at a time: nine pairs of sites for each
// gather of a molecule. Lennard-Jones acts between the first sites alone, as in SPC, SPC/E and TIP3P water.
//
// The formulas are those of pair_kernel.inl. The reciprocal root is a division and a square root in single precision,
// which every machine rounds alike, and a step of third order: with y = 1/√(r²) to 24 bits, e = 1 - r² y²,
// 1/r = y + y e (1/2 + 3/8 e).
#pragma once

#include "particles/pair_kernel.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Reciprocal square roots of nine packs, as good as those of double precision but for an ulp or two.
template <int W>
TARSUS_INLINE void inverse_square_roots(const Pack<double, W> r2[9], Pack<double, W> out[9]) {
  if constexpr (W == 4) {
    using Real = Pack<double, W>;
    using Single = Pack<float, W>;
    using Both = Pack<float, 2 * W>;
    typename Single::Vector x[9];
    for (int k = 0; k < 9; ++k) x[k] = __builtin_convertvector(r2[k].value, typename Single::Vector);
    for (int k = 0; k < 8; k += 2) {
      const Both pair(__builtin_shufflevector(x[k], x[k + 1], 0, 1, 2, 3, 4, 5, 6, 7));
      const auto y = (Both(1.0f) / square_root(pair)).value;
      out[k] = Real(__builtin_convertvector(__builtin_shufflevector(y, y, 0, 1, 2, 3), typename Real::Vector));
      out[k + 1] = Real(__builtin_convertvector(__builtin_shufflevector(y, y, 4, 5, 6, 7), typename Real::Vector));
    }
    const auto last = (Single(1.0f) / square_root(Single(x[8]))).value;
    out[8] = Real(__builtin_convertvector(last, typename Real::Vector));
    for (int k = 0; k < 9; ++k) {
      const Real e = neg_mul_add(r2[k], out[k] * out[k], Real(1.0));
      out[k] = mul_add(out[k] * e, mul_add(Real(0.375), e, Real(0.5)), out[k]);
    }
  } else {
    for (int k = 0; k < 9; ++k) out[k] = inverse_square_root(r2[k]);
  }
}

struct SitePoint {
  Lanes x, y, z;
};

/// One site of each of kLanes molecules, moved to the image that the entry names.
TARSUS_INLINE SitePoint gather_site(const SiteArgs& args, const int* entry, int site) {
#if defined(__AVX2__)
  __m256d row[4];
  for (int i = 0; i < 4; ++i) {
    const double* p = args.position + std::int64_t(entry[i] >> kShiftBits) * kSiteRow + 4 * site;
    row[i] = _mm256_loadu_pd(p) + _mm256_loadu_pd(args.shift + 4 * (entry[i] & kShiftMask));
  }
  const __m256d ab0 = _mm256_unpacklo_pd(row[0], row[1]), ab1 = _mm256_unpackhi_pd(row[0], row[1]);
  const __m256d cd0 = _mm256_unpacklo_pd(row[2], row[3]), cd1 = _mm256_unpackhi_pd(row[2], row[3]);
  return {Lanes(_mm256_permute2f128_pd(ab0, cd0, 0x20)), Lanes(_mm256_permute2f128_pd(ab1, cd1, 0x20)),
          Lanes(_mm256_permute2f128_pd(ab0, cd0, 0x31))};
#else
  SitePoint q{Lanes(0.0), Lanes(0.0), Lanes(0.0)};
  for (int i = 0; i < kLanes; ++i) {
    const double* p = args.position + std::int64_t(entry[i] >> kShiftBits) * kSiteRow + 4 * site;
    const double* s = args.shift + 4 * (entry[i] & kShiftMask);
    q.x.set(i, p[0] + s[0]), q.y.set(i, p[1] + s[1]), q.z.set(i, p[2] + s[2]);
  }
  return q;
#endif
}

TARSUS_INLINE void scatter_site(const SiteArgs& args, const int* entry, int site, const SitePoint& f) {
#if defined(__AVX2__)
  const __m256d o = _mm256_setzero_pd();
  const __m256d xy0 = _mm256_unpacklo_pd(f.x.value, f.y.value), xy1 = _mm256_unpackhi_pd(f.x.value, f.y.value);
  const __m256d zo0 = _mm256_unpacklo_pd(f.z.value, o), zo1 = _mm256_unpackhi_pd(f.z.value, o);
  const __m256d parts[4] = {_mm256_permute2f128_pd(xy0, zo0, 0x20), _mm256_permute2f128_pd(xy1, zo1, 0x20),
                            _mm256_permute2f128_pd(xy0, zo0, 0x31), _mm256_permute2f128_pd(xy1, zo1, 0x31)};
  for (int i = 0; i < 4; ++i) {
    double* p = args.force + std::int64_t(entry[i] >> kShiftBits) * kSiteRow + 4 * site;
    _mm256_storeu_pd(p, _mm256_add_pd(_mm256_loadu_pd(p), parts[i]));
  }
#else
  for (int i = 0; i < kLanes; ++i) {
    double* p = args.force + std::int64_t(entry[i] >> kShiftBits) * kSiteRow + 4 * site;
    p[0] += f.x[i], p[1] += f.y[i], p[2] += f.z[i];
  }
#endif
}

template <bool kSwitched, bool kEnergy>
TARSUS_INLINE void site_pack(const SiteArgs& args, const Lanes mine[9], const int* entry, Lanes total[9],
                             PairSums& sums) {
  const PairArgs& field = *args.field;
  SitePoint other[3], back[3];
  for (int b = 0; b < 3; ++b) {
    other[b] = gather_site(args, entry, b);
    back[b] = {Lanes(0.0), Lanes(0.0), Lanes(0.0)};
  }
  const Lanes cutoff2(field.coulomb_cutoff2), zero(0.0);
  const Lanes bare(field.bare), linear(-field.linear), quadratic(-2 * field.quadratic);
  Lanes r2[9], rinv[9];
#pragma GCC unroll 9
  for (int k = 0; k < 9; ++k) {
    const Lanes* const p = mine + k / 3 * 3;
    const SitePoint& q = other[k % 3];
    const Lanes dx = p[0] - q.x, dy = p[1] - q.y, dz = p[2] - q.z;
    r2[k] = mul_add(dx, dx, mul_add(dy, dy, dz * dz));
  }
  inverse_square_roots<kLanes>(r2, rinv);
#pragma GCC unroll 9
  for (int k = 0; k < 9; ++k) {
    const int a = k / 3, b = k % 3;
    const Lanes dx = mine[3 * a] - other[b].x, dy = mine[3 * a + 1] - other[b].y, dz = mine[3 * a + 2] - other[b].z;
    const Lanes qq(args.charges[k]);
    const auto inside = r2[k] < cutoff2;
    Lanes f = qq * mul_add(mul_add(bare, rinv[k] * rinv[k], linear), rinv[k], quadratic);
    f = select(inside, f, zero);
    if constexpr (kEnergy) {
      const Lanes u = mul_add(Lanes(field.linear), r2[k] * rinv[k],
                              mul_add(Lanes(field.quadratic), r2[k], mul_add(bare, rinv[k], Lanes(-field.constant))));
      sums.coulomb += select(inside, qq * u, zero);
    }
    if (k == 0) f += lennard_jones<kSwitched, kEnergy>(field, *args.law, r2[k], rinv[k], sums);
    total[3 * a] = mul_add(f, dx, total[3 * a]);
    total[3 * a + 1] = mul_add(f, dy, total[3 * a + 1]);
    total[3 * a + 2] = mul_add(f, dz, total[3 * a + 2]);
    back[b].x = neg_mul_add(f, dx, back[b].x);
    back[b].y = neg_mul_add(f, dy, back[b].y);
    back[b].z = neg_mul_add(f, dz, back[b].z);
    if constexpr (kEnergy) {
      const Lanes gx = f * dx, gy = f * dy, gz = f * dz;
      sums.xx += dx * gx, sums.xy += dx * gy, sums.xz += dx * gz;
      sums.yy += dy * gy, sums.yz += dy * gz, sums.zz += dz * gz;
    }
  }
  for (int b = 0; b < 3; ++b) scatter_site(args, entry, b, back[b]);
}

template <bool kSwitched, bool kEnergy>
void site_runs(SiteArgs& shared, int from, int to) {
  const SiteArgs args = shared;
  PairSums sums;
  for (int i = from; i < to; ++i) {
    const double* p = args.position + std::int64_t(i) * kSiteRow;
    Lanes mine[9], total[9];
    for (int c = 0; c < 9; ++c) mine[c] = Lanes(p[c / 3 * 4 + c % 3]), total[c] = Lanes(0.0);
    const int *entry = args.entry + args.start[i], *const end = args.entry + args.start[i + 1];
    for (; entry < end; entry += kLanes) site_pack<kSwitched, kEnergy>(args, mine, entry, total, sums);
    double* const force = args.force + std::int64_t(i) * kSiteRow;
    for (int c = 0; c < 9; ++c) force[c / 3 * 4 + c % 3] += sum_of(total[c]);
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

/// Places [from, to) within the radius of a point; may write kListPadding places beyond those that it counts.
inline int near_places_kernel(const NearArgs& args, const double point[3], int from, int to, int* out) {
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

}  // namespace TARSUS_ISA
}  // namespace tarsus
