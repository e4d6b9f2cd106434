// Compiled with the flags of its instruction set and TARSUS_ISA=isa_baseline (cmake/TarsusIsa.cmake).
#include "constraint/kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

ConstraintTable<float> constraint_float(bool wide) {
  return wide ? ConstraintFor<Pack<float, 4>, Pack<float, 4>>::table() : ConstraintFor<float, Pack<float, 4>>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
