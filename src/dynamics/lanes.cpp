#include "tarsus/dynamics/lanes.hpp"

#include "dynamics/kernel_table.hpp"
#include "tarsus/math/cpu.hpp"

namespace tarsus {

template <class R>
void to_lanes(std::span<const R* const> rows, int n, R* out) {
  kernel_table<R>(int(rows.size())).to_lanes(rows.data(), n, out);
}

template <class R>
void to_rows(const R* in, int n, std::span<R* const> rows) {
  kernel_table<R>(int(rows.size())).to_rows(in, n, rows.data());
}

template <class R>
bool all_within(std::span<const R> x, R limit) {
  return kernel_table<R>(lanes<R>(isa_level())).within(x.data(), x.size(), limit);
}

template bool all_within<double>(std::span<const double>, double);
template bool all_within<float>(std::span<const float>, float);
template void to_lanes<double>(std::span<const double* const>, int, double*);
template void to_lanes<float>(std::span<const float* const>, int, float*);
template void to_rows<double>(const double*, int, std::span<double* const>);
template void to_rows<float>(const float*, int, std::span<float* const>);

}  // namespace tarsus
