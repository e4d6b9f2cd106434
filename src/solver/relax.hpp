// One projected sweep over the rows of a block, a kernel: see tarsus/solver/sweeps.hpp.
#pragma once

#include "tarsus/math/kernels.hpp"

namespace tarsus {

/// Rows that are projected together, neighbours in their block.
struct Relaxation {
  enum Kind { interval, normal, contact, twist, disc, ball };  ///< contact: its normal, then friction
  Kind kind = interval;
  int at = 0;                 ///< of the block's rows
  int normal_at = 0;          ///< twist, disc: of the contact's normal
  double rho[3] = {1, 1, 1};  ///< of each row
  double bound = 0;           ///< contact, twist, disc: of the normal impulse; ball: the radius
  double lower = 0, upper = 0;
};

/// Largest ρ |change of y| [m/s], Σ ρ (its square).
struct Relaxed {
  double moved = 0, energy = 0;
};

// relax: z = y - (u + R y - (b + R c))/ρ; y ← P(z), z += Z (change of y), for each of `count`, where Z is how z follows
// y: on the diagonal 1 - (A + R)/ρ, else -A/ρ; so many times, or until none changes by more than the tolerance [m/s].
// Z [row that changes][stride], stride a multiple of eight; y [row]; z [stride]. by: that of the last sweep
// follow: Z but for its diagonal. @param inverse 1/ρ [stride]
#define TARSUS_RELAX_KERNELS(KERNEL, SCALAR_KERNEL)                                                            \
  SCALAR_KERNEL(int, relax,                                                                                    \
                (const Relaxation* rows, int count, const double* Z, int stride, int sweeps, double tolerance, \
                 double* y, double* z, Relaxed& by),                                                           \
                relax_kernel<T>)                                                                               \
  SCALAR_KERNEL(void, follow, (const double* A, const double* inverse, int count, int stride, double* Z),      \
                follow_kernel<T>)

struct RelaxTable {
  TARSUS_KERNEL_TABLE(double, TARSUS_RELAX_KERNELS)
};

}  // namespace tarsus
