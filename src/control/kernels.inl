// Includes every kernel of control/kernel_table.hpp, for the sources that CMake writes.
#pragma once

#include "control/clip.inl"
#include "control/kernel_table.hpp"
#include "control/limited.inl"
#include "math/kernel_call.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

TARSUS_FILL_KERNELS(ControlTable<Real<T>>, TARSUS_CONTROL_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
