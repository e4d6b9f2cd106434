// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx2 (cmake/TarsusIsa.cmake).
#include "control/dense.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

DenseTable<double> dense_double(bool) { return {dense_solve<double>}; }

}  // namespace TARSUS_ISA
}  // namespace tarsus
