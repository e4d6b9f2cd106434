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
Sym3d widen(const Sym3<R>& m) {
  return {double(m.xx), double(m.xy), double(m.xz), double(m.yy), double(m.yz), double(m.zz)};
}
template <class R>
Motion<double> widen(const Motion<R>& m) {
  return {widen(m.w), widen(m.v)};
}

/// One over the mean of the diagonal.
template <class R>
double inverse_mean(const Sym3<R>& m) {
  return 3 / std::max(double(m.xx + m.yy + m.zz), 1e-30);
}

/// Estimate of what a point contact on link a, and on b unless it is the world (-1), feels: by the articulated masses
/// that the last factors left [1/kg].
template <class R>
double contact_inverse_mass(const LinkState<R>* links, int a, int b) {
  return inverse_mean(links[a].IA.M) + (b >= 0 ? inverse_mean(links[b].IA.M) : 0);
}

/// The same for moments [1/(kg m²)].
template <class R>
double contact_inverse_inertia(const LinkState<R>* links, int a, int b) {
  return inverse_mean(links[a].IA.I) + (b >= 0 ? inverse_mean(links[b].IA.I) : 0);
}

}  // namespace tarsus
