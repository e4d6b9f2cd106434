// Compiled with the flags of its instruction set and TARSUS_ISA=isa_baseline (cmake/TarsusIsa.cmake).
#include "constraint/kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

ConstraintTable<double> constraint_double(bool wide) {
  return wide ? ConstraintFor<Pack<double, 2>, Pack<double, 2>>::table()
              : ConstraintFor<double, Pack<double, 2>>::table();
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
