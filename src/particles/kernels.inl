// Every kernel of particles/kernels.hpp, included by the sources that CMake generates.
#pragma once

#include "math/kernel_call.inl"
#include "particles/pair_kernel.inl"
#include "particles/path_kernel.inl"
#include "particles/rigid_kernel.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

TARSUS_FILL_KERNELS(ParticleKernels, TARSUS_PARTICLE_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
