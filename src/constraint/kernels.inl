// All kernels of constraint/kernel_table.hpp, for the sources that CMake writes.
#pragma once

#include "constraint/branches.inl"
#include "constraint/capsules.inl"
#include "constraint/carried_bodies.inl"
#include "constraint/contact_packs.inl"
#include "constraint/equality.inl"
#include "constraint/geometric_inertia.inl"
#include "constraint/hanging.inl"
#include "constraint/hanging_rest.inl"
#include "constraint/kernel_table.hpp"
#include "constraint/lane_newton.inl"
#include "constraint/linkage_energy.inl"
#include "constraint/prepare.inl"
#include "constraint/reference_mass.inl"
#include "math/kernel_call.inl"
#include "solver/ldl.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class T>
void reduce_kernel(const ModelView<Real<T>>& m, LinkState<T>* state, const T* y, const T* K) {
  aba_inward<T>(m, state, y, K);
}

/// ldl_load_kernel(). @return whether some world has a row with zero Delassus entry
template <class T, class P>
bool ldl_load_any(int m, int ld, T* A, const T* sigma, const T* b, Real<T> nothing, Real<T> share, T* scale) {
  const T margin = ldl_load_kernel<T, P>(m, ld, A, sigma, b, nothing, share, scale);
  return any_lane(!(margin > T(Real<T>(0))));
}

template <class T, class P>
void ldl_factor(int m, int ld, T* A, T* inverse, const T* scale, T* least) {
  ldl_kernel<T, P>(m, m + 1, ld, A, inverse);
  *least = least_pivot<T, P>(m, inverse, scale);
}

template <class T, class P>
void ldl_solve(int m, int ld, const T* A, const T* inverse, const T* scale, Real<T> limit, T* x, T* trust) {
  ldl_back_kernel<T, P>(m, m, ld, A, inverse, x);
  *trust = ldl_trust<T, P>(m, m, ld, A, inverse, scale, x, limit);
}

TARSUS_FILL_KERNELS(ConstraintTable<Real<T>>, TARSUS_CONSTRAINT_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
