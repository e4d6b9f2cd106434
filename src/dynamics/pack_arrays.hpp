// Checks the arguments of functions over (model, data, arrays) and splits them into packs of worlds.
#pragma once

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

template <class R>
void check_data(const Model& model, const BasicData<R>& data) {
  if (data.nv() != model.nv || data.nlink() != model.njoint())
    throw ValueError("data", "made for another model", "data that were made for this model");
}

/// @throws ShapeError naming the first array that does not have n numbers per world. Each array follows its name.
template <class R, class Array, class... Rest>
void check_sizes(const BasicData<R>& data, int n, const char* name, const Array& array, const Rest&... rest) {
  check_size(name, array.size(), data.size(n));
  if constexpr (sizeof...(rest) > 0) check_sizes(data, n, rest...);
}

/// Pack p of an array with n numbers per world; null stays null.
template <class Span>
auto* pack_of(Span array, int n, int pack, int width) {
  return array.empty() ? nullptr : array.data() + std::size_t(pack) * n * width;
}

/// Calls f(kernels, view, state, p) for each pack; p(array, n) returns the pack's part of an array.
template <class Kernels, class Data, class F>
void each_pack(const Kernels& kernels, const Model& model, Data& data, const F& f) {
  for (int i = 0; i < data.packs(); ++i) {
    f(kernels, data.view(model, i), data.state(i),
      [&](auto array, int n) { return pack_of(array, n, i, data.width()); });
  }
}

}  // namespace tarsus
