// Includes every kernel of learn/kernel_table.hpp, for the sources that CMake writes.
#pragma once

#include "learn/kernel_table.hpp"
#include "learn/motion.inl"
#include "math/kernel_call.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

TARSUS_FILL_KERNELS(LearnTable<Real<T>>, TARSUS_LEARN_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
