// The dense baseline's kernel as a function pointer, one for each instruction set.
#pragma once

#include "tarsus/math/isa.hpp"

namespace tarsus {

template <class R>
struct DenseTable {
  void (*solve)(int n, R* matrix, R* x);
};

template <class R>
const DenseTable<R>& dense_table();

namespace isa_baseline {
DenseTable<double> dense_double(bool wide);
DenseTable<float> dense_float(bool wide);
}  // namespace isa_baseline
namespace isa_avx2 {
DenseTable<double> dense_double(bool wide);
DenseTable<float> dense_float(bool wide);
}  // namespace isa_avx2
namespace isa_avx512 {
DenseTable<double> dense_double(bool wide);
DenseTable<float> dense_float(bool wide);
}  // namespace isa_avx512

}  // namespace tarsus
