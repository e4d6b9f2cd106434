// Compiled for the compiler's baseline.
#include "particles/kernels.inl"
