// Compiled with the flags of its instruction set and TARSUS_ISA=isa_baseline (cmake/TarsusIsa.cmake).
#include "dynamics/delassus.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

DelassusTable<float> delassus_float(bool wide) {
  return wide ? DelassusFor<Pack<float, 4>, Pack<float, 4>>::table() : DelassusFor<float, Pack<float, 4>>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
