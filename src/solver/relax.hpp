// One projected sweep over the rows of a block, a kernel: see tarsus/solver/sweeps.hpp.
#pragma once

#include "tarsus/math/kernels.hpp"

namespace tarsus {

/// Rows that a law projects together, neighbours in their block.
struct Relaxation {
  enum Kind { interval, normal, disc, twist, ball };  ///< disc, twist: within `bound` times the normal impulse
  Kind kind = interval;
  int at = 0, count = 1;        ///< of the block's rows
  int normal_at = 0;            ///< of the contact's normal
  int row = 0;                  ///< of the problem's: where R and the target are read
  double inverse = 1, rho = 1;  ///< 1/ρ, ρ
  double bound = 0;             ///< ball: the radius
  double lower = 0, upper = 0;
  double keep[3] = {}, towards[3] = {};  ///< 1 - R/ρ, (b + R c)/ρ
};

/// Largest ρ |change of y| [m/s], Σ ρ (its square).
struct Relaxed {
  double moved = 0, energy = 0;
};

// y ← P(y - (u + R y - (b + R c))/ρ), u += A (change of y), for each of `count`. A [row][stride], stride a multiple of
// eight; y [row]; u = J v [stride].
#define TARSUS_RELAX_KERNELS(KERNEL, SCALAR_KERNEL)                                                                  \
  SCALAR_KERNEL(void, relax,                                                                                         \
                (const Relaxation* rows, int count, const double* A, int stride, double* y, double* u, Relaxed& by), \
                relax_kernel<T>)

struct RelaxTable {
  TARSUS_KERNEL_TABLE(double, TARSUS_RELAX_KERNELS)
};

}  // namespace tarsus
