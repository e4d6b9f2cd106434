// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx512 (cmake/TarsusIsa.cmake).
#include "constraint/kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

ConstraintTable<float> constraint_float(bool wide) {
  return wide ? ConstraintFor<Pack<float, 16>, Pack<float, 16>>::table()
              : ConstraintFor<float, Pack<float, 8>>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
