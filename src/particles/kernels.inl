// The table of one instruction set.
#pragma once

#include "particles/pair_kernel.inl"
#include "particles/path_kernel.inl"
#include "particles/rigid_kernel.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

#define TARSUS_STRING_OF(X) #X
#define TARSUS_STRING(X) TARSUS_STRING_OF(X)

const ParticleKernels& particle_kernels() {
  static constexpr ParticleKernels kTable = {
      TARSUS_STRING(TARSUS_ISA),  pairs_kernel,          candidates_kernel,      triangle_positions_kernel,
      triangle_velocities_kernel, bond_positions_kernel, bond_velocities_kernel, path_load_kernel,
      path_store_kernel,          path_bonds_kernel,     path_sigma_kernel,      path_rates_kernel,
      path_factor_kernel,         path_solve_kernel,     path_move_kernel};
  return kTable;
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
