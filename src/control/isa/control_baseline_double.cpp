// Compiled with the flags of its instruction set and TARSUS_ISA=isa_baseline (cmake/TarsusIsa.cmake).
#include "control/kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

ControlTable<double> control_double(bool wide) {
  return wide ? ControlFor<Pack<double, 2>>::table() : ControlFor<double>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
