// Every kernel of baselines/kernel_table.hpp, included by the sources that CMake generates.
#pragma once

#include "baselines/branch.inl"
#include "baselines/dense.inl"
#include "baselines/efpa.inl"
#include "baselines/kernel_table.hpp"
#include "math/kernel_call.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

TARSUS_FILL_KERNELS(BaselineTable<Real<T>>, TARSUS_BASELINE_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
