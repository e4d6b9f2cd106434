// Contacts of spheres and capsules with planes in SIMD lanes (plane_touches.hpp): distances of the end spheres to
// n · x = height.
#pragma once

#include <algorithm>
#include <limits>

#include "tarsus/constraint/plane_touches.hpp"
#include "tarsus/math/gather.hpp"
#include "tarsus/model/link_state.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// The rules are those of ContactGeometry for other pairs. An end counts if the shape's surface can cover its distance
/// to the plane within h seconds or by a fall, and its own point is fast enough.
/// @param which [count] index of the pair
/// @param touches [count]
template <class T>
void plane_touches_kernel(const CapsuleOnPlane* pairs, const int* which, int count, const LinkState<T>* links, double h,
                          double fall, CapsuleTouches* touches) {
  using P = typename RecordPack<double>::type;
  constexpr int kLanes = kWidth<P>;
  const P zero = P(0.0), step = P(h), none = P(std::numeric_limits<double>::infinity());
  for (int first = 0; first < count; first += kLanes) {
    const double* numbers[kLanes];
    const T* state[kLanes];
    double* to[kLanes];
    for (int l = 0; l < kLanes; ++l) {  // lanes beyond the end repeat the last pair
      const int k = std::min(first + l, count - 1);
      const CapsuleOnPlane& pair = pairs[which[k]];
      numbers[l] = &pair.position.x, state[l] = &links[pair.link].R.xx, to[l] = &touches[k].end[0].position.x;
    }
    P x[14], R[9], v[6], o[3];
    gather_numbers<14>(numbers, 0, x);
    gather_numbers<9>(state, 0, R), gather_numbers<6>(state, 12, v), gather_numbers<3>(state, 24, o);
    const Mat3<P> turned = {R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8]};
    const Vec3<P> arm = turned * Vec3<P>{x[0], x[1], x[2]}, axis = turned * Vec3<P>{x[3], x[4], x[5]};
    const Vec3<P> centre = arm + Vec3<P>{o[0], o[1], o[2]}, spin = {v[0], v[1], v[2]}, n = {x[8], x[9], x[10]};
    const Vec3<P> velocity = cross_add(spin, arm, Vec3<P>{v[3], v[4], v[5]});
    const P radius = x[6], half = x[7], height = dot(n, centre) - x[11], still = mul_add(x[13], P(fall), x[12]);
    const P speed = maximum(-dot(n, velocity), zero) + norm(spin) * (radius + half);
    const P reach = maximum(mul_add(step, speed, still), zero), rise = half * dot(n, axis);
    P out[8];
    for (int end = 0; end < 2; ++end) {
      const P distance = (end ? height + rise : height - rise) - radius;
      const Vec3<P> from_centre = mul_add(n, distance * P(-0.5) - radius, axis * (end ? half : -half));
      const Vec3<P> way = cross_add(spin, from_centre, velocity) * step, at = centre + from_centre;
      const P lacks = maximum(distance - still, zero);
      const auto touching = (distance <= reach) & (dot(way, way) >= lacks * lacks);
      out[4 * end] = at.x, out[4 * end + 1] = at.y, out[4 * end + 2] = at.z;
      out[4 * end + 3] = select(touching, distance, none);
    }
    scatter_numbers<8>(to, 0, out);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
