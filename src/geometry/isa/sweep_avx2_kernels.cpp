// Compiled with the flags of its instruction set and TARSUS_ISA=isa_avx2 (cmake/TarsusIsa.cmake).
#include "geometry/sweep.inl"
