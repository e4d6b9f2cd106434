// Conversion of vectors and matrices from the simulation's precision to double.
#pragma once

#include "tarsus/spatial/spatial.hpp"

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

}  // namespace tarsus
