// Fills a table of kernels (tarsus/math/kernels.hpp). Included by the .inl files that end in TARSUS_FILL_KERNELS.
#pragma once

#include <type_traits>

#include "tarsus/math/kernels.hpp"
#include "tarsus/math/scalar.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Converts a caller's argument to the kernel's type: numbers to packs, a workspace to links.
template <class To, class From>
TARSUS_INLINE To kernel_argument(From x) {
  if constexpr (std::is_pointer_v<To> && !std::is_same_v<To, From>)
    return reinterpret_cast<To>(x);
  else
    return static_cast<To>(x);
}

/// Wraps a kernel in the signature that callers see.
template <class Signature>
struct KernelCall;
template <class Result, class... From>
struct KernelCall<Result(From...)> {
  template <class Out, class... To>
  TARSUS_INLINE static Result call(Out (*kernel)(To...), From... x) {
    return kernel(kernel_argument<To, From>(x)...);
  }
  template <auto kKernel>
  static Result to(From... x) {
#if defined(__AVX__)
    struct Leave {
      ~Leave() { __builtin_ia32_vzeroupper(); }
    } leave;
#endif
    return call(kKernel, x...);
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus

#define TARSUS_FILL_KERNEL(RESULT, NAME, ARGUMENTS, ...) \
  table.NAME = &KernelCall<RESULT ARGUMENTS>::template to<&__VA_ARGS__>;
#define TARSUS_FILL_SCALAR_KERNEL(RESULT, NAME, ARGUMENTS, ...) \
  if constexpr (kWidth<T> == 1) TARSUS_FILL_KERNEL(RESULT, NAME, ARGUMENTS, __VA_ARGS__)

/// Defines the function that fills a table for the scalars T and P. Place it at the end of the directory's .inl, in its
/// namespaces.
#define TARSUS_FILL_KERNELS(TABLE, LIST)                \
  template <class T, class P>                           \
  void fill_table(TABLE& table) {                       \
    using R [[maybe_unused]] = Real<T>;                 \
    LIST(TARSUS_FILL_KERNEL, TARSUS_FILL_SCALAR_KERNEL) \
  }
