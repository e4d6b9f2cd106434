// Compiled with the flags of its instruction set and TARSUS_ISA=isa_baseline (cmake/TarsusIsa.cmake).
#include "solver/body_contact_kernels.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

ContactKernels<float> contact_kernels_float() { return contact_kernels<Pack<float, 4>>(); }

}  // namespace TARSUS_ISA
}  // namespace tarsus
