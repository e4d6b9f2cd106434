// The hot loops of particle systems on raw arrays, compiled once for each instruction set.
#pragma once

#include <cstdint>

#include "tarsus/math/kernels.hpp"

namespace tarsus {

/// A run of neighbours of one particle with the same law. `neighbours` is padded to a multiple of kListPadding with the
/// index of a dummy particle whose position is NaN.
struct PairRun {
  int particle;
  int law;
  std::int64_t begin;
  int count;  ///< including the padding
};
inline constexpr int kListPadding = 4;

/// Lennard-Jones between two kinds of particles, with lengths in the unit of PairArgs::position.
/// u = c12 (r^-12 - Σ) - c6 (r^-6 - Σ). The Σ are constants; if switched, they include the cubic and quartic terms.
struct PairLaw {
  double c6 = 0, c12 = 0, shift = 0;  ///< u -= shift inside the cutoff
  bool lennard_jones = false, coulomb = false;
};

struct PairArgs {
  const double* position;  ///< [4 (n + 1)] x, y, z, charge; entry n is NaN
  double* force;           ///< [4 (n + 1)], accumulated; the caller divides by the length unit
  const PairRun* runs;
  std::int64_t run_count;
  const int* neighbours;
  const PairLaw* laws;
  double box[3], inverse_box[3];  ///< 0: open direction
  double lj_cutoff2, coulomb_cutoff2;
  bool switched;
  double switch_from;
  double a6, b6, k6, a12, b12, k12;  ///< r^-p becomes r^-p - a/3 t³ - b/4 t⁴ - k, t = max(r - switch_from, 0)
  // Coulomb: q_i q_j (bare/r + linear r + quadratic r² - constant), times `coulomb`.
  double coulomb, bare, linear, quadratic, constant;
  bool with_energy;
  double lj_energy, coulomb_energy;  ///< results, accumulated
  double virial[6];                  ///< results, accumulated: Σ r_a f_b, xx xy xz yy yz zz
};

/// Candidates for a neighbour list: the ids of the particles at places [from, to) within the radius of a point. The
/// kernel may write up to kListPadding entries beyond the counted ones.
struct CandidateArgs {
  const double *x, *y, *z;
  const int* id;
  double box[3], inverse_box[3];
  double radius2;
};

/// kLaneBatch triangles or single bonds in SIMD lanes, whatever the instruction set's width. Unused lanes repeat the
/// last used one. They have the same solution as long as both are solved at once: kernels stop at the pack of lane
/// used-1.
inline constexpr int kLaneBatch = 4;
struct TriangleBatch {
  int used;
  int particle[3][kLaneBatch];
  int row[3][kLaneBatch];  ///< rows of the bonds 01, 02, 12
  double inverse_mass[3][kLaneBatch];
  double length2[3][kLaneBatch];
  double inverse_length2[3][kLaneBatch];
};
struct BondBatch {
  int used;
  int particle[2][kLaneBatch];
  int row[kLaneBatch];
  double inverse_mass[2][kLaneBatch];
  double length2[kLaneBatch], inverse_length2[kLaneBatch];
};

/// The report of a stage over all batches.
struct LaneReport {
  int iterations = 0;
  double residual = 0, start_residual = 0;
  int worst_row = -1;
  double pivot_ratio = 1;
  bool wrong_root = false;
  bool failed = false;  ///< some lane reached neither the tolerance nor the rounding floor
};

struct StageArgs {
  const double* x0;    ///< positions whose gradients carry the multipliers (position stage); positions (velocity stage)
  double* x;           ///< positions or velocities, updated
  double* multiplier;  ///< [nrow]
  double tolerance;
  int max_iterations;
  double timestep;
};

/// An open chain of m bonds in local numbering, as a structure of arrays. Arrays are padded by kPathPadding.
inline constexpr int kPathPadding = 8;
struct PathArgs {
  int m;
  const double* inverse_mass;               ///< [m + 1]
  const double *length2, *inverse_length2;  ///< [m]
  double *x, *y, *z;                        ///< [m + 1] positions or velocities
  double *gx, *gy, *gz;                     ///< [m] bonds that carry the multipliers
  double *ex, *ey, *ez;                     ///< [m] present bonds
  double* sigma;                            ///< [m]
  double *lower, *upper, *inverse;          ///< [m] factor: rows scaled for substitution
  double* delta;                            ///< [m]
};

// path_load: x, y, z of particles with consecutive indices. path_bonds: e_k = p_k - p_(k+1).
// path_sigma: sigma_k = (e_k² - d_k²)/2; returns max |sigma_k|/d_k², NaN if any is.
// path_rates: sigma_k = g_k·(v_k - v_(k+1)); returns max |sigma_k|/d_k², NaN if any is.
// path_factor: factorises the tridiagonal matrix e_k·g_l (inverse masses) from both ends to the middle. Returns the
//   smallest ratio of a pivot to its diagonal, NaN if any is.
// path_solve: delta = A⁻¹ sigma. path_move: p -= M⁻¹ Gᵀ delta.
#define TARSUS_PARTICLE_KERNELS(KERNEL, SCALAR_KERNEL)                                                         \
  KERNEL(void, pairs, (PairArgs&), pairs_kernel)                                                               \
  KERNEL(int, candidates, (const CandidateArgs&, double x, double y, double z, int from, int to, int* out),    \
         candidates_kernel)                                                                                    \
  KERNEL(LaneReport, triangle_positions, (const TriangleBatch*, int count, const StageArgs&),                  \
         triangle_positions_kernel)                                                                            \
  KERNEL(LaneReport, triangle_velocities, (const TriangleBatch*, int count, const StageArgs&),                 \
         triangle_velocities_kernel)                                                                           \
  KERNEL(LaneReport, bond_positions, (const BondBatch*, int count, const StageArgs&), bond_positions_kernel)   \
  KERNEL(LaneReport, bond_velocities, (const BondBatch*, int count, const StageArgs&), bond_velocities_kernel) \
  KERNEL(void, path_load, (const PathArgs&, const double* from), path_load_kernel)                             \
  KERNEL(void, path_store, (const PathArgs&, double* to), path_store_kernel)                                   \
  KERNEL(void, path_bonds, (const PathArgs&, double* ex, double* ey, double* ez), path_bonds_kernel)           \
  KERNEL(double, path_sigma, (const PathArgs&), path_sigma_kernel)                                             \
  KERNEL(double, path_rates, (const PathArgs&), path_rates_kernel)                                             \
  KERNEL(double, path_factor, (const PathArgs&), path_factor_kernel)                                           \
  KERNEL(void, path_solve, (const PathArgs&), path_solve_kernel)                                               \
  KERNEL(void, path_move, (const PathArgs&), path_move_kernel)

struct ParticleKernels {
  TARSUS_KERNEL_TABLE(double, TARSUS_PARTICLE_KERNELS)
};

}  // namespace tarsus
