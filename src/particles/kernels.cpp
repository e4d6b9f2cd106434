#include "particles/kernels.hpp"

#include "tarsus/math/cpu.hpp"

namespace tarsus {

const ParticleKernels& particle_kernels_here() {
#if defined(__x86_64__)
  if (isa_level() >= IsaLevel::avx2) return isa_avx2::particle_kernels();
#endif
  return isa_baseline::particle_kernels();
}

}  // namespace tarsus
