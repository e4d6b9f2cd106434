// Compiled for the compiler's baseline.
#include "geometry/sweep.inl"
