// Gravity, masses, inertias and armature of a world: the world's own if it has any, else the model's.
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

/// Offset of a body's centre of mass in a single world, body axes [m].
template <class R>
Vec3d com_offset(const BasicData<R>& data, int body) {
  if (!data.own || data.own->com_offset.empty()) return {0, 0, 0};
  const R* const offset = &data.own->com_offset[std::size_t(3 * body)];
  return widen(Vec3<R>{offset[0], offset[1], offset[2]});
}

struct BodyMass {
  double mass;    ///< [kg]
  Vec3d com;      ///< body frame [m]
  Sym3d inertia;  ///< about com, body axes [kg m²]
};
/// Of a body in a single world.
template <class R>
BodyMass mass_of(const Model& model, const BasicData<R>& data, int body) {
  const Body& b = model.bodies[std::size_t(body)];
  const bool own = data.own && !data.own->mass_scale.empty();
  const double scale = own ? double(data.own->mass_scale[std::size_t(body)]) : 1;
  return {scale * b.mass, b.com + com_offset(data, body), b.inertia * scale};
}

/// Armature of a degree of freedom in the given world [kg m² | kg].
template <class R>
double armature_of(const Model& model, const BasicData<R>& data, int dof, int world) {
  const int width = data.width();
  if (!data.own || data.own[world / width].armature.empty()) return model.armature[std::size_t(dof)];
  return double(data.own[world / width].armature[std::size_t(dof * width + world % width)]);
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
