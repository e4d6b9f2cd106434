// Includes every kernel of dynamics/kernel_table.hpp, for the sources that CMake writes.
#pragma once

#include "dynamics/coupled.inl"
#include "dynamics/crba.inl"
#include "dynamics/dense.inl"
#include "dynamics/free_flight.inl"
#include "dynamics/integrate.inl"
#include "dynamics/kernel_table.hpp"
#include "dynamics/kinematics.inl"
#include "dynamics/minv.inl"
#include "dynamics/rnea.inl"
#include "dynamics/spin_response.inl"
#include "dynamics/stiffened.inl"
#include "dynamics/velocity_products.inl"
#include "math/kernel_call.inl"
#include "tarsus/math/transpose.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

TARSUS_FILL_KERNELS(KernelTable<Real<T>>, TARSUS_DYNAMICS_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
