// Tests of pairs of bounding capsules in SIMD lanes (capsule_around.hpp): distance of two segments against the radii.
#pragma once

#include <algorithm>

#include "tarsus/constraint/capsule_around.hpp"
#include "tarsus/math/gather.hpp"
#include "tarsus/model/link_state.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// The segments of capsules in the world, one a lane.
template <class P>
struct CapsuleSegments {
  Vec3<P> centre, axis;
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
    centre = Vec3<P>{o[0], o[1], o[2]} + turned * Vec3<P>{x[0], x[1], x[2]};
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

}  // namespace TARSUS_ISA
}  // namespace tarsus
