// Gravity, masses and inertias of a world: the world's own if it has any, else the model's.
#pragma once

#include "tarsus/model/data.hpp"
#include "tarsus/model/view.hpp"
#include "tarsus/spatial/widen.hpp"

namespace tarsus {

/// Gravity of a single world, world axes [m/s²].
template <class R>
Vec3d gravity_of(const Model& model, const BasicData<R>& data) {
  if (!data.own || data.own->gravity.empty()) return model.gravity;
  return widen(Vec3<R>{data.own->gravity[0], data.own->gravity[1], data.own->gravity[2]});
}

/// Factor on a body's mass and inertia in a single world; 1 unless the world has its own.
template <class R>
double mass_scale(const BasicData<R>& data, int body) {
  return data.own && !data.own->mass_scale.empty() ? double(data.own->mass_scale[std::size_t(body)]) : 1;
}

/// Inertia of a link about its origin, in its axes [kg, kg m, kg m²], in the given world.
template <class R>
RigidInertia<double> inertia_of(const Model& model, const BasicData<R>& data, int link, int world) {
  const int width = data.width();
  if (!data.own || data.own[world / width].inertia.empty()) {
    const LinkConstants<double>& c = model.view<double>().link[link];
    return {c.mass, {c.h[0], c.h[1], c.h[2]}, {c.I[0], c.I[1], c.I[2], c.I[3], c.I[4], c.I[5]}};
  }
  const R* const own = &data.own[world / width].inertia[std::size_t(10 * link * width + world % width)];
  const auto n = [&](int k) { return double(own[k * width]); };
  return {n(0), {n(1), n(2), n(3)}, {n(4), n(5), n(6), n(7), n(8), n(9)}};
}

}  // namespace tarsus
