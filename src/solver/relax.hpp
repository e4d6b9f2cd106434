// One projected sweep over the rows of a block, as a kernel: see tarsus/solver/sweeps.hpp.
#pragma once

#include "tarsus/math/kernels.hpp"

namespace tarsus {

struct Extrapolation;

/// Rows that are projected together; they are neighbours in their block.
struct Relaxation {
  enum Kind { interval, normal, contact, twist, disc, ball };  ///< contact: its normal, then friction
  Kind kind = interval;
  int at = 0;                 ///< first of the block's rows
  int normal_at = 0;          ///< twist, disc: row of the contact's normal
  double rho[3] = {1, 1, 1};  ///< of each row
  double bound = 0;           ///< contact, twist, disc: factor of the normal impulse; ball: the radius
  double lower = 0, upper = 0;
};

/// Fields of a contact of free bodies, [place][number][lane]; see solver/body_points.hpp. Targets and impulses are
/// vectors: the sum over the rows of a number times the row's axis.
enum PointNumber : int {
  kPointNormal = 0,       // 3
  kPointArmA = 3,         // 3
  kPointArmB = 6,         // 3
  kPointTarget = 9,       // 3: b + R c - J v at x = 0
  kPointCompliance = 12,  // 2: of the normal and of the tangents
  kPointMetric = 14,      // 2: ρ of the normal and of the tangents
  kPointInverse = 16,     // 2: 1/ρ
  kPointFriction = 18,
  kPointFelt = 19,     // 3: velocity in the tangent plane by a unit normal impulse
  kPointImpulse = 22,  // 3: y
  kPointBefore = 25,   // 3: y before an Extrapolation,
  kPointBy = 28,       // 3: and its increment
  kPointNumbers = 31,
};

/// Numbers of a free body in these sweeps: 1/m, the inverse inertia (6), 0; its motion w, v, 0, 0.
inline constexpr int kBodyNumbers = 16, kBodyMotion = 8;

/// Largest ρ |change of y| [m/s]; Σ ρ (change of y)².
struct Relaxed {
  double moved = 0, energy = 0;
};

// relax: for each of `count` relaxations z = y - (u + R y - (b + R c))/ρ; y ← P(z), z += Z (change of y). Z is the
// derivative of z with respect to y: 1 - (A + R)/ρ on the diagonal, else -A/ρ. It makes `sweeps` sweeps, or fewer if no
// velocity changes by more than the tolerance [m/s]. Z [row that changes][stride], stride a multiple of eight; y [row];
// z [stride]. by: of the last sweep
//
// follow: Z without its diagonal. @param inverse 1/ρ [stride]
//
// relax_points: one sweep over `count` places of BodyPoints from `first` on, `step` from one to the next.
// @param body [place][a, b][lane] twice a body's index  @param bodies [body][kBodyNumbers]; the last is the world
#define TARSUS_RELAX_KERNELS(KERNEL, SCALAR_KERNEL)                                                            \
  SCALAR_KERNEL(int, relax,                                                                                    \
                (const Relaxation* rows, int count, const double* Z, int stride, int sweeps, double tolerance, \
                 double* y, double* z, Relaxed& by),                                                           \
                relax_kernel<T>)                                                                               \
  SCALAR_KERNEL(void, follow, (const double* A, const double* inverse, int count, int stride, double* Z),      \
                follow_kernel<T>)                                                                              \
  SCALAR_KERNEL(int, point_lanes, (), point_lanes<T>)                                                          \
  SCALAR_KERNEL(void, relax_points,                                                                            \
                (float* numbers, const int* body, int first, int count, int step, float* bodies,               \
                 const Extrapolation* extrapolate, Relaxed& by),                                               \
                relax_points_kernel<T>)

struct RelaxTable {
  TARSUS_KERNEL_TABLE(double, TARSUS_RELAX_KERNELS)
};
inline const RelaxTable& relax_table() {
  static const RelaxTable& table = kernels<RelaxTable>();
  return table;
}

}  // namespace tarsus
