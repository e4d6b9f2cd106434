// Compiled with the flags of its instruction set and TARSUS_ISA=isa_baseline (cmake/TarsusIsa.cmake).
#include "solver/body_contact_kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

ContactKernels<double> contact_kernels_double() { return contact_kernels<Pack<double, 2>>(); }

}  // namespace TARSUS_ISA
}  // namespace tarsus
