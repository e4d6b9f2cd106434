// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx512 (cmake/TarsusIsa.cmake).
#include "dynamics/delassus.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

DelassusTable<double> delassus_double(bool wide) {
  return wide ? DelassusFor<Pack<double, 8>, Pack<double, 8>>::table() : DelassusFor<double, Pack<double, 8>>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
