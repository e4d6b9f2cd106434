// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx2 (cmake/TarsusIsa.cmake).
#include "constraint/kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

ConstraintTable<double> constraint_double(bool wide) {
  return wide ? ConstraintFor<Pack<double, 4>, Pack<double, 4>>::table()
              : ConstraintFor<double, Pack<double, 4>>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
