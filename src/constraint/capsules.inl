// Capsules in SIMD lanes (capsules.hpp): distances of the end spheres to planes n · x = height, and distance of the
// segments of two bounding capsules against the radii.
#pragma once

#include <algorithm>
#include <limits>

#include "tarsus/constraint/capsules.hpp"
#include "tarsus/math/gather.hpp"
#include "tarsus/model/link_state.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// The segments of capsules in the world, one a lane.
template <class P>
struct CapsuleSegments {
  Vec3<P> arm, centre, axis;  ///< arm: from the carrier's origin to the centre
  P radius, half;
  template <class T>
  TARSUS_INLINE CapsuleSegments(const CapsuleAround* const* of, const LinkState<T>* links) {
    static constexpr T kWorld[27] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const double* numbers[kWidth<P>];
    const T* state[kWidth<P>];
    for (int l = 0; l < kWidth<P>; ++l)
      numbers[l] = &of[l]->position.x, state[l] = of[l]->link >= 0 ? &links[of[l]->link].R.xx : kWorld;
    P x[8], R[9], o[3];
    gather_numbers<8>(numbers, 0, x), gather_numbers<9>(state, 0, R), gather_numbers<3>(state, 24, o);
    const Mat3<P> turned = {R[0], R[1], R[2], R[3], R[4], R[5], R[6], R[7], R[8]};
    arm = turned * Vec3<P>{x[0], x[1], x[2]}, centre = arm + Vec3<P>{o[0], o[1], o[2]};
    axis = turned * Vec3<P>{x[3], x[4], x[5]}, radius = x[6], half = x[7];
  }
};

/// Whether two capsules are within reach of each other, with a margin for rounding.  [Ericson 2005, 5.1.9]
template <class T>
void capsules_near_kernel(const CapsuleAround* capsules, const CapsulePair* pairs, int count, const LinkState<T>* links,
                          unsigned char* near) {
  using P = typename RecordPack<double>::type;
  constexpr int kLanes = kWidth<P>;
  const P zero = P(0.0), one = P(1.0);
  for (int first = 0; first < count; first += kLanes) {
    const CapsuleAround *of_a[kLanes], *of_b[kLanes];
    double reaches[kLanes], apart[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      const CapsulePair& pair = pairs[std::min(first + l, count - 1)];
      of_a[l] = &capsules[pair.first], of_b[l] = &capsules[pair.second], reaches[l] = pair.reach;
    }
    const CapsuleSegments<P> a(of_a, links), b(of_b, links);
    const Vec3<P> w = a.centre - b.centre;
    const P uv = dot(a.axis, b.axis), uw = dot(a.axis, w), vw = dot(b.axis, w), det = neg_mul_add(uv, uv, one);
    const auto within = [](const P& x, const P& half) { return maximum(minimum(x, half), -half); };
    const auto parallel = det < P(1e-14);
    const P there = within(select(parallel, zero, mul_add(uv, vw, -uw) / select(parallel, one, det)), a.half);
    const P t = within(mul_add(uv, there, vw), b.half), s = within(mul_add(uv, t, -uw), a.half);
    const Vec3<P> d = w + a.axis * s - b.axis * t;
    const P size = a.radius + b.radius, most = mul_add(P(1e-6), size + a.half + b.half, size + load_rows<P>(reaches));
    store_rows(apart, dot(d, d) - most * most);
    for (int l = 0; l < std::min(kLanes, count - first); ++l) near[first + l] = apart[l] <= 0;
  }
}

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
    const CapsuleAround* round[kLanes];
    const double* numbers[kLanes];
    const T* motion[kLanes];
    double* to[kLanes];
    for (int l = 0; l < kLanes; ++l) {  // lanes beyond the end repeat the last pair
      const int k = std::min(first + l, count - 1);
      const CapsuleOnPlane& pair = pairs[which[k]];
      round[l] = &pair.round, numbers[l] = &pair.normal.x, motion[l] = &links[pair.round.link].v.w.x;
      to[l] = &touches[k].end[0].position.x;
    }
    const CapsuleSegments<P> at(round, links);
    P x[6], v[6];
    gather_numbers<6>(numbers, 0, x), gather_numbers<6>(motion, 0, v);
    const Vec3<P> spin = {v[0], v[1], v[2]}, n = {x[0], x[1], x[2]};
    const Vec3<P> velocity = cross_add(spin, at.arm, Vec3<P>{v[3], v[4], v[5]});
    const P height = dot(n, at.centre) - x[3], still = mul_add(x[5], P(fall), x[4]);
    const P speed = maximum(-dot(n, velocity), zero) + norm(spin) * (at.radius + at.half);
    const P reach = maximum(mul_add(step, speed, still), zero), rise = at.half * dot(n, at.axis);
    P out[8];
    for (int end = 0; end < 2; ++end) {
      const P distance = (end ? height + rise : height - rise) - at.radius;
      const Vec3<P> from_centre = mul_add(n, distance * P(-0.5) - at.radius, at.axis * (end ? at.half : -at.half));
      const Vec3<P> way = cross_add(spin, from_centre, velocity) * step, point = at.centre + from_centre;
      const P lacks = maximum(distance - still, zero);
      const auto touching = (distance <= reach) & (dot(way, way) >= lacks * lacks);
      out[4 * end] = point.x, out[4 * end + 1] = point.y, out[4 * end + 2] = point.z;
      out[4 * end + 3] = select(touching, distance, none);
    }
    scatter_numbers<8>(to, 0, out);
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
