#include "constraint/kernel_table.hpp"
#include "tarsus/math/select_isa.hpp"

namespace tarsus {

template <>
const ConstraintTable<double>& constraint_table<double>(int width) {
  static const ConstraintTable<double> narrow = TARSUS_SELECT_DOUBLE(false, constraint_double),
                                       wide = TARSUS_SELECT_DOUBLE(true, constraint_double);
  return width == 1 ? narrow : wide;
}

template <>
const ConstraintTable<float>& constraint_table<float>(int width) {
  static const ConstraintTable<float> narrow = TARSUS_SELECT_FLOAT(false, constraint_float),
                                      wide = TARSUS_SELECT_FLOAT(true, constraint_float);
  return width == 1 ? narrow : wide;
}

}  // namespace tarsus
