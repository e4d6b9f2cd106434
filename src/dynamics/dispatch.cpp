#include <type_traits>

#include "dynamics/kernel_table.hpp"
#include "tarsus/base/error.hpp"
#include "tarsus/math/cpu.hpp"

namespace tarsus {

namespace {

template <class R>
KernelTable<R> select_table(bool wide) {
  if constexpr (std::is_same_v<R, double>) {
#if defined(__x86_64__)
#if !defined(TARSUS_DOUBLE_ONLY)
    if (isa_level() == IsaLevel::avx512) return isa_avx512::kernels_double(wide);
#endif
    if (isa_level() >= IsaLevel::avx2) return isa_avx2::kernels_double(wide);
#endif
    return isa_baseline::kernels_double(wide);
  } else {
#if defined(TARSUS_DOUBLE_ONLY)
    (void)wide;
    throw Error("this build has double kernels only (TARSUS_DOUBLE_ONLY)");
#else
#if defined(__x86_64__)
    if (isa_level() == IsaLevel::avx512) return isa_avx512::kernels_float(wide);
    if (isa_level() == IsaLevel::avx2) return isa_avx2::kernels_float(wide);
#endif
    return isa_baseline::kernels_float(wide);
#endif
  }
}

}  // namespace

template <class R>
const KernelTable<R>& kernel_table(int width) {
  static const KernelTable<R> narrow = select_table<R>(false), wide = select_table<R>(true);
  return width == 1 ? narrow : wide;
}

template const KernelTable<double>& kernel_table<double>(int);
template const KernelTable<float>& kernel_table<float>(int);

}  // namespace tarsus
