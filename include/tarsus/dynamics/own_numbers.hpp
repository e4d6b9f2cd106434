// A world's own gravity and masses, else the model's, for what measures it.
#pragma once

#include "tarsus/model/data.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

/// Of one world.
template <class R>
Vec3d gravity_of(const Model& model, const BasicData<R>& data) {
  if (!data.own || data.own->gravity.empty()) return model.gravity;
  return widen(Vec3<R>{data.own->gravity[0], data.own->gravity[1], data.own->gravity[2]});
}

/// The factor on a body's mass and inertia, of one world.
template <class R>
double mass_scale(const BasicData<R>& data, int body) {
  return data.own && !data.own->mass_scale.empty() ? double(data.own->mass_scale[std::size_t(body)]) : 1;
}

}  // namespace tarsus
