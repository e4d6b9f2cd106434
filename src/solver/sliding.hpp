// The laws of a problem's contacts with three rows in SIMD lanes (sliding.inl); see solver/term_laws.hpp.
#pragma once

#include "tarsus/math/kernels.hpp"
#include "tarsus/solver/term_laws.hpp"

namespace tarsus {

/// The contacts with three rows among a problem's terms.
struct SlidingList {
  const Term* terms;
  const TermRow* rows;
  const SlidingTerm* which;
  int count;
  double share;  ///< StepProblem::sliding_share
};

// law: G at the impulses before projection y, and g = γ + G J (v - v⁰).
// tangents: Σ ρ² N² of natural_map(), G and γ̄; with `free` (J v⁰) g = γ̄ + G J (v - v⁰) instead of γ̄. map: Σ ρ² N².
// residual: the largest natural_residual(); not finite if one is not finite.
// impulses: carried - G x.
#define TARSUS_SLIDING_KERNELS(KERNEL, SCALAR_KERNEL)                                                               \
  SCALAR_KERNEL(void, law, (const SlidingList&, const double* y, const double* free, Tangent* tangents, double* g), \
                sliding_law<T>)                                                                                     \
  SCALAR_KERNEL(double, tangents,                                                                                   \
                (const SlidingList&, const double* velocity, const double* impulse, const double* free,             \
                 Tangent* tangents, double* carried),                                                               \
                sliding_tangents<T>)                                                                                \
  SCALAR_KERNEL(double, map, (const SlidingList&, const double* velocity, const double* impulse), sliding_map<T>)   \
  SCALAR_KERNEL(double, residual, (const SlidingList&, const double* velocity, const double* impulse),              \
                sliding_residual<T>)                                                                                \
  SCALAR_KERNEL(                                                                                                    \
      void, impulses,                                                                                               \
      (const SlidingList&, const Tangent* tangents, const double* carried, const double* x, double* impulse),       \
      sliding_impulses<T>)

struct SlidingTable {
  TARSUS_KERNEL_TABLE(double, TARSUS_SLIDING_KERNELS)
};

}  // namespace tarsus
