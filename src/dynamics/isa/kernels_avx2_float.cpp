// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx2 (cmake/TarsusIsa.cmake).
#include "dynamics/kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

KernelTable<float> kernels_float(bool wide) {
  return wide ? KernelsFor<Pack<float, 8>>::table() : KernelsFor<float>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
