// A maximum that propagates NaN.
#pragma once

namespace tarsus {

/// The larger of two numbers; NaN if one of them is.
template <class R>
constexpr R larger(R a, R b) {
  return b <= a || a != a ? a : b;
}

}  // namespace tarsus
