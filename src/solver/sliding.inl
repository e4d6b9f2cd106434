// Kernels of sliding.hpp: sliding_law.inl on the contacts of one world, one contact a SIMD lane.
#pragma once

#include <algorithm>

#include "math/kernel_call.inl"
#include "solver/sliding.hpp"
#include "solver/sliding_law.inl"
#include "tarsus/math/gather.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

template <class P>
struct SlidingLanes : RecordRun<P, SlidingTerm> {
  using RecordRun<P, SlidingTerm>::at, RecordRun<P, SlidingTerm>::triples, RecordRun<P, SlidingTerm>::kLanes;
  TARSUS_INLINE SlidingLanes(const SlidingList& list, int first)
      : RecordRun<P, SlidingTerm>(list.which, first, list.count) {}
  TARSUS_INLINE Vec3<P> load(const double* all) const { return triples.load(all); }
  TARSUS_INLINE void store(double* all, const Vec3<P>& x) const { triples.store(all, x); }
  /// @param b out: targets of the tangents
  TARSUS_INLINE SlidingRows<P> rows(const SlidingList& list, Vec3<P>& b) const {
    const double *number[kLanes], *friction[kLanes];
    for (int l = 0; l < kLanes; ++l)
      number[l] = &list.rows[at[l]->first_row].compliance, friction[l] = &list.terms[at[l]->term].friction;
    P x[12];
    SlidingRows<P> c;
    gather_numbers<12>(number, 0, x), gather_numbers<1>(friction, 0, &c.friction);
    c.normal.inverse_mass = x[3], c.tangent.inverse_mass = maximum(x[7], x[11]);
    c.set(x[0], x[4], every_lane<P>(), list.share);
    c.target = mul_add(x[0], x[2], x[1]), c.centre1 = x[6], c.centre2 = x[10];  // u + R (y - c) - b
    b = {P(0.0), x[5], x[9]};
    c.no_tangent();
    return c;
  }
  TARSUS_INLINE SlidingRows<P> tangents(const Tangent* all) const {
    const double* from[kLanes];
    for (int l = 0; l < kLanes; ++l) from[l] = all[at[l]->term].at[0];
    SlidingRows<P> c;
    P x[4];
    gather_numbers<1>(from, 0, &c.Gnn);
    gather_numbers<3>(from, kTermRows, x), c.G1n = x[0], c.G11 = x[1], c.G12 = x[2];
    gather_numbers<3>(from, 2 * kTermRows, x), c.G2n = x[0], c.G22 = x[2];
    return c;
  }
  /// @param open no impulse, and opening
  TARSUS_INLINE void store(Tangent* all, const SlidingRows<P>& c, Mask<P> open) const {
    double* to[kLanes];
    const P zero = P(0.0), flag = select(open, P(1.0), zero);
    for (int l = 0; l < kLanes; ++l) to[l] = all[at[l]->term].at[0];
    const P normal[4] = {c.Gnn, zero, zero, zero}, first[4] = {c.G1n, c.G11, c.G12, zero},
            second[4] = {c.G2n, c.G12, c.G22, zero};
    scatter_numbers<4>(to, 0, normal), scatter_numbers<4>(to, kTermRows, first);
    scatter_numbers<4>(to, 2 * kTermRows, second);
    double opens[kLanes];
    store_rows(opens, flag);
    for (int l = 0; l < kLanes; ++l) all[at[l]->term].open = opens[l] != 0;
  }
};

using SlidingPack = RecordPack<double>::type;

/// f(lanes, their rows, targets of the tangents) for a whole list.
template <class F>
TARSUS_INLINE void each_pack(const SlidingList& list, const F& f) {
  for (int first = 0; first < list.count; first += kWidth<SlidingPack>) {
    const SlidingLanes<SlidingPack> lanes(list, first);
    Vec3<SlidingPack> b;
    SlidingRows<SlidingPack> rows = lanes.rows(list, b);
    f(lanes, rows, b);
  }
}

template <class T>
void sliding_law(const SlidingList& list, const T* y, const T* free, Tangent* tangents, T* g) {
  using P = SlidingPack;
  each_pack(list, [&](const auto& lanes, SlidingRows<P>& c, const Vec3<P>& b) {
    const Vec3<P> before = lanes.load(y), gamma = law_at(c, before, false, true, every_lane<P>());
    const Vec3<P> u = velocity_of(c, before) + b;
    lanes.store(g, gamma + times(c, u - lanes.load(free))), lanes.store(tangents, c, no_lanes<P>());
  });
}

template <class P>
TARSUS_INLINE Real<P> sum_of(const P& squares, int count) {
  Real<P> of[kWidth<P>], sum = 0;
  store_rows(of, squares);
  for (int l = 0; l < count; ++l) sum += of[l];
  return sum;
}

template <class T>
T sliding_tangents(const SlidingList& list, const T* velocity, const T* impulse, const T* free, Tangent* tangents,
                   T* carried) {
  using P = SlidingPack;
  const P zero = P(0.0);
  T sum = 0;
  each_pack(list, [&](const auto& lanes, SlidingRows<P>& c, const Vec3<P>& b) {
    const Vec3<P> u = lanes.load(velocity), y = lanes.load(impulse);
    sum += sum_of(natural_map<true>(c, u - b, y, every_lane<P>()), lanes.live);
    const Mask<P> open = (y.x == zero) & (y.y == zero) & (y.z == zero) & (u.x >= c.target);
    lanes.store(tangents, c, open), lanes.store(carried, free ? c.base + times(c, u - lanes.load(free)) : c.base);
  });
  return sum;
}

template <class T>
T sliding_map(const SlidingList& list, const T* velocity, const T* impulse) {
  using P = SlidingPack;
  T sum = 0;
  each_pack(list, [&](const auto& lanes, SlidingRows<P>& c, const Vec3<P>& b) {
    const Vec3<P> u = lanes.load(velocity) - b, y = lanes.load(impulse);
    sum += sum_of(natural_map<false>(c, u, y, every_lane<P>()), lanes.live);
  });
  return sum;
}

template <class T>
T sliding_residual(const SlidingList& list, const T* velocity, const T* impulse) {
  using P = SlidingPack;
  P worst = P(0.0), poison = P(0.0);
  each_pack(list, [&](const auto& lanes, const SlidingRows<P>& c, const Vec3<P>& b) {
    const Vec3<P> u = lanes.load(velocity) - b, y = lanes.load(impulse), z = before_natural_projection(c, u, y);
    worst = maximum(natural_residual(c, u, y), worst);
    poison = poison + (z.x + z.y + z.z + y.x + y.y + y.z) * P(0.0);
  });
  T most[kWidth<P>], spoiled[kWidth<P>], largest = 0;
  store_rows(most, worst), store_rows(spoiled, poison);
  for (int l = 0; l < kWidth<P>; ++l) largest = std::max(largest, most[l]);
  for (int l = 0; l < kWidth<P>; ++l) largest = largest + spoiled[l];
  return largest;
}

template <class T>
void sliding_impulses(const SlidingList& list, const Tangent* tangents, const T* carried, const T* x, T* impulse) {
  using P = SlidingPack;
  for (int first = 0; first < list.count; first += kWidth<P>) {
    const SlidingLanes<P> lanes(list, first);
    lanes.store(impulse, lanes.load(carried) - times(lanes.tangents(tangents), lanes.load(x)));
  }
}

TARSUS_FILL_KERNELS(SlidingTable, TARSUS_SLIDING_KERNELS)

}  // namespace TARSUS_ISA
}  // namespace tarsus
