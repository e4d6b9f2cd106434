// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx2 (cmake/TarsusIsa.cmake).
#include "control/kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

ControlTable<float> control_float(bool wide) {
  return wide ? ControlFor<Pack<float, 8>>::table() : ControlFor<float>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
