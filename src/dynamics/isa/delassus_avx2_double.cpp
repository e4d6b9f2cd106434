// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx2 (cmake/TarsusIsa.cmake).
#include "dynamics/delassus.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

DelassusTable<double> delassus_double(bool wide) {
  return wide ? DelassusFor<Pack<double, 4>, Pack<double, 4>>::table() : DelassusFor<double, Pack<double, 4>>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
