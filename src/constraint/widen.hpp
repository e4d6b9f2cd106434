// Links' numbers in double, whatever the simulation's precision.
#pragma once

#include <algorithm>

#include "tarsus/model/link_state.hpp"

namespace tarsus {

template <class R>
Vec3d widen(const Vec3<R>& v) {
  return {double(v.x), double(v.y), double(v.z)};
}
template <class R>
Mat3d widen(const Mat3<R>& m) {
  return from_columns(widen(m.column_x()), widen(m.column_y()), widen(m.column_z()));
}
template <class R>
Motion<double> widen(const Motion<R>& m) {
  return {widen(m.w), widen(m.v)};
}

/// Estimate of what a point contact on link a, and on b unless it is the world (-1), feels: by the articulated masses
/// that the last factors left [1/kg].
template <class R>
double contact_inverse_mass(const LinkState<R>* links, int a, int b) {
  const auto of = [&](int link) {
    const Sym3<R>& M = links[link].IA.M;
    return 3 / std::max(double(M.xx + M.yy + M.zz), 1e-30);
  };
  return of(a) + (b >= 0 ? of(b) : 0);
}

/// The same for moments [1/(kg m²)].
template <class R>
double contact_inverse_inertia(const LinkState<R>* links, int a, int b) {
  const auto of = [&](int link) {
    const Sym3<R>& I = links[link].IA.I;
    return 3 / std::max(double(I.xx + I.yy + I.zz), 1e-30);
  };
  return of(a) + (b >= 0 ? of(b) : 0);
}

}  // namespace tarsus
