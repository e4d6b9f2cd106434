// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx512 (cmake/TarsusIsa.cmake).
#include "control/dense.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

DenseTable<float> dense_float(bool) { return {dense_solve<float>}; }

}  // namespace TARSUS_ISA
}  // namespace tarsus
