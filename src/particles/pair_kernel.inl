// Non-bonded forces over a Verlet list, kLanes pairs at a time.
//
// Lennard-Jones  u = c12 R12 - c6 R6 - shift,   R_p = r^-p, or with a force switch [GROMACS manual, 5.1.3]
//                R_p = r^-p - a_p/3 t³ - b_p/4 t⁴ - k_p,  -R_p' = p r^-(p+1) + a_p t² + b_p t³,  t = max(r - r1, 0)
// Coulomb        u = C q_i q_j (bare/r + linear r + quadratic r² - constant); the reaction field has linear = 0, the
//                shifted force quadratic = 0.
#pragma once

#include "particles/kernels.hpp"
#include "particles/lanes.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

struct PairSums {
  Lanes lj = Lanes(0.0), coulomb = Lanes(0.0);
  Lanes xx = Lanes(0.0), xy = Lanes(0.0), xz = Lanes(0.0), yy = Lanes(0.0), yz = Lanes(0.0), zz = Lanes(0.0);
};

/// Adds the law's Lennard-Jones energy. Returns -u'(r)/r, zero outside the cutoff.
template <bool kSwitched, bool kEnergy, class P>
TARSUS_INLINE P lennard_jones(const PairArgs& args, const PairLaw& law, P r2, P rinv, P& energy) {
  const auto inside = r2 < P(args.lj_cutoff2);
  const P c6(law.c6), c12(law.c12), zero(0.0);
  const P rinv2 = rinv * rinv, s6 = rinv2 * rinv2 * rinv2;
  if constexpr (!kSwitched) {
    const P v6 = c6 * s6, v12 = c12 * s6 * s6;
    if constexpr (kEnergy) energy += select(inside, v12 - v6 - P(law.shift), zero);
    return select(inside, mul_add(P(12.0), v12, P(-6.0) * v6) * rinv2, zero);
  } else {
    const P t = maximum(r2 * rinv - P(args.switch_from), zero), t2 = t * t, t3 = t2 * t;
    const P f6 = mul_add(P(6.0) * s6, rinv, mul_add(P(args.a6), t2, P(args.b6) * t3));
    const P f12 = mul_add(P(12.0) * s6 * s6, rinv, mul_add(P(args.a12), t2, P(args.b12) * t3));
    if constexpr (kEnergy) {
      const P third(1.0 / 3.0), quarter(0.25), t4 = t2 * t2;
      const P u6 = s6 - third * P(args.a6) * t3 - quarter * P(args.b6) * t4 - P(args.k6);
      const P u12 = s6 * s6 - third * P(args.a12) * t3 - quarter * P(args.b12) * t4 - P(args.k12);
      energy += select(inside, c12 * u12 - c6 * u6, zero);
    }
    return select(inside, (c12 * f12 - c6 * f6) * rinv, zero);
  }
}

template <bool kEnergy>
TARSUS_INLINE Lanes coulomb(const PairArgs& args, Lanes charges, Lanes r2, Lanes rinv, PairSums& sums) {
  const auto inside = r2 < Lanes(args.coulomb_cutoff2);
  const Lanes zero(0.0), bare_rinv = Lanes(args.bare) * rinv;
  if constexpr (kEnergy) {
    const Lanes u =
        mul_add(Lanes(args.linear), r2 * rinv, mul_add(Lanes(args.quadratic), r2, bare_rinv - Lanes(args.constant)));
    sums.coulomb += select(inside, charges * u, zero);
  }
  const Lanes f = neg_mul_add(Lanes(args.linear), rinv, mul_add(bare_rinv, rinv * rinv, Lanes(-2.0 * args.quadratic)));
  return select(inside, charges * f, zero);
}

struct RunForce {
  Lanes x = Lanes(0.0), y = Lanes(0.0), z = Lanes(0.0);
};

/// One pack of a run. In the last pack (kLast) some lanes may be padding: there d = NaN, and f must be treated as zero.
template <bool kLj, bool kSwitched, bool kCoulomb, bool kPeriodic, bool kEnergy, bool kLast>
TARSUS_INLINE void pair_pack(const PairArgs& args, const PairLaw& law, const Quad& mine, const int* index,
                             RunForce& total, PairSums& sums) {
  const Quad other = gather(args.position, index);
  Lanes dx = mine.x - other.x, dy = mine.y - other.y, dz = mine.z - other.z;
  if constexpr (kPeriodic) {
    dx = neg_mul_add(Lanes(args.box[0]), nearest(dx * Lanes(args.inverse_box[0])), dx);
    dy = neg_mul_add(Lanes(args.box[1]), nearest(dy * Lanes(args.inverse_box[1])), dy);
    dz = neg_mul_add(Lanes(args.box[2]), nearest(dz * Lanes(args.inverse_box[2])), dz);
  }
  const Lanes r2 = mul_add(dx, dx, mul_add(dy, dy, dz * dz)), rinv = inverse_square_root(r2), zero(0.0);
  Lanes f(0.0);
  if constexpr (kLj) f += lennard_jones<kSwitched, kEnergy>(args, law, r2, rinv, sums.lj);
  if constexpr (kCoulomb) f += coulomb<kEnergy>(args, mine.w * other.w, r2, rinv, sums);
  if constexpr (kLast) {
    const auto here = r2 == r2;
    dx = select(here, dx, zero), dy = select(here, dy, zero), dz = select(here, dz, zero);
  }
  const Lanes gx = f * dx, gy = f * dy, gz = f * dz;
  total.x += gx, total.y += gy, total.z += gz;
  scatter_subtract(args.force, index, gx, gy, gz);
  if constexpr (kEnergy) {
    sums.xx += dx * gx, sums.xy += dx * gy, sums.xz += dx * gz;
    sums.yy += dy * gy, sums.yz += dy * gz, sums.zz += dz * gz;
  }
}

template <bool kLj, bool kSwitched, bool kCoulomb, bool kPeriodic, bool kEnergy>
TARSUS_INLINE void pair_run(const PairArgs& args, const PairRun& run, PairSums& sums) {
  const double* const p = args.position + 4 * static_cast<std::int64_t>(run.particle);
  const Quad mine{Lanes(p[0]), Lanes(p[1]), Lanes(p[2]), Lanes(args.coulomb * p[3])};
  const PairLaw& law = args.laws[run.law];
  RunForce total;
  const int* index = args.neighbours + run.begin;
  const int *const end = index + run.count, *const full = end - kListPadding;  // padding is after `full`
  for (; index < full; index += kLanes) {
    pair_pack<kLj, kSwitched, kCoulomb, kPeriodic, kEnergy, false>(args, law, mine, index, total, sums);
  }
  for (; index < end; index += kLanes) {
    pair_pack<kLj, kSwitched, kCoulomb, kPeriodic, kEnergy, true>(args, law, mine, index, total, sums);
  }
  double* const force = args.force + 4 * static_cast<std::int64_t>(run.particle);
  force[0] += sum_of(total.x), force[1] += sum_of(total.y), force[2] += sum_of(total.z);
}

template <bool kPeriodic, bool kEnergy>
void pair_runs(PairArgs& shared) {
  PairSums sums;
  const PairArgs args = shared;  // a copy that does not alias the forces, so that its numbers stay in registers
  for (std::int64_t k = 0; k < args.run_count; ++k) {
    const PairRun& run = args.runs[k];
    const PairLaw& law = args.laws[run.law];
    if (law.lennard_jones && args.switched) {
      if (law.coulomb)
        pair_run<true, true, true, kPeriodic, kEnergy>(args, run, sums);
      else
        pair_run<true, true, false, kPeriodic, kEnergy>(args, run, sums);
    } else if (law.lennard_jones) {
      if (law.coulomb)
        pair_run<true, false, true, kPeriodic, kEnergy>(args, run, sums);
      else
        pair_run<true, false, false, kPeriodic, kEnergy>(args, run, sums);
    } else {
      pair_run<false, false, true, kPeriodic, kEnergy>(args, run, sums);
    }
  }
  if constexpr (kEnergy) {
    shared.lj_energy += sum_of(sums.lj);
    shared.coulomb_energy += sum_of(sums.coulomb);
    const Lanes virial[6] = {sums.xx, sums.xy, sums.xz, sums.yy, sums.yz, sums.zz};
    for (int c = 0; c < 6; ++c) shared.virial[c] += sum_of(virial[c]);
  }
}

inline void pairs_kernel(PairArgs& args) {
  const bool periodic = args.box[0] > 0 || args.box[1] > 0 || args.box[2] > 0;
  if (periodic) {
    if (args.with_energy)
      pair_runs<true, true>(args);
    else
      pair_runs<true, false>(args);
  } else {
    if (args.with_energy)
      pair_runs<false, true>(args);
    else
      pair_runs<false, false>(args);
  }
}

/// Appends the ids of the lanes in `word` without branches. May write kLanes entries; returns the number of valid ones.
template <class Id>
TARSUS_INLINE int append_lanes(unsigned word, const Id* id, Id* out) {
#if defined(__AVX2__)
  // Bytes of the chosen ids moved to the front, for each of the 16 words.
  struct Shuffle {
    alignas(16) unsigned char byte[16][16];
  };
  static constexpr Shuffle kShuffle = [] {
    Shuffle s{};
    for (unsigned w = 0; w < 16; ++w) {
      int to = 0;
      for (unsigned lane = 0; lane < 4; ++lane) {
        if (!(w >> lane & 1u)) continue;
        for (unsigned b = 0; b < 4; ++b) s.byte[w][to++] = static_cast<unsigned char>(4 * lane + b);
      }
    }
    return s;
  }();
  const __m128i order = _mm_load_si128(reinterpret_cast<const __m128i*>(kShuffle.byte[word]));
  const __m128i ids = _mm_loadu_si128(reinterpret_cast<const __m128i*>(id));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_shuffle_epi8(ids, order));
  return __builtin_popcount(word);
#else
  int count = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    out[count] = id[lane];
    count += word >> lane & 1u;
  }
  return count;
#endif
}

inline int candidates_kernel(const CandidateArgs& args, double x, double y, double z, int from, int to, int* out) {
  int found = 0, j = from;
  const Lanes xi(x), yi(y), zi(z), lx(args.box[0]), ly(args.box[1]), lz(args.box[2]);
  const Lanes ix(args.inverse_box[0]), iy(args.inverse_box[1]), iz(args.inverse_box[2]), radius2(args.radius2);
  for (; j + kLanes <= to; j += kLanes) {
    Lanes dx = xi - load(args.x + j), dy = yi - load(args.y + j), dz = zi - load(args.z + j);
    dx = neg_mul_add(lx, nearest(dx * ix), dx);
    dy = neg_mul_add(ly, nearest(dy * iy), dy);
    dz = neg_mul_add(lz, nearest(dz * iz), dz);
    found += append_lanes(bits(mul_add(dx, dx, mul_add(dy, dy, dz * dz)) < radius2), args.id + j, out + found);
  }
  for (; j < to; ++j) {
    double dx = x - args.x[j], dy = y - args.y[j], dz = z - args.z[j];
    dx -= args.box[0] * nearest(dx * args.inverse_box[0]);
    dy -= args.box[1] * nearest(dy * args.inverse_box[1]);
    dz -= args.box[2] * nearest(dz * args.inverse_box[2]);
    if (dx * dx + dy * dy + dz * dz < args.radius2) out[found++] = args.id[j];
  }
  return found;
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
