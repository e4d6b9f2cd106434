// Transfers of chosen lanes from one pack of worlds to another.
#pragma once

#include "constraint/lane_spin.inl"
#include "dynamics/stiffened.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// A pack of 128 bits, for the few lanes of a wide pack that still iterate.
template <class T>
using Narrow = Pack<Real<T>, 16 / int(sizeof(Real<T>))>;
template <class T>
inline constexpr bool kNarrows = (kWidth<T> > kWidth<Narrow<T>>);
/// Number of wide packs whose last lanes fit into one wide pack.
template <class T>
inline constexpr int kTogether = kNarrows<T> ? kWidth<T> / kWidth<Narrow<T>> : 1;

/// Lanes of a pack W, copied to a pack N of the same width or a narrower one.
template <class W, class N>
struct LaneChoice {
  Bits<W> lane{};            ///< [lane of N] the lane of W
  Mask<N> here{};            ///< lanes of N that read this pack; the last ones may repeat another lane's values
  int first = 0, count = 0;  ///< lanes of N that are written back

  TARSUS_INLINE void take(const W& from, N& to) const { to = select(here, part<N>(permute(from, lane)), to); }
  TARSUS_INLINE void take(const Bits<W>& from, Bits<N>& to) const {
    to = (part<Bits<N>>(permute_bits(from, lane)) & here) | (to & ~here);
  }
  void put(const N& from, W& to) const {
    for (int i = first; i < first + count; ++i) to.set(int(lane[i]), from[i]);
  }
  void put(const Bits<N>& from, Bits<W>& to) const {
    for (int i = first; i < first + count; ++i) to[lane[i]] = from[i];
  }
  void take(const Vec3<W>& from, Vec3<N>& to) const { take(from.x, to.x), take(from.y, to.y), take(from.z, to.z); }
  void put(const Vec3<N>& from, Vec3<W>& to) const { put(from.x, to.x), put(from.y, to.y), put(from.z, to.z); }
  void take(const Mat3<W>& from, Mat3<N>& to) const {
    for (int k = 0; k < 9; ++k) take((&from.xx)[k], (&to.xx)[k]);
  }
  void take(const RigidInertia<W>& from, RigidInertia<N>& to) const {
    take(from.mass, to.mass), take(from.h, to.h);
    for (int k = 0; k < 6; ++k) take((&from.I.xx)[k], (&to.I.xx)[k]);
  }
  void take(const LaneMetric<W>& from, LaneMetric<N>& to) const {
    take(from.own_R, to.own_R), take(from.inverse_mass, to.inverse_mass), take(from.R, to.R), take(from.iR, to.iR);
    take(from.rho, to.rho), take(from.irho, to.irho);
  }
  template <class X, class Y>
  void take(const LaneIterates<X>& from, LaneIterates<Y>& to) const {
    take(from.now_u, to.now_u), take(from.now_y, to.now_y), take(from.best_u, to.best_u), take(from.best_y, to.best_y);
    to.next_u = to.now_u, to.next_y = to.now_y;
  }
  template <class Y, class X>
  void put(const LaneIterates<Y>& from, LaneIterates<X>& to) const {
    put(from.now_u, to.now_u), put(from.now_y, to.now_y), put(from.best_u, to.best_u), put(from.best_y, to.best_y);
  }
  void take(const LaneContact<W>& from, LaneContact<N>& to) const {
    take(from.live, to.live);
    if (from.link < 0) take(from.a, to.a), take(from.b, to.b), take(from.arm_b, to.arm_b);
    take(from.n, to.n), take(from.t1, to.t1), take(from.t2, to.t2), take(from.arm_a, to.arm_a);
    take(from.friction, to.friction), take(from.normal, to.normal), take(from.tangent, to.tangent);
    take(from.target, to.target), take(from.free, to.free), take(from.at, to.at);
    take(from.centre1, to.centre1), take(from.centre2, to.centre2);
  }
  void take(const LaneSpin<W>& from, LaneSpin<N>& to) const {
    take(from.live, to.live), take(from.torsional, to.torsional), take(from.rolling, to.rolling);
    take(from.metric, to.metric), take(from.centre, to.centre), take(from.free, to.free), take(from.at, to.at);
  }
  void take(const LaneJointRow<W>& from, LaneJointRow<N>& to) const {
    to.kind = typename LaneJointRow<N>::Kind(int(from.kind)), to.joint = from.joint, to.place = from.place;
    to.path = from.path, to.axial = from.axial;
    take(from.live, to.live), take(from.e, to.e), take(from.lower, to.lower), take(from.upper, to.upper);
    take(from.target, to.target), take(from.centre, to.centre), take(from.free, to.free);
    take(from.metric, to.metric), take(from.at, to.at);
  }
  void take(const LaneBallRow<W>& from, LaneBallRow<N>& to) const {
    to.joint = from.joint, to.place = from.place;
    take(from.radius, to.radius), take(from.target, to.target), take(from.free, to.free);
    take(from.metric, to.metric), take(from.at, to.at);
  }

 private:
  template <class Part, class Whole>
  TARSUS_INLINE static Part part(const Whole& whole) {
    Part part;
    __builtin_memcpy(&part, &whole, sizeof part);
    return part;
  }
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
