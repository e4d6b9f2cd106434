#include "control/dense_table.hpp"
#include "control/kernel_table.hpp"
#include "tarsus/math/select_isa.hpp"

namespace tarsus {

template <>
const ControlTable<double>& control_table<double>(int width) {
  static const ControlTable<double> narrow = TARSUS_SELECT_DOUBLE(false, control_double),
                                    wide = TARSUS_SELECT_DOUBLE(true, control_double);
  return width == 1 ? narrow : wide;
}

template <>
const ControlTable<float>& control_table<float>(int width) {
  static const ControlTable<float> narrow = TARSUS_SELECT_FLOAT(false, control_float),
                                   wide = TARSUS_SELECT_FLOAT(true, control_float);
  return width == 1 ? narrow : wide;
}

template <>
const DenseTable<double>& dense_table<double>() {
  static const DenseTable<double> table = TARSUS_SELECT_DOUBLE(false, dense_double);
  return table;
}

template <>
const DenseTable<float>& dense_table<float>() {
  static const DenseTable<float> table = TARSUS_SELECT_FLOAT(false, dense_float);
  return table;
}

}  // namespace tarsus
