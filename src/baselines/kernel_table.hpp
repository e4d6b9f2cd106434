// The kernels of baselines, for single worlds only; see tarsus/math/kernels.hpp.
#pragma once

#include "baselines/branch_view.hpp"
#include "tarsus/math/kernels.hpp"
#include "tarsus/model/view.hpp"

// crba_rows, branch_*: branch.inl. dense_solve: dense.inl. climb_chain, omega*: efpa.inl.
#define TARSUS_BASELINE_KERNELS(KERNEL, SCALAR_KERNEL)                                                          \
  SCALAR_KERNEL(void, crba_rows, (const ModelView<R>&, void* state, const BranchView&, const R* qpos, R* rows), \
                crba_rows_kernel<T>)                                                                            \
  SCALAR_KERNEL(void, branch_factor, (const BranchView&, R* rows), branch_factor_kernel<T>)                     \
  SCALAR_KERNEL(void, branch_solve, (const BranchView&, const R* rows, R* x), branch_solve_kernel<T>)           \
  SCALAR_KERNEL(void, branch_multiply, (const BranchView&, const R* rows, const R* x, R* y),                    \
                branch_multiply_kernel<T>)                                                                      \
  SCALAR_KERNEL(void, branch_expand, (const BranchView&, const R* rows, R* dense), branch_expand_kernel<T>)     \
  SCALAR_KERNEL(void, dense_solve, (int n, R* matrix, R* x), dense_solve_kernel<T>)                             \
  SCALAR_KERNEL(void, climb_chain,                                                                              \
                (const ModelView<R>&, const void* state, int tip, const R* force, const R* entries, int count,  \
                 int nrow, int stride, R* records),                                                             \
                climb_chain_kernel<T, P>)                                                                       \
  SCALAR_KERNEL(void, omega_times, (const R* omega, const R* f, int nrow, int stride, R* out),                  \
                omega_times_kernel<T, P>)                                                                       \
  SCALAR_KERNEL(void, omega, (const ModelView<R>&, const void* state, int link, const R* parent, R* omega),     \
                omega_kernel<T, P>)

namespace tarsus {

template <class R>
struct BaselineTable {
  TARSUS_KERNEL_TABLE(R, TARSUS_BASELINE_KERNELS)
};

template <class R>
const BaselineTable<R>& baseline_table() {
  return kernels<BaselineTable<R>>();
}

}  // namespace tarsus
