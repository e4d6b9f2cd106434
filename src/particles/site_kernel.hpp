// The hot loops of molecules of three sites, compiled once for each instruction set: raw arrays in, raw arrays out.
#pragma once

#include "particles/kernels.hpp"

namespace tarsus {

/// Molecules of three sites each stand in places of their own order; each has a list of others, behind it.
inline constexpr int kSiteRow = 12;  ///< numbers a molecule: x, y, z, 0 of each site
/// An entry of a list: where the molecule's numbers begin, in bytes (multiples of 32), and the box's image of it.
inline constexpr unsigned kSiteBytes = 8 * kSiteRow, kImageMask = 31, kSameImage = 13;
inline constexpr int kMostMolecules = 44'000'000;

struct SiteArgs {
  const PairArgs* field;                    ///< cutoffs and constants
  const PairLaw* law;                       ///< Lennard-Jones between first sites
  double charges[9];                        ///< constant · q_a q_b
  double bare[9], linear[9], quadratic[9];  ///< bare, linear and -2 quadratic of the field, times the charges
  const double* position;                   ///< [kSiteRow (m + 1)], on 32 bytes; entry m is far away
  const double* shift;                      ///< [27 * 4] x, y, z, 0 of the box's images, on 32 bytes
  const unsigned* entry;
  const std::int64_t *start, *end;  ///< [m] each one's entries: multiples of kListPadding apart
  double* force;                    ///< [kSiteRow (m + 1)], on 32 bytes, added to; to be divided by the length unit
  bool with_energy;
  double lj_energy, coulomb_energy, virial[6];  ///< results, added to
  /// If not null: the entries with some two sites closer than the root of keep2 are written here, at `start`.
  unsigned* kept;
  std::int64_t* kept_end;  ///< [m]
  unsigned nobody;         ///< entry that fills up a list
  double keep2;
};
struct NearArgs {
  const double *x, *y, *z;
  const unsigned* id;
  double radius2;
};

// sites: forces between molecules [from, to) and those of their lists.
// near_places: places [from, to) within the radius of a point; may write kListPadding places beyond those it counts.
#define TARSUS_SITE_KERNELS(KERNEL, SCALAR_KERNEL)                 \
  KERNEL(void, sites, (SiteArgs&, int from, int to), sites_kernel) \
  KERNEL(int, near_places, (const NearArgs&, const double* point, int from, int to, unsigned* out), near_places_kernel)

struct SiteKernels {
  TARSUS_KERNEL_TABLE(double, TARSUS_SITE_KERNELS)
};

}  // namespace tarsus
