// Arguments of the functions over (model, data, arrays): checked, and cut into packs of worlds.
#pragma once

#include "tarsus/dynamics/dynamics.hpp"

namespace tarsus {

template <class R>
void check_data(const Model& model, const BasicData<R>& data) {
  if (data.nv() != model.nv || data.nlink() != model.njoint())
    throw ValueError("data", "made for another model", "this model's own");
}

/// Pack p of an array of n per world; null stays null.
template <class Span>
auto* pack_of(Span array, int n, int pack, int width) {
  return array.empty() ? nullptr : array.data() + std::size_t(pack) * n * width;
}

}  // namespace tarsus
