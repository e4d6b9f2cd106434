#include "dynamics/kernel_table.hpp"
#include "tarsus/math/select_isa.hpp"

namespace tarsus {

template <>
const KernelTable<double>& kernel_table<double>(int width) {
  static const KernelTable<double> narrow = TARSUS_SELECT_DOUBLE(false, kernels_double),
                                   wide = TARSUS_SELECT_DOUBLE(true, kernels_double);
  return width == 1 ? narrow : wide;
}

template <>
const KernelTable<float>& kernel_table<float>(int width) {
  static const KernelTable<float> narrow = TARSUS_SELECT_FLOAT(false, kernels_float),
                                  wide = TARSUS_SELECT_FLOAT(true, kernels_float);
  return width == 1 ? narrow : wide;
}

}  // namespace tarsus
