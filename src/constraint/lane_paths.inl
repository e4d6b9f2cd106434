// Rows along generalised directions in SIMD lanes: equality constraints, and ForceRows (tendons, and actuators that do
// not drive one joint). All worlds of a model share the links and joints of these rows; each world has its own
// directions.
//
//     J v = Σ over two links of F · (their motion)  +  Σ over DoFs of j_k v_k
//
// They are LaneJointRows. Rows on a single hinge or slide are rows on that joint; the others are eliminated from the
// linear problem (lane_links.inl).
#pragma once

#include "constraint/lane_rows.inl"
#include "constraint/lane_tree.inl"

namespace tarsus {
inline namespace TARSUS_ISA {

/// Motions of the links with a stride, so that they can be members of another struct.
template <class T>
class LinkMotions {
 public:
  LinkMotions(const Motion<T>* first, std::size_t step)
      : first_(reinterpret_cast<const std::byte*>(first)), step_(step) {}
  TARSUS_INLINE const Motion<T>* operator[](int link) const {
    return reinterpret_cast<const Motion<T>*>(first_ + std::size_t(link) * step_);
  }

 private:
  const std::byte* first_;
  std::size_t step_;  ///< bytes from link to link
};
/// An array with `count` motions of each link.
template <class T>
LinkMotions<T> motions_of(const Motion<T>* all, int count = 1) {
  return {all, std::size_t(count) * sizeof(Motion<T>)};
}

/// The direction of one row, from a pack's numbers.
template <class T>
class LanePathDirection {
 public:
  using R = Real<T>;
  LanePathDirection(const LaneModel<R>& model, int row, const T* numbers)
      : path_(model.path[row]), dof_(model.path_dof + path_.first_dof), at_(numbers + path_.first) {}

  const LanePath& path() const { return path_; }
  T operator[](PathNumbers which) const { return at_[which]; }
  Force<T> wrench(int side) const {
    const T* f = at_ + kPathNumbers + 6 * side;
    return {get3(f), get3(f + 3)};
  }
  T joint(int k) const { return at_[kPathNumbers + 12 + k]; }

  /// f(link, wrench on it)
  template <class F>
  TARSUS_INLINE void each_link(const F& f) const {
    if (path_.a >= 0) f(path_.a, wrench(0));
    if (path_.b >= 0) f(path_.b, wrench(1));
  }
  /// f(DoF, entry)
  template <class F>
  TARSUS_INLINE void each_dof(const F& f) const {
    for (int k = 0; k < path_.ndof; ++k) f(dof_[k], joint(k));
  }
  /// J v from motion k of each link and from v [nv][n]. @param of the lanes whose direction is used
  template <class Lanes = LanesAsTheyAre>
  T along(const LinkMotions<T>& motion, const T* v, int k = 0, int n = 1, const Lanes& of = {}) const {
    T sum = T(R(0));
    each_link([&](int link, const Force<T>& f) { sum += dot(of(f), motion[link][k]); });
    each_dof([&](int dof, T j) { sum = mul_add(of(j), v[n * dof + k], sum); });
    return sum;
  }

 private:
  const LanePath& path_;
  const int* dof_;
  const T* at_;
};

}  // namespace TARSUS_ISA
}  // namespace tarsus
