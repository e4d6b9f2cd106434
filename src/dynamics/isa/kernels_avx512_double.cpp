// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx512 (cmake/TarsusIsa.cmake).
#include "dynamics/kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

KernelTable<double> kernels_double(bool wide) {
  return wide ? KernelsFor<Pack<double, 8>>::table() : KernelsFor<double>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
