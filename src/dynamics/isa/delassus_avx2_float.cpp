// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx2 (cmake/TarsusIsa.cmake).
#include "dynamics/delassus.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

DelassusTable<float> delassus_float(bool wide) {
  return wide ? DelassusFor<Pack<float, 8>, Pack<float, 8>>::table() : DelassusFor<float, Pack<float, 8>>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
