// The hot loops of molecules of three sites on raw arrays, compiled once for each instruction set.
#pragma once

#include "particles/kernels.hpp"

namespace tarsus {

/// Molecules of three sites are stored in the order of their places. Each has a list of molecules at later places.
inline constexpr int kSiteRow = 12;  ///< numbers for each molecule: x, y, z, 0 of each site
/// An entry of a list: the byte offset of the molecule's numbers (a multiple of 32) plus the index of its image.
inline constexpr unsigned kSiteBytes = 8 * kSiteRow, kImageMask = 31, kSameImage = 13;
inline constexpr int kMostMolecules = 44'000'000;

struct SiteArgs {
  const PairArgs* field;                    ///< cutoffs and constants
  const PairLaw* law;                       ///< Lennard-Jones between first sites
  double charges[9];                        ///< constant · q_a q_b
  double bare[9], linear[9], quadratic[9];  ///< bare, linear and -2 quadratic of the field, times the charges
  const double* position;                   ///< [kSiteRow (m + 1)], 32-byte aligned; entry m is far away
  const double* shift;                      ///< [27 * 4] x, y, z, 0 of the box's images, 32-byte aligned
  const unsigned* entry;
  const std::int64_t *start, *end;  ///< [m] entries of each molecule, a multiple of kListPadding
  double* force;  ///< [kSiteRow (m + 1)], 32-byte aligned, accumulated; the caller divides by the length unit
  bool with_energy;
  double lj_energy, coulomb_energy, virial[6];  ///< results, accumulated
  /// If not null, gets the entries with two sites closer than the root of keep2, from `start`.
  unsigned* kept;
  std::int64_t* kept_end;  ///< [m]
  unsigned nobody;         ///< padding entry of a list
  double keep2;
};
struct NearArgs {
  const double *x, *y, *z;
  const unsigned* id;
  double radius2;
};

// sites: forces between molecules [from, to) and the molecules in their lists.
// near_places: places [from, to) within the radius of a point; may write kListPadding entries beyond the counted ones.
#define TARSUS_SITE_KERNELS(KERNEL, SCALAR_KERNEL)                 \
  KERNEL(void, sites, (SiteArgs&, int from, int to), sites_kernel) \
  KERNEL(int, near_places, (const NearArgs&, const double* point, int from, int to, unsigned* out), near_places_kernel)

struct SiteKernels {
  TARSUS_KERNEL_TABLE(double, TARSUS_SITE_KERNELS)
};

}  // namespace tarsus
