// Kernels of the broad phases: sorted boxes or spheres of one row against those of another, in SIMD lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "geometry/rows.hpp"
#include "tarsus/geometry/body_pair.hpp"
#include "tarsus/geometry/carried_spheres.hpp"
#include "tarsus/math/kernels.hpp"

namespace tarsus {

inline constexpr int kSweepPadding = 8;  ///< elements beyond an array's end that may be read

/// Boxes in sorted order. Each array has kSweepPadding additional elements.
struct BoxRows {
  const double *lower_x, *lower_y, *lower_z, *upper_x, *upper_y, *upper_z;
  const std::int32_t* bin;
  const RowGrid* grid;
  double largest;  ///< extent along x [m]
};

struct SphereRows {
  const double *x, *y, *z, *radius;
  const std::int32_t* bin;
  const RowGrid* grid;
  double reach;  ///< two largest radii plus margin [m]
  double margin;
};

struct Stretch {
  std::uint32_t begin, end;
};

/// Pairs found, as sorted indices. The kernels call `grow` if fewer than kSweepPadding places are left.
struct PairBuffer {
  BodyPair* data;
  std::size_t count, capacity;
  void* owner;
  void (*grow)(PairBuffer&);
};

struct ContactArrays {
  double *normal_x, *normal_y, *normal_z, *distance;  ///< with room for kSweepPadding more
};

// boxes: stretch i of A against stretch j of B; `same`: of one set and one row, each pair once.
// contacts: normal and distance of each pair of sorted indices.
// carry: positions of spheres, from their groups.
// near: of the pairs in active runs, those of CarriedSpheres::near(). @return their number
#define TARSUS_SWEEP_KERNELS(KERNEL, SCALAR_KERNEL)                                                                 \
  KERNEL(void, boxes, (const BoxRows& a, Stretch i, const BoxRows& b, Stretch j, bool same, PairBuffer& out),       \
         sweep_boxes)                                                                                               \
  KERNEL(void, spheres, (const SphereRows& s, Stretch i, Stretch j, bool same, PairBuffer& out), sweep_spheres)     \
  KERNEL(void, contacts, (const SphereRows& s, const BodyPair* pairs, std::size_t count, const ContactArrays& out), \
         sweep_contacts)                                                                                            \
  KERNEL(void, carry, (const SphereGroup* groups, std::size_t count, SphereColumns& s), sweep_carry)                \
  KERNEL(std::size_t, near,                                                                                         \
         (const SphereColumns& s, const SphereRun* runs, std::size_t count, const unsigned char* on, double h,      \
          double fall, std::uint32_t* found),                                                                       \
         sweep_near)

struct SweepKernels {
  TARSUS_KERNEL_TABLE(double, TARSUS_SWEEP_KERNELS)
};

/// Calls sweep(context, i, j, same) for each row with itself and with each adjacent row, each pair of rows once.
void sweep_neighbours(const Rows& rows, void (*sweep)(void*, Stretch, Stretch, bool), void* context);

/// A PairBuffer backed by a growing list.
PairBuffer buffer_of(std::vector<BodyPair>& pairs);

}  // namespace tarsus
