// Connects or welds of one scalar world in SIMD lanes (math/gather.hpp): a pack of constraints instead of a pack of
// worlds.
#pragma once

#include "constraint/equality_fixed.inl"
#include "tarsus/base/index.hpp"
#include "tarsus/math/gather.hpp"

namespace tarsus {
inline namespace TARSUS_ISA {

/// What a constraint reads of a link, by lanes.
template <class S>
struct LinkLanes {
  Mat3<S> R;
  Vec3<S> o;
  Motion<S> v, a;
};

template <class S, class T>
TARSUS_INLINE void gather_pose(const LinkState<T>* const* link, LinkLanes<S>& s) {
  constexpr int kLanes = kWidth<S>;
  const T *rotation[kLanes], *origin[kLanes];
  S x[9], o[3];
  for (int l = 0; l < kLanes; ++l) rotation[l] = &link[l]->R.xx, origin[l] = &link[l]->o.x;
  gather_numbers<9>(rotation, 0, x), gather_numbers<3>(origin, 0, o);
  s.R = {x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], x[8]}, s.o = {o[0], o[1], o[2]};
}
template <class S, class T>
TARSUS_INLINE Motion<S> gather_motion(const LinkState<T>* const* link, const Motion<T> LinkState<T>::*which) {
  constexpr int kLanes = kWidth<S>;
  const T* from[kLanes];
  S x[6];
  for (int l = 0; l < kLanes; ++l) from[l] = &(link[l]->*which).w.x;
  gather_numbers<6>(from, 0, x);
  return {{x[0], x[1], x[2]}, {x[3], x[4], x[5]}};
}

/// Constants of constraints first, first + 1, … of a group.
template <class S>
struct LaneConstants {
  const EqualityGroup<Real<S>>& g;
  int first;
  TARSUS_INLINE S at(const Real<S>* p) const { return load_rows<S>(p + first); }
  TARSUS_INLINE Vec3<S> vector(const Real<S> (*p)[kGroup]) const { return {at(p[0]), at(p[1]), at(p[2])}; }
  TARSUS_INLINE Mat3<S> matrix(const Real<S> (*p)[kGroup]) const {
    return {at(p[0]), at(p[1]), at(p[2]), at(p[3]), at(p[4]), at(p[5]), at(p[6]), at(p[7]), at(p[8])};
  }
  TARSUS_INLINE Mat3<S> frame_a() const { return matrix(g.Ra); }
  TARSUS_INLINE Mat3<S> frame_b() const { return matrix(g.Rb); }
  TARSUS_INLINE S scale() const { return at(g.scale); }
  TARSUS_INLINE S share() const { return at(g.share); }
};

/// Stores the rows until all of a kind are complete.
template <class S, bool kWeld>
struct LaneRows {
  static constexpr int kRows = kWeld ? 6 : 3, kPadded = padded(kRows, kWidth<S>);
  S on_a[3][kPadded], on_b[3][kPadded], phi_[kPadded], rate_[kPadded], bias_[kPadded];

  TARSUS_INLINE void moment(int row, const Vec3<S>& a, const Vec3<S>& b) {
    on_a[0][row] = a.x, on_a[1][row] = a.y, on_a[2][row] = a.z;
    on_b[0][row] = b.x, on_b[1][row] = b.y, on_b[2][row] = b.z;
  }
  TARSUS_INLINE void phi(int row, const Vec3<S>& x) { put3(phi_ + row, x); }
  TARSUS_INLINE void rate(int row, const Vec3<S>& x) { put3(rate_ + row, x); }
  TARSUS_INLINE void bias(int row, const Vec3<S>& x) { put3(bias_ + row, x); }
  /// Writes whole packs: a block's rows are padded with zeros.
  template <class T>
  TARSUS_INLINE void put_moments(S (&lines)[3][kPadded], T* const* force, const int stride) {
    for (int k = 0; k < 3; ++k) {
      for (int row = kRows; row < kPadded; ++row) lines[k][row] = S(Real<S>(0));
      scatter_numbers<kPadded>(force, k * stride, lines[k]);
    }
  }
};

/// Evaluates as many constraints as S has lanes, from `first` on.
template <class T, class S, bool kWeld, bool kWorld>
[[gnu::noinline]] void lanes_of_group(const ModelView<T>& m, const LinkState<T>* state, const EqualityGroup<T>& group,
                                      int first, const RowTarget<T>* targets, T* phi, T* rate, T* bias) {
  constexpr int kLanes = kWidth<S>, kRows = LaneRows<S, kWeld>::kRows;
  const LaneConstants<S> c{group, first};
  const LinkState<T>*on_a[kLanes], *on_b[kLanes];
  T *force[kLanes], *to[kLanes];
  for (int l = 0; l < kLanes; ++l) {
    on_a[l] = state + group.a[first + l], on_b[l] = state + (kWorld ? 0 : group.b[first + l]);
    force[l] = targets[group.index[first + l]].force, to[l] = phi + group.first_row[first + l];
  }
  const int stride = targets[group.index[first]].stride;
  LinkLanes<S> link_a, link_b;
  LaneRows<S, kWeld> rows;
  Turn<S> turn;
  End<S> a, b;
  gather_pose(on_a, link_a), place_end(link_a, c.vector(group.pa), a);
  if constexpr (kWorld)
    world_end(m, c.vector(group.pb), b);
  else
    gather_pose(on_b, link_b), place_end(link_b, c.vector(group.pb), b);
  if constexpr (kWeld) turn_of<S, kWorld>(c, a, b, turn);
  fixed_positions<S, kWeld, kWorld>(c, a, b, turn, rows);
  scatter_numbers<kRows>(to, 0, rows.phi_);
  rows.put_moments(rows.on_a, force, stride);
  if constexpr (!kWorld) {
    for (int l = 0; l < kLanes; ++l) force[l] += 6 * stride;
    rows.put_moments(rows.on_b, force, stride);
  }
  if (!rate) return;
  link_a.v = gather_motion<S>(on_a, &LinkState<T>::v), link_a.a = gather_motion<S>(on_a, &LinkState<T>::a);
  move_end(link_a, a);
  if constexpr (!kWorld) {
    link_b.v = gather_motion<S>(on_b, &LinkState<T>::v), link_b.a = gather_motion<S>(on_b, &LinkState<T>::a);
    move_end(link_b, b);
  }
  fixed_motion<S, kWeld, kWorld>(c, a, b, turn, rows);
  for (int l = 0; l < kLanes; ++l) to[l] = rate + group.first_row[first + l];
  scatter_numbers<kRows>(to, 0, rows.rate_);
  for (int l = 0; l < kLanes; ++l) to[l] = bias + group.first_row[first + l];
  scatter_numbers<kRows>(to, 0, rows.bias_);
}

template <class T, class S>
TARSUS_INLINE void group_rows(const ModelView<T>& m, const LinkState<T>* state, const EqualityGroup<T>& group,
                              const RowTarget<T>* targets, T* phi, T* rate, T* bias) {
  for (int first = 0; first < group.count; first += kWidth<S>) {
    by_shape(group.weld, group.to_world, [&](auto weld, auto world) {
      lanes_of_group<T, S, weld, world>(m, state, group, first, targets, phi, rate, bias);
    });
  }
}

}  // namespace TARSUS_ISA
}  // namespace tarsus
